//! The run directory, and the state directory as far as the keeper needs it.

use super::dir_error::{DirError, Wrong};
use mainstay_core::name::Name;
use mainstay_sys::{
    nonblocking, proc, signal,
    state_dir::{Durability, StateDir},
    sweep::DeadRun,
};
use mainstay_wire::run_dir::{self, RUN_FILE, RunFile, STATE_DIR_FILE};
use rustix::net::SocketType;
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStrExt,
            fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
        },
    },
    path::{Path, PathBuf},
};

#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    /// Held against a second run.
    lock: File,
}

impl RunDir {
    /// Makes the directory if need be and locks it.
    pub(crate) fn lock(path: &Path) -> Result<RunDir, DirError> {
        let wrong = |wrong: Wrong| DirError { dir: path.to_owned(), wrong };
        if is_foreign_link(path) {
            return Err(wrong(Wrong::ForeignLink));
        }
        make(path, 0o711).map_err(|error| wrong(Wrong::CannotMake(error)))?;
        let real = path.canonicalize().map_err(|error| wrong(Wrong::CannotUse(error)))?;
        if !owned_by_us(&real) {
            return Err(wrong(Wrong::Foreign));
        }
        if let Some(found) = not_ours(&real) {
            return Err(wrong(Wrong::Holds(found)));
        }
        close_to_others(&real).map_err(wrong)?;
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(real.join("lock"))
            .map_err(|error| wrong(Wrong::CannotWrite(error)))?;
        match lock.try_lock() {
            Ok(()) => Ok(RunDir { path: real, lock }),
            Err(fs::TryLockError::WouldBlock) => {
                Err(wrong(Wrong::InUse(RunFile::read(&real).map(|run| run.pid))))
            }
            Err(fs::TryLockError::Error(error)) => Err(wrong(Wrong::CannotLock(error))),
        }
    }

    pub(crate) fn adopt(path: PathBuf, lock: OwnedFd) -> RunDir {
        RunDir { path, lock: lock.into() }
    }

    pub(crate) fn lock_file(&self) -> &File {
        &self.lock
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what an earlier run left and makes what this one needs.
    pub(crate) fn clean(&self) -> io::Result<()> {
        self.remove_files();
        for dir in ["jobs", "notify"] {
            match fs::remove_dir_all(self.path.join(dir)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        make(&self.path.join("jobs"), 0o700)?;
        make(&self.path.join("notify"), 0o711)
    }

    /// What must not stay after a run: sockets nobody answers at, and what may hold secrets.
    pub(crate) fn remove_files(&self) {
        for file in ["mainstay.sock", "keeper.sock", "plan.json", "journal", "run.json"] {
            let _ = fs::remove_file(self.path.join(file));
        }
    }

    pub(crate) fn write_run_file(&self, run: &RunFile) -> io::Result<()> {
        let text = serde_json::to_vec(run)?;
        self.files()?.replace(RUN_FILE, 0o600, &text).map(drop)
    }

    /// Where the logs are, for those who want to read them when the run is over.
    pub(crate) fn remember_state_dir(&self, state_dir: &Path) -> io::Result<()> {
        let content = state_dir.as_os_str().as_bytes();
        self.files()?.replace(STATE_DIR_FILE, 0o644, content).map(drop)
    }

    fn files(&self) -> io::Result<StateDir> {
        StateDir::open(&self.path, Durability::Process)
    }

    pub(crate) fn job(&self, job: &Name) -> PathBuf {
        self.path.join("jobs").join(job.as_str())
    }

    pub(crate) fn notify(&self, job: &Name) -> PathBuf {
        self.path.join("notify").join(job.as_str())
    }
}

/// The state files of jobs, below a run directory.
pub(crate) fn state_files(run_dir: &Path) -> io::Result<StateDir> {
    StateDir::open(&run_dir.join("jobs"), Durability::Process)
}

/// What is left of the last run in this directory, if that was killed.
pub(crate) fn dead_run(run_dir: &Path) -> Option<DeadRun> {
    let RunFile { run, boot, cgroup, .. } = RunFile::read(run_dir)?;
    Some(DeadRun { run, boot, cgroup, leaders: run_dir::leaders(run_dir) })
}

pub(crate) fn run_file(run: &str, cgroup: Option<PathBuf>) -> RunFile {
    RunFile {
        run: run.to_owned(),
        pid: signal::own_pid(),
        boot: proc::boot_id(),
        cgroup,
        version: crate::VERSION.to_owned(),
    }
}

/// Makes a directory that has exactly this mode, whatever the umask is. One that is there stays.
fn make(path: &Path, mode: u32) -> io::Result<()> {
    let there = path.is_dir();
    DirBuilder::new().recursive(true).mode(mode).create(path)?;
    if there { Ok(()) } else { fs::set_permissions(path, fs::Permissions::from_mode(mode)) }
}

/// What a directory holds that a run would clear away, although no run was ever in it.
fn not_ours(path: &Path) -> Option<&'static str> {
    if path.join("lock").exists() {
        return None;
    }
    let cleared = ["jobs", "notify", "journal", "plan.json", "run.json"];
    cleared.into_iter().find(|name| path.join(name).symlink_metadata().is_ok())
}

/// Somebody else may have put it there to lead us astray.
fn is_foreign_link(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let ours = rustix::process::geteuid().as_raw();
    path.symlink_metadata().is_ok_and(|metadata| {
        metadata.is_symlink() && metadata.uid() != ours && metadata.uid() != 0
    })
}

/// A directory in /tmp may have been made by anybody before us.
fn owned_by_us(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw())
}

/// Whoever can write here can put a plan or a socket of their own in the place of ours. A directory
/// that is ours alone, such as a fresh volume, is closed; one that serves others too is refused,
/// unless what is ours is safe there (as in /tmp).
fn close_to_others(path: &Path) -> Result<(), Wrong> {
    let mode = fs::metadata(path).map_err(Wrong::CannotUse)?.permissions().mode();
    let (everybody, sticky) = (mode & 0o002 != 0, mode & 0o1000 != 0);
    if mode & 0o022 == 0 {
        return Ok(());
    }
    let empty = fs::read_dir(path).map_err(Wrong::CannotUse)?.next().is_none();
    if empty || (path.join("lock").exists() && !sticky) {
        let closed = fs::Permissions::from_mode(mode & 0o7777 & !0o1066);
        return fs::set_permissions(path, closed).map_err(Wrong::CannotUse);
    }
    if everybody && !sticky {
        return Err(Wrong::OpenToAll);
    }
    Ok(())
}

/// Locks a state directory against another node: two would write into the same files.
pub(crate) fn lock_state(dir: &Path) -> Result<OwnedFd, DirError> {
    let wrong = |wrong: Wrong| DirError { dir: dir.to_owned(), wrong };
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(dir.join("state.lock"))
        .map_err(|error| wrong(Wrong::StateCannotWrite(error)))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock.into()),
        Err(_) => Err(wrong(Wrong::LogsInUse)),
    }
}

/// Whether files can be made in it, after making it if need be.
pub(crate) fn usable(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o750).create(dir)?;
    Ok(rustix::fs::access(dir, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)?)
}

/// Listens at `path`: under a temporary name first, so that nobody finds it before it listens.
pub(crate) fn listen(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let socket = match nonblocking::bind(&temporary, SocketType::STREAM) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            bind(&temporary, SocketType::STREAM)?
        }
        bound => bound?,
    };
    fs::set_permissions(&temporary, fs::Permissions::from_mode(mode))?;
    rustix::net::listen(&socket, 256)?;
    fs::rename(&temporary, path)?;
    Ok(socket)
}

/// Binds a unix socket in place of whatever is there: for names that are ours alone.
pub(crate) fn bind(path: &Path, kind: SocketType) -> io::Result<OwnedFd> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    nonblocking::bind(path, kind)
}
