//! How are children started, signalled and never left behind?
//!
//! Every child leads a process group of its own: it is stopped, continued and killed together with whatever
//! it starts, and the terminal's Ctrl-C does not reach it before the run has healed its faults.
#![allow(unsafe_code)]

use std::{io, os::unix::process::CommandExt, process::Command};

use rustix::process::{Pid, Signal, kill_process_group};

/// Makes the child lead a process group of its own and die when the thread that starts it does.
pub fn harden(command: &mut Command) {
    command.process_group(0);
    // SAFETY: the closure runs between fork and exec and makes one async-signal-safe system call; it allocates
    // nothing and touches no memory of the parent.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

/// A process group that this run started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(Pid);

impl Group {
    /// The group led by a child that [`harden`] prepared.
    #[must_use]
    pub fn of_child(id: u32) -> Option<Self> {
        Pid::from_raw(i32::try_from(id).ok()?).map(Self)
    }

    /// The leader's process id.
    #[must_use]
    pub fn id(self) -> i32 {
        self.0.as_raw_nonzero().get()
    }

    /// SIGSTOP: no instruction of it runs from some 30 µs later on.
    ///
    /// # Errors
    /// If the group is gone.
    pub fn stop(self) -> io::Result<()> {
        Ok(kill_process_group(self.0, Signal::STOP)?)
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// If the group is gone.
    pub fn resume(self) -> io::Result<()> {
        Ok(kill_process_group(self.0, Signal::CONT)?)
    }

    /// SIGKILL, which also ends a stopped process.
    ///
    /// # Errors
    /// If the group is gone.
    pub fn kill(self) -> io::Result<()> {
        Ok(kill_process_group(self.0, Signal::KILL)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, thread::sleep, time::Duration};

    fn state(pid: i32) -> String {
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        status.rsplit(") ").next().unwrap().chars().next().unwrap().to_string()
    }

    #[test]
    fn a_stopped_group_runs_no_instruction_and_takes_its_children_along() {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done & wait"]);
        harden(&mut command);
        let mut child = command.spawn().unwrap();
        let group = Group::of_child(child.id()).unwrap();
        sleep(Duration::from_millis(50));
        let inner = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
        let inner: i32 = inner.trim().parse().unwrap();
        group.stop().unwrap();
        sleep(Duration::from_millis(20));
        assert_eq!(state(inner), "T");
        let cpu = |pid| {
            fs::read_to_string(format!("/proc/{pid}/schedstat"))
                .unwrap()
                .split(' ')
                .next()
                .unwrap()
                .to_owned()
        };
        let before = cpu(inner);
        sleep(Duration::from_millis(50));
        assert_eq!(cpu(inner), before, "a stopped process used the processor");
        group.resume().unwrap();
        sleep(Duration::from_millis(50));
        assert_ne!(cpu(inner), before, "a resumed process must run again");
        group.kill().unwrap();
        child.wait().unwrap();
    }
}
