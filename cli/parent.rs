//! Whom must this process not outlive? The suite that started it, also where that is killed.

use std::{env, ffi::OsString};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// The variable in which a suite tells its runs its process id.
const VARIABLE: &str = "FENCEPOST_SUITE";

/// The name and value to set for a process that must not outlive this one.
pub(crate) fn variable() -> (&'static str, String) {
    (VARIABLE, std::process::id().to_string())
}

/// Asks the kernel to end this run with the suite that started it, if one did. False: that is gone already.
///
/// The signal is the one by which a run is asked to end: it heals its faults and keeps what it has. Only for runs
/// themselves: their workers inherit the variable and have an end of their own.
pub(crate) fn is_alive() -> bool {
    let Some(suite) = env::var_os(VARIABLE) else { return true };
    // Where the kernel cannot, runs end by themselves, only later.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    // It may have died before the kernel was asked.
    getppid().is_some_and(|parent| suite == OsString::from(parent.as_raw_nonzero().to_string()))
}
