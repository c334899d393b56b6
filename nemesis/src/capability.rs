//! What does this machine allow? For `doctor`, `test.json`, and skipped faults.

use std::{fs, io, path::PathBuf, process::Command};

/// One thing that a machine may or may not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// Whether it is there, or why not.
    pub state: Result<String, String>,
}

/// Asks the machine. Starts nothing that stays, changes nothing.
#[must_use]
pub fn survey() -> Vec<Capability> {
    vec![
        Capability {
            name: "kernel",
            purpose: "faults use Linux's signals and namespaces",
            state: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map(|release| format!("Linux {}", release.trim()))
                .map_err(|_| "this is no Linux: checking and reporting work, running does not".to_owned()),
        },
        Capability {
            name: "pid-namespace",
            purpose: "the kernel cleans up after a killed run; without it a reaper process does",
            state: namespaces(),
        },
    ]
}

/// Namespaces can be had if `unshare` can: as root, or unprivileged where the distribution allows it.
fn namespaces() -> Result<String, String> {
    let root = rustix::process::geteuid().is_root();
    let flags = if root { "-pm" } else { "-Upm" };
    let output = Command::new("unshare").args([flags, "--fork", "--mount-proc", "true"]).output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(if root { "as root" } else { "as an ordinary user" }.to_owned())
        }
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("unshare: {error}")),
    }
}

/// The machine in a few facts, for `test.json`.
#[must_use]
pub fn machine() -> Vec<(&'static str, String)> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let memory = read("/proc/meminfo");
    let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap_or("unknown").trim();
    let cores = std::thread::available_parallelism().map_or_else(|_| "unknown".to_owned(), |n| n.to_string());
    vec![
        ("kernel", read("/proc/sys/kernel/osrelease").trim().to_owned()),
        ("architecture", std::env::consts::ARCH.to_owned()),
        ("cores", cores),
        ("memory", memory.to_owned()),
    ]
}

/// Where a program is, by PATH and the places where distributions put servers.
///
/// # Errors
/// [`io::ErrorKind::NotFound`].
pub fn find_program(name: &str) -> io::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/local/sbin", "/usr/sbin", "/usr/local/bin", "/usr/bin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(usual)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}
