//! Staging: everything that may fail, before anything can be seen.

use super::{
    copies::NewCopies,
    destination::{Destination, Directories, Found},
    difference::difference,
    owner::{Access, access},
    places,
    render::{RenderSet, RenderedTemplate},
    staging::{self, StagedEntry},
};
use crate::{crash, renderer::Output, store::Store, template::ShowSecrets};
use mainstay_core::{
    name::Name,
    plan::TemplatePlan,
    rollout::{OldFile, StageFailure, StagedFile, StagedSet, Trouble},
};
use mainstay_sys::state_dir::StateDir;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// A destination that changes.
struct Change<'a> {
    rendered: RenderedTemplate<'a>,
    at: Destination,
    found: Found,
    access: Access,
}

pub(super) fn stage(wanted: &RenderSet<'_>) -> Result<StagedSet, StageFailure> {
    let RenderSet { store, set, plan, .. } = wanted;
    places::each_its_own(wanted.own(), set, plan)?;
    let rendered = wanted.render(ShowSecrets::Values)?;
    let (mut changes, mut unchanged, mut edited) = (Vec::new(), BTreeMap::new(), Vec::new());
    let mut directories = Directories::default();
    for rendered in rendered {
        let plan = rendered.plan;
        let failed = |error| disk(plan, &error);
        let at = directories.destination(&plan.dst).map_err(failed)?;
        let found = at.found().map_err(failed)?;
        let access = access(plan, &found, rendered.output.uses_secret()).map_err(failed)?;
        if is_in_place(&rendered, &found, access) {
            unchanged.insert(plan.name.clone(), rendered.digest);
            continue;
        }
        if let Some(told) = edit(store, &rendered, &found) {
            edited.push((plan.name.clone(), told));
        }
        changes.push(Change { rendered, at, found, access });
    }
    if !edited.is_empty() && !set.force {
        let (templates, told): (Vec<Name>, Vec<String>) = edited.into_iter().unzip();
        return Err(StageFailure::Edited { templates, trouble: Trouble(told.join("\n")) });
    }
    let changed = write(store, changes, &set.open)?;
    Ok(StagedSet { changed, unchanged })
}

/// Content, permissions and owner are what they should be.
fn is_in_place(rendered: &RenderedTemplate<'_>, found: &Found, access: Access) -> bool {
    if found.digest() != Some(rendered.digest) {
        return false;
    }
    match (found, &rendered.output) {
        (Found::File { entry, .. }, Output::File(_)) => {
            entry.mode == access.mode
                && access.owner.is_none_or(|owner| owner == (entry.uid, entry.gid))
        }
        (Found::Link { tree, .. }, Output::Tree(_)) => tree.is_some(),
        (Found::Nothing | Found::File { .. } | Found::Link { .. }, _) => false,
    }
}

/// What somebody else has done to a destination since we put something there.
fn edit(store: &Store, rendered: &RenderedTemplate<'_>, found: &Found) -> Option<String> {
    let (expected, is) = (rendered.expected?, found.digest()?);
    if is == expected || is == rendered.digest {
        return None;
    }
    let path = rendered.plan.dst.display();
    // What is there may have secrets of an earlier version.
    let told = match (found, &rendered.output, store.mask()) {
        (Found::File { bytes, .. }, Output::File(new), Ok(mut mask)) => {
            mask.append(&rendered.mask);
            let text = |bytes: &[u8]| mask.apply_bytes(bytes);
            format!(
                "; to overwrite it would change:\n{}",
                difference(&text(bytes), &text(&new.bytes))
            )
        }
        (Found::Nothing | Found::File { .. } | Found::Link { .. }, _, _) => String::new(),
    };
    Some(format!("{path} was edited by somebody else since the last version{told}"))
}

/// The copies, the list, then all files; synced together at the end.
fn write(
    store: &Store,
    changes: Vec<Change<'_>>,
    open: &[StagedFile],
) -> Result<Vec<StagedFile>, StageFailure> {
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let mut copies = NewCopies::default();
    changes.iter().for_each(|it| copies.add(&it.rendered.plan.name, &it.found));
    let ours = |error: io::Error| {
        let path = store.path().display();
        StageFailure::Disk(Trouble(format!("cannot write in {path}: {error}")))
    };
    let copy = copies.keep(store).map_err(ours)?;
    let entries: Vec<StagedEntry> = changes.iter().map(Change::entry).collect();
    list(store, &entries, open).map_err(ours)?;
    let written = changes
        .iter()
        .try_for_each(|change| change.write().map_err(|error| disk(change.rendered.plan, &error)));
    let synced = written.and_then(|()| sync(&changes));
    if let Err(failure) = synced {
        // What cannot be removed now is on the list.
        let _ = crash::point().and_then(|()| staging::retain(store, open));
        return Err(failure);
    }
    Ok(changes.iter().map(|change| change.staged_file(&copy)).collect())
}

/// Those of before that still have a directory in place stay on the list.
fn list(store: &Store, entries: &[StagedEntry], open: &[StagedFile]) -> io::Result<()> {
    staging::retain(store, open)?;
    let mut all = staging::read(store)?;
    all.retain(|old| !entries.contains(old));
    all.extend_from_slice(entries);
    staging::write(store, &all)
}

fn sync(changes: &[Change<'_>]) -> Result<(), StageFailure> {
    let mut synced: BTreeSet<Option<&Path>> = BTreeSet::new();
    for change in changes {
        if synced.insert(change.at.path.parent()) {
            change.at.dir.sync().map_err(|error| disk(change.rendered.plan, &error))?;
        }
    }
    crash::point().map_err(|error| StageFailure::Disk(Trouble(error.to_string())))
}

impl Change<'_> {
    fn entry(&self) -> StagedEntry {
        StagedEntry {
            destination: self.at.path.clone(),
            staged: self.at.path_beside("new"),
            mode: self.access.mode,
            version: self.version(),
        }
    }

    /// The name of a directory of this version.
    fn version(&self) -> Option<PathBuf> {
        match &self.rendered.output {
            Output::File(_) => None,
            Output::Tree(_) => {
                let digest = &self.rendered.digest.to_string()[..16];
                let version = self.at.beside(digest);
                // What is in place is left alone, also if somebody has edited it.
                match &self.found {
                    Found::Link { target, .. } if *target == version => {
                        Some(self.at.beside(&format!("{digest}-2")))
                    }
                    Found::Nothing | Found::File { .. } | Found::Link { .. } => Some(version),
                }
            }
        }
    }

    fn write(&self) -> io::Result<()> {
        let staged = self.at.beside("new");
        self.at.dir.remove_all(&staged)?;
        match (&self.rendered.output, self.version()) {
            (Output::Tree(files), Some(version)) => {
                self.write_tree(files, &version)?;
                self.at.dir.link(&version, &staged)?;
            }
            (Output::File(rendered), _) => {
                let file = self.at.dir.create(&staged, 0o600)?;
                self.fill(&self.at.dir, &staged, file, &rendered.bytes, 0o600)?;
            }
            (Output::Tree(_), None) => {}
        }
        crash::point()
    }

    fn write_tree(
        &self,
        files: &BTreeMap<PathBuf, crate::template::Rendered>,
        version: &Path,
    ) -> io::Result<()> {
        // One of the same content is in place, or was left by a crash: what it is nobody knows.
        self.at.dir.remove_all(version)?;
        let secret = self.rendered.output.uses_secret();
        let mode = if secret { 0o750 } else { 0o755 };
        self.at.dir.make_dir(version, mode)?;
        let root = self.at.dir.open_dir(version)?;
        let mut dirs: BTreeMap<PathBuf, StateDir> = BTreeMap::new();
        for (path, rendered) in files {
            let parent = path.parent().unwrap_or(Path::new("")).to_owned();
            make_dirs(&root, &parent, mode, &mut dirs)?;
            let dir = dirs.get(&parent).unwrap_or(&root);
            let name = path.file_name().unwrap_or_default();
            let file = dir.create(name, 0o600)?;
            self.fill(dir, Path::new(name), file, &rendered.bytes, self.access.mode)?;
        }
        dirs.values().try_for_each(StateDir::sync)?;
        root.sync()
    }

    /// With its owner from the start: he is who reads it.
    fn fill(
        &self,
        dir: &StateDir,
        name: &Path,
        mut file: File,
        bytes: &[u8],
        mode: u32,
    ) -> io::Result<()> {
        file.write_all(bytes)?;
        dir.permit(name, mode, self.access.owner)?;
        file.sync_all()
    }

    fn staged_file(&self, copy: &Path) -> StagedFile {
        let old = self.found.digest().map(|digest| OldFile { digest, copy: copy.to_owned() });
        StagedFile {
            template: self.rendered.plan.name.clone(),
            destination: self.at.path.clone(),
            staged: self.at.path_beside("new"),
            new: self.rendered.digest,
            old,
            unconfirmed: None,
        }
    }
}

fn make_dirs(
    root: &StateDir,
    path: &Path,
    mode: u32,
    dirs: &mut BTreeMap<PathBuf, StateDir>,
) -> io::Result<()> {
    if path.as_os_str().is_empty() || dirs.contains_key(path) {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(Path::new(""));
    make_dirs(root, parent, mode, dirs)?;
    let above = dirs.get(parent).unwrap_or(root);
    let name = path.file_name().unwrap_or_default();
    above.make_dir(name, mode)?;
    let made = above.open_dir(name)?;
    dirs.insert(path.to_owned(), made);
    Ok(())
}

fn disk(plan: &TemplatePlan, error: &io::Error) -> StageFailure {
    let (name, dst) = (&plan.name, plan.dst.display());
    StageFailure::Disk(Trouble(format!("template '{name}': cannot stage {dst}: {error}")))
}
