//! What a rollout keeps on disk, private: the value that core keeps, and the contents of versions.
//!
//! ```text
//!  STATE/rollout/           0700
//!    kept                   0600, as all below: what core keeps, with the record of an update
//!    contents/PROFILE.…     content and secrets of a version
//!    staging                what was staged where, see `switch`
//!    old/…                  what was replaced, see `switch`
//!    KIND.aside…            files that could not be used
//! ```
//!
//! Every file is replaced as a whole and is on the disk when that returns. One that is torn or
//! somebody else's is set aside and told; what it held is got afresh.

mod contents;
mod state_file;

#[cfg(feature = "fuzz")]
pub(crate) use contents::fuzz_content;
pub use contents::{ContentLoss, UnknownSecrets};
pub use state_file::BadState;
#[cfg(feature = "fuzz")]
pub(crate) use state_file::with_checksum;
use state_file::{decode, encode};

use crate::crash;
use mainstay_sys::{
    entries::{Entry, EntryKind},
    own_dir::OwnDir,
    state_dir::{Durability, StateDir},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    ffi::OsStr,
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// The longest file of state that is read.
const LONGEST: u64 = 512 << 20;

/// A file that could not be used, and is now beside its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} was set aside as {}: {why}", path.display(), aside.display())]
pub struct SetAside {
    pub path: PathBuf,
    pub aside: PathBuf,
    pub why: BadState,
}

/// The value of a file and the bytes after it, if it could be used; else where it is now.
type ReadState<T> = (Option<(T, Vec<u8>)>, Option<SetAside>);

/// The directory of a rollout.
#[derive(Debug, Clone)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// Below the state directory of a node; made if need be, and closed to everybody else.
    ///
    /// # Errors
    /// As mkdir(2), and when something in its place is somebody else's.
    pub fn open(state_dir: &Path) -> io::Result<Store> {
        let own = OwnDir::open(state_dir)?.dir(OsStr::new("rollout"), 0o700)?;
        let path = state_dir.join("rollout");
        fs::set_permissions(&path, Permissions::from_mode(0o700))?;
        for name in ["contents", "old"] {
            own.dir(OsStr::new(name), 0o700)?;
        }
        Ok(Store { path })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What core keeps, as it was last saved; nothing before that, or when it had to be set aside.
    ///
    /// # Errors
    /// As open(2) and read(2).
    pub fn load<T: DeserializeOwned>(&self) -> io::Result<(Option<T>, Option<SetAside>)> {
        let (found, set_aside) = self.read(Path::new("kept"), "kept")?;
        Ok((found.map(|(value, _)| value), set_aside))
    }

    /// On the disk when it returns.
    ///
    /// # Errors
    /// As write(2), fsync(2) and rename(2): what was kept before is still there.
    pub fn save<T: Serialize>(&self, kept: &T) -> io::Result<()> {
        self.write(Path::new("kept"), "kept", kept, &[])
    }

    pub(crate) fn write<T: Serialize>(
        &self,
        name: &Path,
        kind: &str,
        value: &T,
        body: &[u8],
    ) -> io::Result<()> {
        let file = encode(kind, value, body)?;
        let (dir, name) = self.dir_of(name)?;
        dir.replace(name, 0o600, &file)?;
        crash::point()
    }

    /// `None`: there is no such file, or none that could be used.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        name: &Path,
        kind: &str,
    ) -> io::Result<ReadState<T>> {
        let (dir, file_name) = self.dir_of(name)?;
        let why = match dir.read_up_to(&file_name, LONGEST) {
            Ok(file) => match decode(kind, &file) {
                Ok((value, body)) => return Ok((Some((value, body.to_vec())), None)),
                Err(why) => why,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, None)),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => BadState::Foreign,
            Err(error) => match dir.entry(&file_name)? {
                Some(Entry { kind: EntryKind::File, .. }) | None => return Err(error),
                Some(_) => BadState::Foreign,
            },
        };
        let path = self.path.join(name);
        let place = StateDir::open(&self.path, Durability::Machine)?;
        let aside = self.path.join(dir.set_aside(&file_name, &place, kind)?);
        Ok((None, Some(SetAside { path, aside, why })))
    }

    /// Gone, if it was there.
    pub(crate) fn remove(&self, name: &Path) -> io::Result<()> {
        let (dir, name) = self.dir_of(name)?;
        match dir.remove(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    pub(crate) fn dir(&self, name: &str) -> io::Result<StateDir> {
        StateDir::open(&self.path.join(name), Durability::Machine)
    }

    fn dir_of(&self, name: &Path) -> io::Result<(StateDir, PathBuf)> {
        let dir = self.path.join(name.parent().unwrap_or(Path::new("")));
        let dir = StateDir::open(&dir, Durability::Machine)?;
        Ok((dir, name.file_name().unwrap_or_default().into()))
    }
}
