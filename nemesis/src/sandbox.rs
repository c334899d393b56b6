//! Who cleans up when everything dies? The kernel.
//!
//! [`enter`] moves the rest of the program into a PID and mount namespace of its own, with a private
//! temporary directory:
//!
//! ```text
//!   fencepost (watcher) ──► init, PID 1 of the namespace ──► fencepost (runner) ──► servers, workers
//!   forwards signals,       reaps orphans                    the program goes on
//!   passes on the exit                                       here
//! ```
//!
//! When init dies the kernel kills every process of the namespace and frees its mounts, so nothing outlives a
//! `kill -9` of any of the three: the watcher's death kills init (PR_SET_PDEATHSIG), the runner's death ends
//! it. Where namespaces are not to be had, a reaper process that reads from a pipe does the same by hand: the
//! pipe's end is the runner's death.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, CString},
    fs, io,
    io::Write as _,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    process,
    sync::Mutex,
};

/// The exit code of a run whose runner was killed.
const EXIT_INTERNAL: i32 = 70;

/// Who cleans up, and where temporary files go.
#[derive(Debug)]
pub struct Sandbox {
    scratch: PathBuf,
    reaper: Option<Reaper>,
}

/// Why there is no sandbox. The texts are fragments that fit after "error: ".
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {source}")]
pub struct SandboxError {
    what: &'static str,
    source: io::Error,
}

/// How a run is kept apart from the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// A namespace where the machine allows it, else a reaper.
    #[default]
    Auto,
    /// A reaper process, also where namespaces are allowed.
    Reaper,
}

impl Sandbox {
    /// A directory for the run's temporary files; empty, private, gone with the run.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// `namespace` or `reaper`, for `test.json`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        if self.reaper.is_some() { "reaper" } else { "namespace" }
    }

    /// Tells the reaper of a process group to kill when the runner dies. In a namespace the kernel knows.
    pub fn adopt(&self, group: crate::process::Group) {
        if let Some(reaper) = &self.reaper {
            reaper.tell('+', group.id());
        }
    }

    /// The group has ended: its number may belong to somebody else from now on.
    pub fn release(&self, group: crate::process::Group) {
        if let Some(reaper) = &self.reaper {
            reaper.tell('-', group.id());
        }
    }
}

/// Enters the sandbox. Returns in the runner; the calling process stays behind as the watcher and exits with
/// the runner's exit code, never returning from here.
///
/// `keep_visible` are paths that the run must still reach (its store, its program): the private temporary
/// directory hides none of them.
///
/// Must be called before the program starts a thread: the runner is a fork.
///
/// # Errors
/// If neither a namespace nor a reaper can be had.
///
/// # Panics
/// If the program has more than one thread already.
pub fn enter(isolation: Isolation, keep_visible: &[&Path]) -> Result<Sandbox, SandboxError> {
    assert_eq!(threads(), 1, "the sandbox must be entered before any thread is started");
    if isolation == Isolation::Auto
        && let Some(mount_point) = mount_point(keep_visible)
        && let Some(sandbox) = enter_namespace(mount_point)?
    {
        return Ok(sandbox);
    }
    start_reaper()
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

/// A directory that every Linux has and that the run does not need; it is covered in the namespace only.
fn mount_point(keep_visible: &[&Path]) -> Option<&'static CStr> {
    const CANDIDATES: [&CStr; 5] = [c"/mnt", c"/media", c"/srv", c"/opt", c"/home"];
    let real: Vec<_> =
        keep_visible.iter().map(|path| path.canonicalize().unwrap_or(path.to_path_buf())).collect();
    CANDIDATES.into_iter().find(|candidate| {
        let path = Path::new(std::ffi::OsStr::from_bytes(candidate.to_bytes()));
        path.is_dir() && real.iter().all(|needed| !needed.starts_with(path))
    })
}

/// Forks with extra namespace flags. The child has the parent's only thread, so all of Rust goes on to work.
fn fork(flags: libc::c_int) -> io::Result<libc::pid_t> {
    // SAFETY: without CLONE_VM and with a null stack this is fork; the program has one thread (asserted in
    // `enter`), so no lock can be held by a thread that the child lacks.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid as libc::pid_t) }
}

/// `None`: this machine or user may not have the namespaces.
fn enter_namespace(mount_point: &CStr) -> Result<Option<Sandbox>, SandboxError> {
    let failed = |what| move |source: io::Error| SandboxError { what, source };
    let (report_read, report_write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|e| failed("make a pipe")(e.into()))?;
    let (life_read, life_write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|e| failed("make a pipe")(e.into()))?;
    let ids = (rustix::process::geteuid(), rustix::process::getegid());
    let user = if ids.0.is_root() { 0 } else { libc::CLONE_NEWUSER };
    let signals = block_signals();
    let _ = io::stdout().flush();
    match fork(libc::CLONE_NEWPID | libc::CLONE_NEWNS | user) {
        Err(_) => {
            restore_signals(&signals);
            Ok(None)
        }
        Ok(0) => {
            drop((report_read, life_write));
            let ready = prepare_namespace(mount_point, user != 0, ids.0.as_raw(), ids.1.as_raw(), &life_read);
            let mut report = fs::File::from(report_write);
            let _ = report.write_all(if ready.is_ok() { b"1" } else { b"0" });
            drop(report);
            if ready.is_err() {
                process::exit(EXIT_INTERNAL);
            }
            Ok(Some(become_init_or_runner(mount_point, &signals)))
        }
        Ok(init) => {
            drop((report_write, life_read));
            let mut report = [0];
            let ready = io::Read::read(&mut fs::File::from(report_read), &mut report);
            if matches!(ready, Ok(1)) && report == *b"1" {
                watch(init, life_write)
            }
            wait(init);
            restore_signals(&signals);
            Ok(None)
        }
    }
}

fn prepare_namespace(mount_point: &CStr, user: bool, uid: u32, gid: u32, life: &OwnedFd) -> io::Result<()> {
    die_with_parent(life)?;
    if user {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
        fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    }
    mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"proc", c"/proc", Some(c"proc"), libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)?;
    mount(c"fencepost", mount_point, Some(c"tmpfs"), libc::MS_NOSUID | libc::MS_NODEV)
}

fn mount(source: &CStr, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all pointers are to NUL-terminated strings that outlive the call, or null where that is allowed.
    match unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, std::ptr::null()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Asks for SIGKILL at the parent's death, and sees whether that came before the asking.
fn die_with_parent(life: &OwnedFd) -> io::Result<()> {
    // SAFETY: sets an attribute of this process, no memory is involved.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut poll = libc::pollfd { fd: life.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd, no waiting.
    let hung_up = unsafe { libc::poll(&raw mut poll, 1, 0) } != 0;
    if hung_up { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
}

/// The namespace's first process forks the runner, which returns from here, and reaps until that ends.
fn become_init_or_runner(mount_point: &CStr, signals: &libc::sigset_t) -> Sandbox {
    match fork(0) {
        Ok(0) => {
            restore_signals(signals);
            let scratch = PathBuf::from(std::ffi::OsStr::from_bytes(mount_point.to_bytes()));
            Sandbox { scratch, reaper: None }
        }
        Ok(runner) => {
            let code = stand_by(runner, true);
            // The kernel kills whatever is left of the namespace now.
            process::exit(code)
        }
        Err(_) => process::exit(EXIT_INTERNAL),
    }
}

/// The watcher: passes signals down and the exit code up.
fn watch(init: libc::pid_t, life: OwnedFd) -> ! {
    let code = stand_by(init, false);
    drop(life);
    process::exit(code)
}

const FORWARDED: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Waits for a child; forwards signals to it; returns the exit code to end with.
fn stand_by(child: libc::pid_t, is_init: bool) -> i32 {
    let set = signal_set();
    loop {
        // SAFETY: `info` is filled by the kernel; the signals of the set are blocked since `block_signals`.
        let info = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::sigwaitinfo(&raw const set, &raw mut info);
            info
        };
        if FORWARDED.contains(&info.si_signo) {
            // The terminal sends Ctrl-C to the whole foreground group, the runner included: only what a
            // process sent to this one alone is passed on.
            if is_init || info.si_code <= 0 {
                // SAFETY: signals our own child, which has not been waited for yet.
                unsafe { libc::kill(child, info.si_signo) };
            }
        } else if info.si_signo == libc::SIGCHLD
            && let Some(code) = reap_until(child, is_init)
        {
            return code;
        }
    }
}

/// Reaps what has ended; the exit code if that was the child waited for.
fn reap_until(child: libc::pid_t, is_init: bool) -> Option<i32> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the kernel to write to.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if pid <= 0 {
            return None;
        }
        if pid == child {
            return Some(exit_code(status, is_init));
        }
    }
}

fn exit_code(status: libc::c_int, is_init: bool) -> i32 {
    if libc::WIFEXITED(status) {
        return libc::WEXITSTATUS(status);
    }
    if is_init {
        let signal = libc::WTERMSIG(status);
        eprintln!(
            "error: the run was killed by signal {signal}; all that it had started is gone, what it had recorded \
             is kept and can be judged: fencepost check <the run's directory>"
        );
    }
    EXIT_INTERNAL
}

fn wait(child: libc::pid_t) {
    // SAFETY: a null status pointer is allowed.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
}

fn signal_set() -> libc::sigset_t {
    // SAFETY: the set is initialised by sigemptyset before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in FORWARDED.into_iter().chain([libc::SIGCHLD]) {
            libc::sigaddset(&raw mut set, signal);
        }
        set
    }
}

/// Blocks the signals that [`stand_by`] waits for; returns the mask to restore in the runner.
fn block_signals() -> libc::sigset_t {
    let set = signal_set();
    // SAFETY: both sets are valid; `old` is filled by the call.
    unsafe {
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut old);
        old
    }
}

fn restore_signals(old: &libc::sigset_t) {
    // SAFETY: `old` came from `block_signals`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, old, std::ptr::null_mut()) };
}

/// The runner's end of the pipe to its reaper.
#[derive(Debug)]
struct Reaper {
    pipe: Mutex<Option<fs::File>>,
    pid: libc::pid_t,
}

impl Reaper {
    fn tell(&self, sign: char, group: i32) {
        let mut pipe = self.pipe.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(pipe) = pipe.as_mut() {
            // A dead reaper cannot be helped; PR_SET_PDEATHSIG still holds.
            let _ = writeln!(pipe, "{sign}{group}");
        }
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        *self.pipe.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
        wait(self.pid);
    }
}

fn start_reaper() -> Result<Sandbox, SandboxError> {
    let failed = |what| move |source: io::Error| SandboxError { what, source };
    let scratch = make_scratch().map_err(failed("make a temporary directory"))?;
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|e| failed("make a pipe")(e.into()))?;
    let _ = io::stdout().flush();
    match fork(0).map_err(failed("start the reaper"))? {
        0 => {
            drop(write);
            reap_after_death(fs::File::from(read), &scratch)
        }
        pid => {
            drop(read);
            let pipe = Mutex::new(Some(fs::File::from(write)));
            Ok(Sandbox { scratch, reaper: Some(Reaper { pipe, pid }) })
        }
    }
}

fn make_scratch() -> io::Result<PathBuf> {
    let mut template = std::env::temp_dir().join("fencepost-XXXXXX").into_os_string().as_bytes().to_vec();
    template.push(0);
    // SAFETY: `template` is a writable NUL-terminated string that ends in XXXXXX, as mkdtemp asks.
    if unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) }.is_null() {
        return Err(io::Error::last_os_error());
    }
    let path = CString::from_vec_with_nul(template).map_err(io::Error::other)?;
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(path.to_bytes())))
}

/// The reaper: remembers process groups until the pipe ends, then kills them and removes the directory.
fn reap_after_death(pipe: fs::File, scratch: &Path) -> ! {
    // A session of its own: the terminal's signals and the runner's group do not reach it.
    let _ = rustix::process::setsid();
    let mut groups = std::collections::BTreeSet::new();
    for line in io::BufRead::lines(io::BufReader::new(pipe)).map_while(Result::ok) {
        match (line.get(..1), line.get(1..).and_then(|id| id.parse::<i32>().ok())) {
            (Some("+"), Some(group)) => drop(groups.insert(group)),
            (Some("-"), Some(group)) => drop(groups.remove(&group)),
            _ => {}
        }
    }
    for group in groups.into_iter().filter_map(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    // A killed process may write its last file for some milliseconds more.
    for _ in 0..50 {
        if fs::remove_dir_all(scratch).is_ok() || !scratch.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    process::exit(0)
}
