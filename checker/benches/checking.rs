//! How fast is a history read and judged? `cargo bench -p fencepost-checker`.
//!
//! Histories of one and of a hundred locks, 5, 20 and 100 clients, with 0, 1 and 5 % of releases of unknown outcome,
//! valid and with one double grant. `examples/measure.rs` adds the peak of memory, which needs a process of its own.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fencepost_checker::{
    check::Checker,
    readers,
    registry::Choice,
    search::Budget,
    verdict::{Valid, Verdict},
};

mod generator;

const OPERATIONS: u64 = 100_000;

fn history(clients: u64, keys: u64, percent: u64, double_grant: bool) -> Vec<u8> {
    let settings = generator::Settings {
        operations: OPERATIONS,
        clients,
        keys,
        indeterminate: percent as f64 / 100.0,
        double_grant,
        seed: 7,
    };
    let mut bytes = Vec::new();
    generator::generate(&settings, &mut bytes).expect("memory takes it");
    bytes
}

fn verdict(bytes: &[u8]) -> Verdict {
    readers::check(bytes, None).expect("a history").verdict
}

fn read_and_judged(c: &mut Criterion) {
    let mut group = c.benchmark_group("read and judged");
    group.sample_size(10).throughput(Throughput::Elements(OPERATIONS));
    for (clients, keys, percent, double_grant) in [
        (5, 1, 0, false),
        (20, 1, 1, false),
        (100, 1, 5, false),
        (100, 1, 5, true),
        (5, 100, 0, false),
        (100, 100, 5, true),
    ] {
        let bytes = history(clients, keys, percent, double_grant);
        assert_eq!(verdict(&bytes).valid == Valid::False, double_grant, "{clients} {keys} {percent}");
        let name = format!(
            "{clients} clients, {keys} locks, {percent} % unknown{}",
            if double_grant { ", one double grant" } else { "" }
        );
        group.bench_with_input(BenchmarkId::from_parameter(name), &bytes, |b, bytes| {
            b.iter(|| verdict(black_box(bytes)));
        });
    }
}

fn searched(c: &mut Criterion) {
    let mut group = c.benchmark_group("read, judged and searched");
    group.sample_size(10).throughput(Throughput::Elements(OPERATIONS));
    let bytes = history(20, 1, 1, false);
    for model in ["mutex", "lease-mutex", "fenced-mutex"] {
        let choice: Choice = model.parse().expect("a choice");
        group.bench_with_input(BenchmarkId::from_parameter(model), &bytes, |b, bytes| {
            b.iter(|| {
                let new =
                    |header| Checker::new(header).with_model(&choice, Budget::default()).expect("a model");
                readers::check_with(black_box(bytes.as_slice()), None, new).expect("a history").verdict
            });
        });
    }
}

fn registers(c: &mut Criterion) {
    let mut group = c.benchmark_group("registers, 100 clients");
    group.sample_size(10).throughput(Throughput::Elements(OPERATIONS));
    let mut bytes = Vec::new();
    generator::register(100, OPERATIONS, 7, &mut bytes).expect("memory takes it");
    for model in ["register", "cas-register"] {
        let choice: Choice = model.parse().expect("a choice");
        let judged = || {
            let new = |header| Checker::new(header).with_model(&choice, Budget::default()).expect("a model");
            readers::check_with(black_box(bytes.as_slice()), None, new).expect("a history").verdict
        };
        assert_eq!(judged().analyses["linearizable"], Valid::True, "{model}");
        group.bench_function(BenchmarkId::from_parameter(model), |b| b.iter(judged));
    }
}

criterion_group!(benches, read_and_judged, searched, registers);
criterion_main!(benches);
