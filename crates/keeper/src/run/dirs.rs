//! The run directory, and the state directory as far as the keeper needs it.
#![expect(clippy::disallowed_methods, reason = "before the loop: nothing is kept yet")]

use super::dir_error::{DirError, DirRole, Wrong};
use mainstay_core::name::Name;
use mainstay_sys::{
    nonblocking,
    own_dir::OwnDir,
    proc, run_files, signal,
    state_dir::{Durability, StateDir},
};
use mainstay_wire::run_dir::{PLAN_FILE, PROJECT_FILE, RUN_FILE, RunFile, STATE_DIR_FILE};
use rustix::{
    fs::{Access, Mode, OFlags},
    net::SocketType,
};
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
    sync::Arc,
    time::SystemTime,
};

const STATE_LOCK: &str = "state.lock";

#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    /// Held against a second run.
    lock: File,
}

impl RunDir {
    /// As [`RunDir::lock`], of one of several in a directory of ours.
    pub(crate) fn lock_in(parent: Option<&Path>, path: &Path) -> Result<RunDir, DirError> {
        if let Some(parent) = parent {
            let wrong = |wrong| DirError { dir: parent.to_owned(), role: DirRole::Run, wrong };
            claim(parent, DirRole::Run).map_err(wrong)?;
        }
        RunDir::lock(path)
    }

    /// Makes the directory if need be and locks it.
    pub(crate) fn lock(path: &Path) -> Result<RunDir, DirError> {
        let wrong = |wrong: Wrong| DirError { dir: path.to_owned(), role: DirRole::Run, wrong };
        let real = claim(path, DirRole::Run).map_err(wrong)?;
        let lock = open_lock(&real.join("lock")).map_err(|it| wrong(Wrong::CannotWrite(it)))?;
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
        remove_files(&self.path);
        for dir in ["jobs", "notify"] {
            match fs::remove_dir_all(self.path.join(dir)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        make(&self.path.join("jobs"), 0o700)?;
        make(&self.path.join("notify"), 0o711)
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

    /// Whose node this is, for those who look for it.
    pub(crate) fn remember_project(&self, project: &Path) -> io::Result<()> {
        let content = project.as_os_str().as_bytes();
        self.files()?.replace(PROJECT_FILE, 0o644, content).map(drop)
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

/// What must not stay after a run: sockets nobody answers at, and what may hold secrets.
pub(crate) fn remove_files(run_dir: &Path) {
    let sockets = ["mainstay.sock", "keeper.sock"];
    // What an agent was writing when it was killed, or keeps room in, may hold some of the last.
    let begun = [".plan.json.new", ".journal.new", ".journal.snapshot"];
    let files = [PLAN_FILE, "journal", RUN_FILE];
    for file in sockets.into_iter().chain(begun).chain(files) {
        let _ = fs::remove_file(run_dir.join(file));
    }
}

/// The state files of jobs, below a run directory.
pub(crate) fn state_files(run_dir: &Path) -> io::Result<Arc<StateDir>> {
    StateDir::open(&run_dir.join("jobs"), Durability::Process).map(Arc::new)
}

/// Whether a run has ever been in it.
pub(super) fn is_run_dir(path: &Path) -> bool {
    path.join("lock").symlink_metadata().is_ok() || path.join(RUN_FILE).symlink_metadata().is_ok()
}

/// A file of ours, and when it was written; nothing else that has its name.
pub(super) fn read_own(path: &Path) -> Option<(Vec<u8>, SystemTime)> {
    use std::{io::Read, os::unix::fs::MetadataExt};
    const LONGEST: u64 = 1 << 20;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let flags = i32::try_from(flags).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some((bytes, metadata.modified().ok()?))
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
    let cleared = ["jobs", "notify", "journal", PLAN_FILE, RUN_FILE];
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

/// Makes a directory if need be, and makes sure that it is ours and closed to others; its real
/// path. Whoever can write in it can put a plan, a socket or a link of their own in the place of
/// ours.
fn claim(path: &Path, role: DirRole) -> Result<PathBuf, Wrong> {
    if is_foreign_link(path) {
        return Err(Wrong::ForeignLink);
    }
    make(path, role.mode()).map_err(Wrong::CannotMake)?;
    let real = path.canonicalize().map_err(Wrong::CannotUse)?;
    let dir = OwnDir::open(&real).map_err(Wrong::CannotUse)?;
    let found = rustix::fs::fstat(&dir).map_err(|it| Wrong::CannotUse(it.into()))?;
    if found.st_uid != rustix::process::geteuid().as_raw() {
        let writable = Access::WRITE_OK | Access::EXEC_OK;
        let inside = rustix::fs::access(&real, writable).is_ok();
        return Err(Wrong::Foreign { uid: found.st_uid, inside });
    }
    if let (DirRole::Run, Some(found)) = (role, not_ours(&real)) {
        return Err(Wrong::Holds(found));
    }
    close_to_others(&real, &dir, found.st_mode, role)?;
    Ok(real)
}

/// One that is sticky serves others on purpose, as /tmp does: it is closed only if it is empty or
/// was ours before.
fn close_to_others(path: &Path, dir: &OwnDir, mode: u32, role: DirRole) -> Result<(), Wrong> {
    let sticky = mode & 0o1000 != 0;
    if mode & 0o022 == 0 {
        return Ok(());
    }
    let empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    if sticky && !is_run_dir(path) && !path.join(STATE_LOCK).exists() && !empty() {
        return Err(Wrong::OpenToAll);
    }
    let closed = mode & 0o7777 & !(0o1022 | (0o777 & !role.mode()));
    rustix::fs::fchmod(dir, Mode::from_raw_mode(closed)).map_err(|it| Wrong::CannotUse(it.into()))
}

/// Opens a file to be locked, and nothing that a link leads to.
fn open_lock(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).custom_flags(flags).open(path)
}

/// Makes sure of a state directory and locks it against another node: two would write into the
/// same files.
pub(crate) fn lock_state(dir: &Path) -> Result<(PathBuf, OwnedFd), DirError> {
    let wrong = |wrong: Wrong| DirError { dir: dir.to_owned(), role: DirRole::State, wrong };
    let real = claim(dir, DirRole::State).map_err(wrong)?;
    let lock = open_lock(&real.join(STATE_LOCK)).map_err(|it| wrong(Wrong::CannotWrite(it)))?;
    match lock.try_lock() {
        Ok(()) => Ok((real, lock.into())),
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
    run_files::set_mode(&temporary, mode)?;
    rustix::net::listen(&socket, 256)?;
    if let Err(error) = run_files::rename(&temporary, path) {
        let _ = run_files::remove(&temporary);
        return Err(error);
    }
    Ok(socket)
}

/// Binds a unix socket in place of whatever is there: for names that are ours alone.
pub(crate) fn bind(path: &Path, kind: SocketType) -> io::Result<OwnedFd> {
    run_files::remove(path)?;
    nonblocking::bind(path, kind)
}
