//! Opening and connecting without waiting for whoever is at the other end.
//!
//! A path may lead to anything: a FIFO without a writer, a device, a socket whose listener does not
//! accept. Whoever must never wait opens and connects by these.

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{FileType, Mode, OFlags},
    io::Errno,
    net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType},
    pipe::PipeFlags,
};
use std::{
    ffi::OsStr,
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
};

/// Opens a regular file for reading, and nothing else.
///
/// # Errors
/// As open(2), and when it is something else: then it has not been opened.
pub fn open_file(path: &Path) -> io::Result<OwnedFd> {
    open_named(path, OFlags::empty())
}

/// The same, of a file that is there itself: a link in its place is refused.
///
/// # Errors
/// As [`open_file`].
pub fn open_own_file(path: &Path) -> io::Result<OwnedFd> {
    open_named(path, OFlags::NOFOLLOW)
}

fn open_named(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    // Names it only: no FIFO waits for a writer, no device notices.
    let named = rustix::fs::open(path, flags | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&named)?.st_mode);
    if kind != FileType::RegularFile {
        let text = format!("it is {}, not a file", noun(kind));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(by_descriptor(&named), flags, Mode::empty())?)
}

/// An input that never ends and never says anything: a pipe that is both of its ends, so that who
/// reads from it holds it open itself.
///
/// # Errors
/// As pipe(2), and where there is no /proc.
pub fn silent_input() -> io::Result<OwnedFd> {
    let (read, _write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    // With both directions it waits for nobody.
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open(by_descriptor(&read), flags, Mode::empty())?)
}

/// So much may wait in a pipe to be read.
pub const MOST_INPUT: usize = 64 << 10;

/// The pipe that a process reads as its stdin, made by [`silent_input`], to write into.
#[derive(Debug)]
pub struct InputPipe(OwnedFd);

impl InputPipe {
    /// That of a process, if its stdin is a pipe.
    ///
    /// # Errors
    /// As open(2), and when its stdin is something else.
    pub fn of(pid: u32) -> io::Result<InputPipe> {
        let path = format!("/proc/{pid}/fd/0");
        let kind = FileType::from_raw_mode(rustix::fs::stat(&path)?.st_mode);
        if kind != FileType::Fifo {
            let text = format!("it is {}, not a pipe", noun(kind));
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(InputPipe(rustix::fs::open(&path, flags, Mode::empty())?))
    }

    /// Gives it bytes to read, or none of them while too many wait already.
    ///
    /// # Errors
    /// As write(2); `WouldBlock`: they have no room.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let waiting = rustix::io::ioctl_fionread(&self.0)?;
        let full = |written: usize| {
            let length = bytes.len();
            let text = format!("{waiting} bytes wait to be read: {written} of {length} were taken");
            Err(io::Error::new(io::ErrorKind::WouldBlock, text))
        };
        if waiting.saturating_add(bytes.len() as u64) > MOST_INPUT as u64 {
            return full(0);
        }
        let mut written = 0;
        while written < bytes.len() {
            match rustix::io::write(&self.0, &bytes[written..]) {
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return full(written),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The controlling terminal of this process, if it has one.
///
/// # Errors
/// As open(2).
pub fn controlling_terminal() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/tty", flags, Mode::empty())?)
}

fn noun(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of an unknown kind",
    }
}

/// What lies at a path, links followed.
fn kind(path: &Path) -> Option<FileType> {
    rustix::fs::stat(path).ok().map(|stat| FileType::from_raw_mode(stat.st_mode))
}

/// Opens a file to append to, and makes it if it is not there.
///
/// # Errors
/// As open(2); a named pipe that nobody reads is one.
pub fn append(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOCTTY;
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(rustix::fs::open(path, flags, Mode::from_raw_mode(mode))?)
}

#[must_use]
pub fn is_file(path: &Path) -> bool {
    kind(path) == Some(FileType::RegularFile)
}

#[must_use]
pub fn is_directory(path: &Path) -> bool {
    kind(path) == Some(FileType::Directory)
}

/// The device that takes everything and gives nothing.
///
/// # Errors
/// As open(2).
pub fn null() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// Another end to write at for a pipe whose read end we hold: it has a reader, us.
///
/// # Errors
/// As open(2).
pub fn write_end(read_end: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(by_descriptor(read_end), flags, Mode::empty())?)
}

/// Says a line on stderr, all of it or nothing; `false`: nobody takes it now. Of a longer one than a
/// pipe takes at once the end is left out.
pub fn tell_stderr(line: &str) -> bool {
    /// A pipe that polls as writable takes this much.
    const TAKEN: usize = 4096;
    let line = &line[..line.floor_char_boundary(TAKEN - 1)];
    let stderr = rustix::stdio::stderr();
    let mut fds = [PollFd::from_borrowed_fd(stderr, PollFlags::OUT)];
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    let ready = poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0);
    ready && rustix::io::write(stderr, format!("{line}\n").as_bytes()).is_ok()
}

fn by_descriptor(fd: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()).into()
}

/// Whether somebody listens at a unix socket, be it that he does not accept.
///
/// # Errors
/// As connect(2), where that does not tell.
pub fn is_listening(path: &Path) -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let dir = directory(path)?;
    match rustix::net::connect(&socket, &address(path, &dir)?) {
        // His queue is full, or it is one for datagrams: he is there.
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS | Errno::PROTOTYPE) => Ok(true),
        Err(Errno::CONNREFUSED) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes a socket that nobody listens at any more, and nothing else.
///
/// # Errors
/// When somebody listens, or it is no socket.
pub fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let Ok(stat) = rustix::fs::lstat(path) else { return Ok(()) };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        let text = "there is something else than a socket";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    match is_listening(path) {
        Ok(false) => Ok(rustix::fs::unlink(path)?),
        Ok(true) | Err(_) => Err(io::Error::from(io::ErrorKind::AddrInUse)),
    }
}

/// Binds a unix socket that never blocks, also at a path longer than an address holds.
///
/// # Errors
/// As bind(2).
pub fn bind(path: &Path, kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
    let dir = directory(path)?;
    rustix::net::bind(&socket, &address(path, &dir)?)?;
    Ok(socket)
}

/// Sends a datagram to a unix socket, by its path or, after an `@`, its abstract name.
///
/// # Errors
/// As sendto(2); `WouldBlock` when nobody takes it now.
pub fn send_datagram(to: &OsStr, bytes: &[u8]) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    let dir = directory(Path::new(to))?;
    let name = match to.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddrUnix::new_abstract_name(name)?,
        None => address(Path::new(to), &dir)?,
    };
    rustix::net::sendto(&socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT, &name)?;
    Ok(())
}

/// The directory that a path too long for an address is in.
fn directory(path: &Path) -> io::Result<Option<OwnedFd>> {
    if SocketAddrUnix::new(path).is_ok() {
        return Ok(None);
    }
    let dir = path.parent().unwrap_or(Path::new("/"));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(Some(rustix::fs::open(dir, flags, Mode::empty())?))
}

fn address(path: &Path, dir: &Option<OwnedFd>) -> io::Result<SocketAddrUnix> {
    Ok(match dir {
        None => SocketAddrUnix::new(path)?,
        Some(dir) => {
            SocketAddrUnix::new(by_descriptor(dir).join(path.file_name().unwrap_or_default()))?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("mainstay-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        dir
    }

    #[test]
    fn only_a_regular_file_is_opened_and_the_rest_says_what_it_is() {
        let dir = scratch("open");
        let (file, fifo) = (dir.join("file"), dir.join("fifo"));
        fs::write(&file, "text").expect("written");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).expect("made");
        let told = |path: &Path| open_file(path).expect_err("refused").to_string();
        assert!(open_file(&file).is_ok());
        assert_eq!(told(&fifo), "it is a FIFO, not a file");
        assert_eq!(told(&dir), "it is a directory, not a file");
        assert_eq!(told(Path::new("/dev/null")), "it is a device, not a file");
        let link = dir.join("link");
        std::os::unix::fs::symlink(&file, &link).expect("made");
        assert!(open_file(&link).is_ok());
        let refused = open_own_file(&link).expect_err("refused").to_string();
        assert_eq!(refused, "it is a link, not a file");
        fs::remove_dir_all(&dir).expect("clean up");
    }

    #[test]
    fn a_listener_that_does_not_accept_is_there_and_one_that_is_gone_is_not() {
        let dir = scratch(&format!("listening-{}", "x".repeat(100)));
        let path = dir.join("socket");
        let listener = bind(&path, SocketType::STREAM).expect("bound");
        assert!(!is_listening(&path).expect("told"), "bound and not listening");
        rustix::net::listen(&listener, 0).expect("a socket");
        // The second finds the queue full.
        let held: Vec<bool> = (0..3).map(|_| is_listening(&path).expect("told")).collect();
        assert_eq!(held, [true; 3]);
        drop(listener);
        assert!(!is_listening(&path).expect("told"));
        fs::remove_dir_all(&dir).expect("clean up");
    }
}
