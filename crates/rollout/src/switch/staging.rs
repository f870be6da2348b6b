//! The list of what was staged where: on the disk before the first of it is, so that whatever a
//! crash leaves beside a destination is found again.

use super::destination::Directories;
use crate::{crash, store::Store};
use mainstay_core::{rollout::StagedFile, text};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

const NAME: &str = "staging";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StagedEntry {
    #[serde(with = "text::path")]
    pub(super) destination: PathBuf,
    #[serde(with = "text::path")]
    pub(super) staged: PathBuf,
    /// What a file may be used for once it is in place.
    pub(super) mode: u32,
    /// Of a directory: the version that the link leads to.
    #[serde(default, with = "text::path")]
    pub(super) version: Option<PathBuf>,
}

/// One that cannot be used is as good as none: what it named is found by its own name, or stays.
pub(super) fn read(store: &Store) -> io::Result<Vec<StagedEntry>> {
    let (found, _) = store.read(Path::new(NAME), NAME)?;
    Ok(found.map_or_else(Vec::new, |(entries, _)| entries))
}

pub(super) fn write(store: &Store, entries: &[StagedEntry]) -> io::Result<()> {
    store.write(Path::new(NAME), NAME, &entries, &[])
}

/// Removes all that was staged but these, and the versions of directories that nothing leads to.
pub(super) fn retain(store: &Store, files: &[StagedFile]) -> io::Result<()> {
    let needed: BTreeSet<&Path> = files.iter().map(|file| file.staged.as_path()).collect();
    let entries = read(store)?;
    let mut left = Vec::new();
    let mut directories = Directories::default();
    for entry in &entries {
        if needed.contains(entry.staged.as_path()) {
            left.push(entry.clone());
            continue;
        }
        crash::point()?;
        // A directory that is gone took it along.
        let Ok(at) = directories.destination(&entry.destination) else { continue };
        if let Some(staged) = entry.staged.file_name() {
            at.dir.remove_all(staged)?;
        }
        let Some(version) = &entry.version else { continue };
        // In place, or in the place that an update under way goes back to.
        let in_use = at.dir.link_target(&at.name).is_ok_and(|it| it == *version)
            || files.iter().any(|file| file.destination == entry.destination);
        match in_use {
            true => left.push(entry.clone()),
            false => at.dir.remove_all(version)?,
        }
    }
    match () {
        () if left == entries => Ok(()),
        () if left.is_empty() => store.remove(Path::new(NAME)),
        () => write(store, &left),
    }
}
