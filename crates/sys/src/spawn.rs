//! Starting a process: clone, a few raw system calls, exec.
//!
//! Everything that needs memory is prepared before the clone. The child shares no memory with us
//! (a hung exec must not freeze the keeper) and makes raw system calls only, since other threads
//! may have held any lock at the moment of the clone. What fails between clone and exec comes back
//! as a [`Failure`] through a pipe that exec closes.

use std::{
    cell::Cell,
    ffi::{CString, OsStr},
    io, mem,
    os::{
        fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

/// What to start, in terms of the kernel.
#[derive(Debug)]
pub struct Program {
    argv: Vec<CString>,
    env: Vec<CString>,
    /// Tried one after the other, as a shell searches PATH.
    candidates: Vec<CString>,
    listen_pid: Option<usize>,
    pub cwd: Option<CString>,
    pub identity: Option<(u32, u32, Vec<u32>)>,
    pub umask: Option<u32>,
    pub nice: Option<i32>,
    pub rlimits: Vec<(Resource, Option<u64>)>,
    /// Soft and hard as they were when we were started, for what `rlimits` does not name.
    pub original_nofile: Option<(u64, u64)>,
    /// Dispositions to set back.
    pub ignored: Vec<i32>,
    /// Killed when the thread that started it dies.
    pub die_with_parent: bool,
    /// A session of its own; else only a process group.
    pub session: bool,
    /// Its stdout is a terminal that becomes the controlling one of its session.
    pub terminal: bool,
    /// Opened by the child, as who it has become and from where it then is: whatever that waits
    /// for, nobody else does.
    pub stdin: Option<CString>,
}

/// Where the child's descriptors come from.
#[derive(Debug)]
pub struct Descriptors<'a> {
    /// `None`: inherited.
    pub stdio: Option<[BorrowedFd<'a>; 3]>,
    /// Become 3, 4, …
    pub extra: Vec<BorrowedFd<'a>>,
    /// One more, with the number that it gets: above those of `extra`.
    pub placed: Option<(BorrowedFd<'a>, RawFd)>,
}

/// The group to start in: by descriptor where clone3 can do it, else by its `cgroup.procs`.
#[derive(Debug)]
pub struct Into<'a> {
    pub group: BorrowedFd<'a>,
    pub procs: CString,
}

/// A child that has been cloned. Read `failure` to the end to know whether exec succeeded.
#[derive(Debug)]
pub struct Cloned {
    pub pid: u32,
    /// At its end without data: exec has succeeded.
    pub failure: OwnedFd,
    /// It was started in the group that was asked for.
    pub in_group: bool,
}

/// What failed between clone and exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    pub step: Step,
    pub errno: i32,
}

macro_rules! steps {
    ($($name:ident $text:literal),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Step { $($name),* }

        impl Step {
            const ALL: &[Step] = &[$(Step::$name),*];

            /// What was being done, for people.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Step::$name => $text),* }
            }
        }
    };
}

steps! {
    Session "start a session",
    Group "enter the cgroup",
    Descriptors "set up its file descriptors",
    Nice "set its nice value",
    Limits "set its resource limits",
    Groups "set its supplementary groups",
    Gid "set its group",
    Uid "set its user",
    Parent "tie it to the keeper",
    Cwd "enter its working directory",
    Exec "execute it",
    Terminal "give it its terminal",
    Stdin "open its input",
}

impl Failure {
    const SIZE: usize = 5;

    fn to_bytes(self) -> [u8; Failure::SIZE] {
        let [a, b, c, d] = self.errno.to_ne_bytes();
        [self.step as u8, a, b, c, d]
    }

    /// What was read from [`Cloned::failure`]; `None`: exec has succeeded.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Failure> {
        let (step, errno) = bytes.split_first()?;
        let step = *Step::ALL.get(usize::from(*step))?;
        Some(Failure { step, errno: i32::from_ne_bytes(errno.try_into().ok()?) })
    }
}

macro_rules! resources {
    ($($name:literal $constant:ident),* $(,)?) => {
        /// A resource that rlimits know. Never the address space: it does not mean memory.
        #[derive(Debug, Clone, Copy)]
        pub struct Resource(u32);

        impl Resource {
            #[must_use]
            pub fn named(name: &str) -> Option<Resource> {
                match name {
                    $($name => Some(Resource(libc::$constant as u32)),)*
                    _ => None,
                }
            }
        }
    };
}

resources! {
    "core" RLIMIT_CORE, "cpu" RLIMIT_CPU, "data" RLIMIT_DATA, "fsize" RLIMIT_FSIZE,
    "locks" RLIMIT_LOCKS, "memlock" RLIMIT_MEMLOCK, "msgqueue" RLIMIT_MSGQUEUE,
    "nice" RLIMIT_NICE, "nofile" RLIMIT_NOFILE, "nproc" RLIMIT_NPROC, "rss" RLIMIT_RSS,
    "rtprio" RLIMIT_RTPRIO, "rttime" RLIMIT_RTTIME, "sigpending" RLIMIT_SIGPENDING,
    "stack" RLIMIT_STACK,
}

const NOFILE: u32 = libc::RLIMIT_NOFILE;

impl Program {
    /// `env` is the whole environment; a program without a slash is looked for in its PATH.
    ///
    /// # Errors
    /// When a string holds a NUL, or there is no program.
    pub fn new(argv: &[String], env: &[(String, String)]) -> io::Result<Program> {
        let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text.to_owned());
        let c_string = |text: String| {
            CString::new(text).map_err(|_| invalid("a NUL byte in its arguments or environment"))
        };
        let program = argv
            .first()
            .filter(|program| !program.is_empty())
            .ok_or_else(|| invalid("its command is empty"))?;
        let path =
            env.iter().find(|(name, _)| name == "PATH").map_or(DEFAULT_PATH, |(_, value)| value);
        let candidates = if program.contains('/') {
            vec![program.clone()]
        } else {
            path.split(':')
                .map(|dir| {
                    if dir.is_empty() { format!("./{program}") } else { format!("{dir}/{program}") }
                })
                .collect()
        };
        Ok(Program {
            argv: argv.iter().cloned().map(c_string).collect::<Result<_, _>>()?,
            env: env
                .iter()
                .map(|(name, value)| c_string(format!("{name}={value}")))
                .collect::<Result<_, _>>()?,
            candidates: candidates.into_iter().map(c_string).collect::<Result<_, _>>()?,
            listen_pid: None,
            cwd: None,
            identity: None,
            umask: None,
            nice: None,
            rlimits: Vec::new(),
            original_nofile: None,
            ignored: Vec::new(),
            die_with_parent: true,
            session: true,
            terminal: false,
            stdin: None,
        })
    }

    /// Runs what a descriptor is open on (a binary that may have been replaced or deleted).
    pub fn run_descriptor(&mut self, fd: RawFd) {
        self.candidates = vec![descriptor_path(fd)];
    }

    /// Adds LISTEN_PID, which only the child can know.
    pub fn tell_listen_pid(&mut self) {
        self.listen_pid = Some(self.env.len());
        self.env.push(LISTEN_PID.to_owned());
    }

    /// The files that exec was tried with, in order.
    pub fn tried(&self) -> impl Iterator<Item = &Path> {
        self.candidates.iter().map(|path| Path::new(OsStr::from_bytes(path.as_bytes())))
    }
}

const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Room for the digits, which the child writes.
const LISTEN_PID: &std::ffi::CStr = c"LISTEN_PID=0000000000";
const LISTEN_PID_DIGITS: usize = 10;

fn descriptor_path(fd: RawFd) -> CString {
    CString::new(format!("/proc/self/fd/{fd}")).expect("digits hold no NUL")
}

/// Starts it in a session or process group of its own. Call this from the main thread only: with
/// `die_with_parent` the child's life is tied to the calling thread.
///
/// # Errors
/// When nothing was started: EAGAIN, ENOMEM, EMFILE and the like.
pub fn spawn(
    program: &Program,
    descriptors: &Descriptors<'_>,
    into: Option<&Into<'_>>,
) -> io::Result<Cloned> {
    let (failure, failure_write) = rustix::pipe::pipe_with(
        rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK,
    )?;
    // Out of the way of the numbers that the child gives to what it inherits.
    let above = RawFd::try_from(MAX_DESCRIPTORS).unwrap_or(RawFd::MAX);
    // Not to be had where only few descriptors are allowed.
    let failure_write =
        rustix::io::fcntl_dupfd_cloexec(&failure_write, above).unwrap_or(failure_write);
    let argv = pointers(&program.argv);
    let mut env_bytes: Vec<CString> = program.env.clone();
    let env = pointers(&env_bytes);
    let listen_pid = program.listen_pid.and_then(|index| {
        let entry = env_bytes.get_mut(index)?;
        let end = entry.as_bytes().len() - LISTEN_PID_DIGITS;
        // The child writes into its own copy of these bytes.
        Some(entry.as_ptr().cast_mut().wrapping_add(end))
    });
    let child = Child {
        program,
        argv: argv.as_ptr(),
        env: env.as_ptr(),
        listen_pid,
        descriptors,
        failure: Cell::new(failure_write.as_raw_fd()),
        parent: std::process::id(),
    };

    let mut in_group = into.is_some();
    let mut pid = match into {
        Some(into) => clone3(into.group.as_raw_fd()),
        None => clone(),
    };
    let mut procs = None;
    if let (Some(into), Err(error)) = (into, &pid) {
        // Not there, forbidden (seccomp answers ENOSYS), or not into this group.
        match error.raw_os_error() {
            Some(libc::ENOSYS | libc::EPERM | libc::EINVAL | libc::E2BIG) => {
                procs = Some(into.procs.as_ptr())
            }
            Some(libc::EACCES | libc::EBUSY | libc::EOPNOTSUPP | libc::ENODEV) => in_group = false,
            _ => {
                return Err(io::Error::from_raw_os_error(
                    error.raw_os_error().unwrap_or(libc::EAGAIN),
                ));
            }
        }
        pid = clone();
    }
    match pid? {
        0 => {
            // SAFETY: we are the child; all pointers are to our copies of what the parent prepared.
            unsafe { child.run(procs) }
        }
        pid => {
            FORKS.fetch_add(1, Ordering::Relaxed);
            Ok(Cloned { pid, failure, in_group })
        }
    }
}

static FORKS: AtomicU64 = AtomicU64::new(0);

/// How many processes this one has started.
#[must_use]
pub fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

fn clone3(group: RawFd) -> io::Result<u32> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    /// `struct clone_args` up to its `cgroup` member.
    #[repr(C)]
    #[derive(Default)]
    struct Arguments {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
        set_tid: u64,
        set_tid_size: u64,
        cgroup: u64,
    }
    let arguments = Arguments {
        flags: CLONE_INTO_CGROUP,
        exit_signal: libc::SIGCHLD as u64,
        cgroup: u64::try_from(group).unwrap_or(0),
        ..Arguments::default()
    };
    // SAFETY: without CLONE_VM the child gets its own copy of everything, as with fork.
    answer(unsafe {
        libc::syscall(libc::SYS_clone3, &raw const arguments, mem::size_of::<Arguments>())
    })
}

fn clone() -> io::Result<u32> {
    // SAFETY: as above; a null stack means our own, copied.
    answer(unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::SIGCHLD as libc::c_ulong,
            0usize,
            0usize,
            0usize,
            0usize,
        )
    })
}

fn answer(answer: libc::c_long) -> io::Result<u32> {
    u32::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// The child's side. No allocation, no locks, no panics, no library calls that take either.
struct Child<'a> {
    program: &'a Program,
    argv: *const *const libc::c_char,
    env: *const *const libc::c_char,
    listen_pid: Option<*mut libc::c_char>,
    descriptors: &'a Descriptors<'a>,
    failure: Cell<RawFd>,
    parent: u32,
}

impl Child<'_> {
    /// # Safety
    /// In the child of a clone without shared memory only.
    unsafe fn run(&self, procs: Option<*const libc::c_char>) -> ! {
        // SAFETY: the caller's promise.
        let failure = match unsafe { self.prepare(procs) } {
            Err(failure) => failure,
            // SAFETY: the same.
            Ok(()) => unsafe { self.exec() },
        };
        let bytes = failure.to_bytes();
        // SAFETY: a buffer of ours and its length; _exit runs nothing of the parent's.
        unsafe {
            libc::write(self.failure.get(), bytes.as_ptr().cast(), bytes.len());
            libc::_exit(127)
        }
    }

    unsafe fn prepare(&self, procs: Option<*const libc::c_char>) -> Result<(), Failure> {
        let program = self.program;
        // SAFETY: raw system calls with arguments that were prepared before the clone; the wrappers
        // used here (sigprocmask, setsid, umask, dup2, fcntl) do nothing more.
        unsafe {
            for &signal in &program.ignored {
                crate::signal::set_default(signal);
            }
            let mut none: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
            let apart = if program.session { libc::setsid() } else { libc::setpgid(0, 0) };
            check(Step::Session, apart.into())?;
            if let Some(path) = procs {
                let fd =
                    check(Step::Group, libc::open(path, libc::O_WRONLY | libc::O_CLOEXEC).into())?;
                check(Step::Group, libc::write(fd, c"0".as_ptr().cast(), 1) as libc::c_long)?;
                libc::close(fd);
            }
            self.place_descriptors()?;
            if program.terminal {
                let taken = libc::ioctl(libc::STDOUT_FILENO, libc::TIOCSCTTY, 0);
                check(Step::Terminal, taken.into())?;
            }
            if let Some(mask) = program.umask {
                libc::umask(mask);
            }
            if let Some(nice) = program.nice {
                check(
                    Step::Nice,
                    libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, nice),
                )?;
            }
            if let Some((soft, hard)) = program.original_nofile {
                set_limit(NOFILE, soft, hard)?;
            }
            for (resource, limit) in &program.rlimits {
                let value = limit.unwrap_or(libc::RLIM_INFINITY);
                set_limit(resource.0, value, value)?;
            }
            if let Some((uid, gid, groups)) = &program.identity {
                check(
                    Step::Groups,
                    libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()),
                )?;
                check(Step::Gid, libc::syscall(libc::SYS_setresgid, *gid, *gid, *gid))?;
                check(Step::Uid, libc::syscall(libc::SYS_setresuid, *uid, *uid, *uid))?;
            }
            if program.die_with_parent {
                // After the last change of credentials, which would clear it.
                check(Step::Parent, libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL).into())?;
                if u32::try_from(libc::getppid()) != Ok(self.parent) {
                    libc::_exit(127);
                }
            }
            if let Some(cwd) = &program.cwd {
                check(Step::Cwd, libc::chdir(cwd.as_ptr()).into())?;
            }
            if let Some(path) = &program.stdin {
                let flags = libc::O_RDONLY | libc::O_NOCTTY | libc::O_CLOEXEC;
                let fd = check(Step::Stdin, libc::open(path.as_ptr(), flags).into())?;
                check(Step::Stdin, libc::dup2(fd, libc::STDIN_FILENO).into())?;
            }
            if let Some(place) = self.listen_pid {
                write_number(place, libc::getpid());
            }
        }
        Ok(())
    }

    /// Moves every source above all targets first, so that none is overwritten before its turn.
    unsafe fn place_descriptors(&self) -> Result<(), Failure> {
        let extra = &self.descriptors.extra;
        let placed = self.descriptors.placed.as_ref();
        let behind = libc::c_int::try_from(3 + extra.len()).unwrap_or(libc::c_int::MAX);
        let first = placed.map_or(behind, |(_, target)| behind.max(target.saturating_add(1)));
        let stdio = self.descriptors.stdio.iter().flatten().zip(0..);
        let all = || {
            let placed = placed.map(|(source, target)| (source, *target));
            stdio.clone().chain(extra.iter().zip(3..)).chain(placed)
        };
        // SAFETY: as below. What tells of failures must not be overwritten either.
        let failure = unsafe { libc::fcntl(self.failure.get(), libc::F_DUPFD_CLOEXEC, first) };
        self.failure.set(check(Step::Descriptors, failure.into())?);
        // Targets are at most a few: their high copies are found again by counting.
        let mut high = [-1; MAX_DESCRIPTORS];
        for ((source, _), place) in all().zip(&mut high) {
            // SAFETY: fcntl on descriptors that the parent lent us.
            let copy = unsafe { libc::fcntl(source.as_raw_fd(), libc::F_DUPFD_CLOEXEC, first) };
            *place = check(Step::Descriptors, copy.into())?;
        }
        for ((_, target), copy) in all().zip(high) {
            // SAFETY: both numbers are ours to use in the child.
            check(Step::Descriptors, unsafe { libc::dup2(copy, target) }.into())?;
        }
        Ok(())
    }

    /// As execvpe(3) searches: go on after "not there", remember "not allowed".
    unsafe fn exec(&self) -> Failure {
        let mut errno = libc::ENOENT;
        for candidate in &self.program.candidates {
            // SAFETY: NUL-terminated strings and null-terminated arrays, prepared by the parent.
            unsafe {
                libc::execve(candidate.as_ptr(), self.argv, self.env);
            }
            match last_errno() {
                libc::ENOENT | libc::ENOTDIR => {}
                libc::EACCES => errno = libc::EACCES,
                other => {
                    errno = other;
                    break;
                }
            }
        }
        Failure { step: Step::Exec, errno }
    }
}

/// stdio and the sockets of one job.
pub const MAX_DESCRIPTORS: usize = 64;

/// Writes digits and the NUL behind them.
///
/// # Safety
/// `place` must have room for [`LISTEN_PID_DIGITS`] and a NUL.
unsafe fn write_number(mut place: *mut libc::c_char, number: libc::pid_t) {
    let mut unit = 1;
    while number / unit >= 10 {
        unit *= 10;
    }
    // SAFETY: a pid_t has at most ten digits; the caller's promise.
    unsafe {
        while unit > 0 {
            *place = b'0' as libc::c_char + (number / unit % 10) as libc::c_char;
            place = place.wrapping_add(1);
            unit /= 10;
        }
        *place = 0;
    }
}

fn check(step: Step, answer: libc::c_long) -> Result<libc::c_int, Failure> {
    if answer < 0 {
        return Err(Failure { step, errno: last_errno() });
    }
    Ok(answer as libc::c_int)
}

fn last_errno() -> i32 {
    // SAFETY: the address of a thread-local integer.
    unsafe { *libc::__errno_location() }
}

fn set_limit(resource: u32, soft: u64, hard: u64) -> Result<(), Failure> {
    let limit = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
    let nobody: *mut libc::rlimit64 = ptr::null_mut();
    // SAFETY: pid 0 is this process; the kernel reads `limit` only.
    let answer =
        unsafe { libc::syscall(libc::SYS_prlimit64, 0, resource, &raw const limit, nobody) };
    check(Step::Limits, answer).map(|_| ())
}

/// Replaces this process with what `fd` is open on; returns only if that failed.
#[must_use]
pub fn become_descriptor(
    fd: BorrowedFd<'_>,
    argv: &[String],
    env: &[(String, String)],
) -> io::Error {
    let c_strings = |texts: &mut dyn Iterator<Item = String>| {
        texts.map(CString::new).collect::<Result<Vec<_>, _>>()
    };
    let (Ok(argv), Ok(env)) = (
        c_strings(&mut argv.iter().cloned()),
        c_strings(&mut env.iter().map(|(name, value)| format!("{name}={value}"))),
    ) else {
        return io::Error::from(io::ErrorKind::InvalidInput);
    };
    // SAFETY: NUL-terminated strings and null-terminated arrays that live until exec.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            fd.as_raw_fd(),
            c"".as_ptr(),
            pointers(&argv).as_ptr(),
            pointers(&env).as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    io::Error::last_os_error()
}

/// Raises the soft limit of open files to the hard one; returns what it was (soft, hard).
#[must_use]
pub fn raise_nofile() -> Option<(u64, u64)> {
    // SAFETY: the kernel fills and reads plain records of ours.
    unsafe {
        let mut limit: libc::rlimit64 = mem::zeroed();
        if libc::getrlimit64(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return None;
        }
        let before = (limit.rlim_cur, limit.rlim_max);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit64(libc::RLIMIT_NOFILE, &raw const limit);
        Some(before)
    }
}
