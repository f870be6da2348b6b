//! Copies of what an update replaces, all in one file: one sync for all of them.

use super::destination::{Destination, Found};
use crate::{crash, profile, store::Store};
use mainstay_core::{
    name::Name,
    rollout::{OldFile, StagedFile},
    text,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
};

const KIND: &str = "old";

/// What lay at a destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OldEntry {
    File {
        mode: u32,
        uid: u32,
        gid: u32,
        start: usize,
        length: usize,
    },
    Link {
        #[serde(with = "text::path")]
        target: PathBuf,
    },
}

/// Copies that are not on the disk yet.
#[derive(Debug, Default)]
pub(super) struct NewCopies {
    entries: BTreeMap<Name, OldEntry>,
    bytes: Vec<u8>,
}

/// Copies of one update, as they were kept.
#[derive(Debug)]
pub(super) struct Copies {
    entries: BTreeMap<Name, OldEntry>,
    bytes: Vec<u8>,
}

impl NewCopies {
    pub(super) fn add(&mut self, template: &Name, found: &Found) {
        let entry = match found {
            Found::Nothing => return,
            Found::File { bytes, entry } => {
                let (start, length) = (self.bytes.len(), bytes.len());
                self.bytes.extend_from_slice(bytes);
                OldEntry::File { mode: entry.mode, uid: entry.uid, gid: entry.gid, start, length }
            }
            Found::Link { target, .. } => OldEntry::Link { target: target.clone() },
        };
        self.entries.insert(template.clone(), entry);
    }

    /// Where they are from now on; nothing of nothing.
    pub(super) fn keep(&self, store: &Store) -> io::Result<PathBuf> {
        let names = serde_json::to_vec(&self.entries)?;
        let name = format!("old/{}", &profile::digest(&[&names, &self.bytes]).to_string()[..32]);
        if !self.entries.is_empty() {
            store.write(Path::new(&name), KIND, &self.entries, &self.bytes)?;
        }
        Ok(store.path().join(name))
    }
}

impl Copies {
    /// # Errors
    /// When it is not there, or not what was kept.
    fn read(store: &Store, path: &Path) -> io::Result<Copies> {
        let name = Path::new("old").join(path.file_name().unwrap_or_default());
        match store.read(&name, KIND)? {
            (Some((entries, bytes)), _) => Ok(Copies { entries, bytes }),
            (None, Some(aside)) => Err(io::Error::other(aside)),
            (None, None) => Err(io::Error::new(io::ErrorKind::NotFound, "its copy is gone")),
        }
    }

    /// Puts one back, by a rename.
    fn put_back(&self, template: &Name, at: &Destination) -> io::Result<()> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "its copy is gone");
        let beside = at.beside("old");
        match self.entries.get(template).ok_or_else(gone)? {
            OldEntry::File { mode, uid, gid, start, length } => {
                let end = start.checked_add(*length).ok_or_else(gone)?;
                let bytes = self.bytes.get(*start..end).ok_or_else(gone)?;
                let mut file = at.dir.create(&beside, 0o600)?;
                file.write_all(bytes)?;
                at.dir.permit(&beside, *mode, Some((*uid, *gid)))?;
                file.sync_all()?;
            }
            OldEntry::Link { target } => {
                at.dir.remove_all(&beside)?;
                at.dir.link(target, &beside)?;
            }
        }
        crash::point()?;
        at.dir.put(&beside, &at.name)?;
        crash::point()
    }
}

/// The copies that a set needs, each file of them read once.
#[derive(Debug, Default)]
pub(super) struct CopiesOfSet(BTreeMap<PathBuf, Copies>);

impl CopiesOfSet {
    pub(super) fn put_back(
        &mut self,
        store: &Store,
        template: &Name,
        old: &OldFile,
        at: &Destination,
    ) -> io::Result<()> {
        if !self.0.contains_key(&old.copy) {
            self.0.insert(old.copy.clone(), Copies::read(store, &old.copy)?);
        }
        match self.0.get(&old.copy) {
            Some(copies) => copies.put_back(template, at),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Removes all but those of these files.
pub(super) fn retain(store: &Store, files: &[StagedFile]) -> io::Result<()> {
    let needed: BTreeSet<OsString> = files
        .iter()
        .filter_map(|file| Some(file.old.as_ref()?.copy.file_name()?.to_owned()))
        .collect();
    let dir = store.dir("old")?;
    for name in dir.names()? {
        if !needed.contains(&name) {
            dir.remove_all(&name)?;
        }
    }
    Ok(())
}
