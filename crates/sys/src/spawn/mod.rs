//! Starting a process: clone, a few raw system calls, exec.
//!
//! Everything that needs memory is prepared before the clone. The child shares no memory with us
//! (a hung exec must not freeze the keeper) and makes raw system calls only, since other threads
//! may have held any lock at the moment of the clone. What fails between clone and exec comes back
//! as a [`Failure`] through a pipe that exec closes.

mod bare;
mod child;
mod image;
mod program;
mod window;

pub use bare::Bare;
pub use program::{Program, Resource};
pub use window::Window;

use child::{Child, Inherited};
use image::Image;
use std::{
    ffi::{CString, OsString},
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};
use window::MAX_SENT;

/// stdio and the sockets of one job.
pub const MAX_DESCRIPTORS: usize = 64;

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
pub struct IntoCgroup<'a> {
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

impl Descriptors<'_> {
    /// All of them, with the numbers that they get in the child: ascending.
    fn placed(&self) -> impl Iterator<Item = (BorrowedFd<'_>, RawFd)> {
        let stdio = self.stdio.iter().flatten().copied().zip(0..);
        stdio.chain(self.extra.iter().copied().zip(3..)).chain(self.placed)
    }
}

/// Starts it in a session or process group of its own. Call this from the main thread only: with
/// `die_with_parent` the child's life is tied to the calling thread.
///
/// # Errors
/// When nothing was started: EAGAIN, ENOMEM, EMFILE and the like.
pub fn spawn(
    program: &Program,
    descriptors: &Descriptors<'_>,
    into: Option<&IntoCgroup<'_>>,
) -> io::Result<Cloned> {
    start(program, descriptors, into, None)
}

impl Window {
    /// As [`spawn()`], without a copy of our table of descriptors if a slot is free.
    ///
    /// # Errors
    /// As [`spawn()`].
    pub fn spawn(
        &self,
        program: &Program,
        descriptors: &Descriptors<'_>,
        into: Option<&IntoCgroup<'_>>,
    ) -> io::Result<Cloned> {
        start(program, descriptors, into, Some(self))
    }
}

fn start(
    program: &Program,
    descriptors: &Descriptors<'_>,
    into: Option<&IntoCgroup<'_>>,
    window: Option<&Window>,
) -> io::Result<Cloned> {
    let (failure, failure_write) = rustix::pipe::pipe_with(
        rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK,
    )?;
    let (sent, targets): (Vec<BorrowedFd<'_>>, Vec<RawFd>) =
        std::iter::once((failure_write.as_fd(), -1)).chain(descriptors.placed()).unzip();
    if sent.len() > MAX_SENT {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut inherited =
        Inherited { sources: [-1; MAX_SENT], targets: [-1; MAX_SENT], count: sent.len() };
    for (place, (source, target)) in sent.iter().zip(&targets).enumerate() {
        (inherited.sources[place], inherited.targets[place]) = (source.as_raw_fd(), *target);
    }
    // Before there is an arena, which the child does need.
    crate::heap::mark();
    let used = window.and_then(Window::take_arena);
    let image = Image::new(program, into.map(|into| into.procs.as_c_str()), used)?;
    // Inherited numbers mean nothing in another table.
    let sends = descriptors.stdio.is_some() && !program.executes_descriptor;
    let slot = window.filter(|_| sends).and_then(|window| window.send(&sent));
    let mut child = Child {
        image: &image,
        inherited,
        passage: slot.map(|(_, passage)| passage),
        parent: std::process::id(),
    };
    let cloned = clone_into(into, if slot.is_some() { libc::CLONE_FILES } else { 0 });
    if let (Err(_), Some((slot, _))) = (&cloned, slot) {
        slot.clear();
    }
    let (pid, entered) = cloned?;
    if pid == 0 {
        // SAFETY: we are the child, and this is the first that it does.
        unsafe { child.run(entered) }
    }
    if let Some((slot, _)) = slot {
        slot.given_to(pid);
    }
    if let Some(window) = window {
        window.keep_arena(image.into_arena());
    }
    FORKS.fetch_add(1, Ordering::Relaxed);
    Ok(Cloned { pid, failure, in_group: entered != Entered::Not })
}

/// How a child comes into its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entered {
    /// It was cloned into it.
    Cloned,
    /// It has to write itself into it.
    ByItself,
    /// It stays in ours: none was asked for, or it cannot be entered.
    Not,
}

fn clone_into(into: Option<&IntoCgroup<'_>>, flags: libc::c_int) -> io::Result<(u32, Entered)> {
    let Some(into) = into else { return Ok((clone(flags)?, Entered::Not)) };
    let error = match clone3(into.group.as_raw_fd(), flags) {
        Ok(pid) => return Ok((pid, Entered::Cloned)),
        Err(error) => error,
    };
    // Not there, forbidden (seccomp answers ENOSYS), or not into this group.
    let entered = match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM | libc::EINVAL | libc::E2BIG) => Entered::ByItself,
        Some(libc::EACCES | libc::EBUSY | libc::EOPNOTSUPP | libc::ENODEV) => Entered::Not,
        _ => return Err(error),
    };
    Ok((clone(flags)?, entered))
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

fn clone3(group: RawFd, flags: libc::c_int) -> io::Result<u32> {
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
        flags: CLONE_INTO_CGROUP | flags as u64,
        exit_signal: libc::SIGCHLD as u64,
        cgroup: u64::try_from(group).unwrap_or(0),
        ..Arguments::default()
    };
    // SAFETY: without CLONE_VM the child gets its own copy of everything, as with fork.
    answer(unsafe {
        libc::syscall(libc::SYS_clone3, &raw const arguments, mem::size_of::<Arguments>())
    })
}

fn clone(flags: libc::c_int) -> io::Result<u32> {
    // SAFETY: as above; a null stack means our own, copied.
    answer(unsafe {
        libc::syscall(
            libc::SYS_clone,
            (libc::SIGCHLD | flags) as libc::c_ulong,
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

/// Replaces this process with what `fd` is open on; returns only if that failed.
#[must_use]
pub fn become_descriptor(
    fd: BorrowedFd<'_>,
    argv: &[OsString],
    env: &[(OsString, OsString)],
) -> io::Error {
    let (argv, env) = match Program::new(argv, env) {
        Ok(program) => (program.argv, program.env),
        Err(error) => return error,
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

/// Sets the limits of open files back to what they were before [`raise_nofile`].
pub fn restore_nofile((soft, hard): (u64, u64)) {
    let limit = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
    // SAFETY: the kernel reads a plain record of ours.
    unsafe {
        libc::setrlimit64(libc::RLIMIT_NOFILE, &raw const limit);
    }
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
