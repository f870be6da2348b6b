//! The switch: each staged file takes the place of its destination.

use super::{
    destination::{Destination, Directories, Found},
    staging,
};
use crate::{crash, store::Store};
use mainstay_core::rollout::{StagedFile, Trouble};
use mainstay_sys::entries::EntryKind;
use std::{collections::BTreeMap, io, path::Path};

pub(super) fn switch(store: &Store, files: &[StagedFile]) -> Result<(), Trouble> {
    let told = |path: &Path, error: io::Error| {
        Trouble(format!("cannot put {} in place: {error}", path.display()))
    };
    let entries = staging::read(store).map_err(|error| told(store.path(), error))?;
    let modes: BTreeMap<&Path, u32> =
        entries.iter().map(|entry| (entry.staged.as_path(), entry.mode)).collect();
    let mut directories = Directories::default();
    for file in files {
        let failed = |error| told(&file.destination, error);
        let at = directories.destination(&file.destination).map_err(failed)?;
        put_in_place(file, &at, modes.get(file.staged.as_path()).copied()).map_err(failed)?;
    }
    for (path, dir) in directories.iter() {
        dir.sync().and_then(|()| crash::point()).map_err(|error| told(path, error))?;
    }
    Ok(())
}

fn put_in_place(file: &StagedFile, at: &Destination, mode: Option<u32>) -> io::Result<()> {
    let found = at.found()?;
    let staged = file.staged.file_name().unwrap_or_default();
    match at.staged_digest(&file.staged)? {
        Some(digest) if digest == file.new => {}
        // An earlier try has put it in place.
        _ if found.digest() == Some(file.new) => return Ok(()),
        Some(_) => return Err(io::Error::other("what was staged is not what is there now")),
        None => return Err(io::Error::other("what was staged is gone")),
    }
    let (is, old) = (found.digest(), file.old.as_ref().map(|old| old.digest));
    let is_unconfirmed = is.is_some() && is == file.unconfirmed;
    if is != old && is != Some(file.new) && !is_unconfirmed {
        return Err(io::Error::other("somebody else has edited it meanwhile"));
    }
    if at.dir.entry(staged)?.is_some_and(|entry| entry.kind == EntryKind::File) {
        let mode = mode.unwrap_or(match &found {
            Found::File { entry, .. } => entry.mode,
            Found::Nothing | Found::Link { .. } => 0o600,
        });
        at.dir.permit(staged, mode, None)?;
    }
    at.dir.put(staged, &at.name)?;
    crash::point()
}
