//! What to start, in terms of the kernel: everything that needs memory is prepared here.

use std::{
    ffi::{CString, OsStr},
    io,
    os::{fd::RawFd, unix::ffi::OsStrExt},
    path::Path,
};

/// What to start, in terms of the kernel.
#[derive(Debug)]
pub struct Program {
    pub(super) argv: Vec<CString>,
    pub(super) env: Vec<CString>,
    /// Tried one after the other, as a shell searches PATH.
    pub(super) candidates: Vec<CString>,
    /// The entry of `env` that the child completes, and where its digits begin.
    pub(super) listen_pid: Option<(usize, usize)>,
    /// A candidate is a descriptor of ours by its number.
    pub(super) executes_descriptor: bool,
    pub cwd: Option<CString>,
    pub identity: Option<(u32, u32, Vec<u32>)>,
    pub umask: Option<u32>,
    pub nice: Option<i32>,
    pub rlimits: Vec<(Resource, Option<u64>)>,
    /// Soft and hard as they were when we were started, for what `rlimits` does not name.
    pub original_nofile: Option<(u64, u64)>,
    /// How soon it goes when memory runs out, unless that is as it is for us.
    pub oom_score: Option<i32>,
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

macro_rules! resources {
    ($($name:literal $constant:ident),* $(,)?) => {
        /// A resource that rlimits know. Never the address space: it does not mean memory.
        #[derive(Debug, Clone, Copy)]
        pub struct Resource(pub(super) u32);

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

impl Program {
    /// `env` is the whole environment; a program without a slash is looked for in its PATH.
    ///
    /// # Errors
    /// When a string holds a NUL, or there is no program.
    pub fn new<Text: AsRef<OsStr>>(argv: &[Text], env: &[(Text, Text)]) -> io::Result<Program> {
        let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text.to_owned());
        let c_string = |bytes: Vec<u8>| {
            CString::new(bytes).map_err(|_| invalid("a NUL byte in its arguments or environment"))
        };
        let bytes = |text: &Text| text.as_ref().as_bytes().to_owned();
        let program = argv
            .first()
            .map(|program| program.as_ref().as_bytes())
            .filter(|program| !program.is_empty())
            .ok_or_else(|| invalid("its command is empty"))?;
        let path = env.iter().find(|(name, _)| name.as_ref() == "PATH");
        let path = path.map_or(DEFAULT_PATH.as_bytes(), |(_, value)| value.as_ref().as_bytes());
        let candidates = if program.contains(&b'/') {
            vec![program.to_owned()]
        } else {
            let dirs = path.split(|byte| *byte == b':');
            let within = |dir| if dir == b"" { &b"."[..] } else { dir };
            dirs.map(|dir| [within(dir), program].join(&b'/')).collect()
        };
        Ok(Program {
            argv: argv.iter().map(bytes).map(c_string).collect::<Result<_, _>>()?,
            env: env
                .iter()
                .map(|(name, value)| {
                    let (name, value) = (name.as_ref().as_bytes(), value.as_ref().as_bytes());
                    c_string([name, value].join(&b'='))
                })
                .collect::<Result<_, _>>()?,
            candidates: candidates.into_iter().map(c_string).collect::<Result<_, _>>()?,
            listen_pid: None,
            executes_descriptor: false,
            cwd: None,
            identity: None,
            umask: None,
            nice: None,
            rlimits: Vec::new(),
            original_nofile: None,
            oom_score: None,
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
        self.executes_descriptor = true;
    }

    /// Runs what this process was executed from, whatever lies at its path by now.
    pub fn run_own_executable(&mut self) {
        self.candidates = vec![c"/proc/self/exe".to_owned()];
    }

    /// Adds LISTEN_PID, which only the child can know.
    pub fn tell_listen_pid(&mut self) {
        self.listen_pid = Some((self.env.len(), LISTEN_PID.count_bytes() - LISTEN_PID_DIGITS));
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
