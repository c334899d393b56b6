//! Do the crates depend on each other only in the directions that the design allows?

use std::process::Command;

use serde_json::Value;

fn dependencies() -> Vec<(String, Vec<String>)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let needed = package["dependencies"].as_array().unwrap().iter();
            let needed = needed.filter(|needed| needed["kind"].is_null()).map(name);
            (name(package), needed.filter(|needed| needed.starts_with("fencepost")).collect())
        })
        .collect()
}

#[test]
fn every_arrow_points_down() {
    let allowed: &[(&str, &[&str])] = &[
        ("fencepost-checker", &[]),
        ("fencepost-nemesis", &["fencepost-checker"]),
        ("fencepost-workloads", &["fencepost-checker", "fencepost-nemesis"]),
        ("fencepost-results", &["fencepost-checker"]),
        (
            "fencepost",
            &["fencepost-checker", "fencepost-nemesis", "fencepost-workloads", "fencepost-results"],
        ),
    ];
    let found = dependencies();
    assert_eq!(found.len(), allowed.len(), "a crate without a place in the design: {found:?}");
    for (package, needed) in found {
        let (_, may) = allowed.iter().find(|(name, _)| *name == package).unwrap();
        for needed in needed {
            assert!(may.contains(&needed.as_str()), "{package} must not use {needed}");
        }
    }
}

#[test]
fn unsafe_code_lives_in_the_nemesis_alone() {
    let forbids = ["checker/src/lib.rs", "results/src/lib.rs", "workloads/src/lib.rs"];
    for file in forbids {
        let text = std::fs::read_to_string(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "{file}");
    }
}
