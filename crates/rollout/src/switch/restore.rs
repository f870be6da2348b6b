//! The way back: what was there before, whatever is there now.

use super::{
    copies::CopiesOfSet,
    destination::{Destination, Directories},
};
use crate::{crash, store::Store};
use mainstay_core::rollout::{RestoreOutcome, StagedFile, Trouble};
use mainstay_sys::state_dir::StateDir;
use std::{
    io,
    path::{Path, PathBuf},
};

/// Edits of one file that are set aside.
const MOST_ASIDE: usize = 100;

pub(super) fn restore(store: &Store, files: &[StagedFile]) -> RestoreOutcome {
    let mut outcome = RestoreOutcome::default();
    let mut copies = CopiesOfSet::default();
    let mut directories = Directories::default();
    for file in files {
        let restored = directories
            .destination(&file.destination)
            .and_then(|at| put_back(store, file, &at, &mut copies));
        match restored {
            Ok(None) => {}
            Ok(Some(aside)) => outcome.set_aside.push((file.destination.clone(), aside)),
            Err(error) => {
                let path = file.destination.display();
                let trouble = Trouble(format!("cannot put {path} back: {error}"));
                outcome.failed.push((file.template.clone(), trouble));
            }
        }
    }
    for (path, dir) in directories.iter() {
        if let Err(error) = dir.sync().and_then(|()| crash::point()) {
            let trouble = Trouble(format!("cannot sync {}: {error}", path.display()));
            let here = |file: &&StagedFile| file.destination.parent() == Some(path);
            let of = files.iter().filter(here).map(|it| (it.template.clone(), trouble.clone()));
            outcome.failed.extend(of);
        }
    }
    outcome
}

/// Where an edit of somebody else is now.
fn put_back(
    store: &Store,
    file: &StagedFile,
    at: &Destination,
    copies: &mut CopiesOfSet,
) -> io::Result<Option<PathBuf>> {
    crash::point()?;
    let is = at.found()?.digest();
    let was = file.old.as_ref().map(|old| old.digest);
    // Of a change of permissions alone both are the same: it is put back in any case.
    if is == was && was != Some(file.new) {
        return Ok(None);
    }
    // An edit in whose place nothing of ours has come is what there was before.
    let is_ours = [Some(file.new), was, file.unconfirmed].contains(&is);
    if !is_ours && at.staged_digest(&file.staged)?.is_some() {
        return Ok(None);
    }
    let aside = match is {
        Some(_) if !is_ours => Some(set_aside(at)?),
        Some(_) | None => None,
    };
    match &file.old {
        Some(old) => copies.put_back(store, &file.template, old, at)?,
        None => {
            at.dir.remove_all(&at.name)?;
            crash::point()?;
        }
    }
    Ok(aside)
}

/// By a rename, to a name that is free.
fn set_aside(at: &Destination) -> io::Result<PathBuf> {
    let name = free_name(&at.dir, &at.name)?;
    at.dir.put(&at.name, &name)?;
    crash::point()?;
    Ok(at.path.with_file_name(name))
}

fn free_name(dir: &StateDir, name: &Path) -> io::Result<PathBuf> {
    for number in 1..=MOST_ASIDE {
        let mut free = name.as_os_str().to_owned();
        free.push(format!(".edited-{number}"));
        if dir.entry(&free)?.is_none() {
            return Ok(free.into());
        }
    }
    Err(io::Error::other(format!("{MOST_ASIDE} edits were set aside already")))
}
