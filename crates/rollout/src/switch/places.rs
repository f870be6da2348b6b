//! Two paths may lead to one place: through a link, or a directory that is mounted twice. So places
//! are compared by the directory itself and the name in it.

use mainstay_core::{
    name::Name,
    plan::TemplatePlan,
    rollout::{StageFailure, StageSet, Trouble},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Device and inode of a directory, and a name in it.
type PlaceId = ((u64, u64), OsString);

/// The directories of many paths, each looked at once.
#[derive(Default)]
struct PlaceIds(BTreeMap<PathBuf, Option<(u64, u64)>>);

impl PlaceIds {
    /// `None`: its directory is not there, which whoever needs it tells.
    fn of(&mut self, path: &Path) -> Option<PlaceId> {
        let (parent, name) = (path.parent()?, path.file_name()?);
        let known = self.0.get(parent).copied();
        let directory = known.unwrap_or_else(|| {
            let found = fs::metadata(parent).ok().map(|it| (it.dev(), it.ino()));
            self.0.insert(parent.to_owned(), found);
            found
        });
        Some((directory?, name.to_owned()))
    }
}

/// # Errors
/// When a template of the set would take the place of what another one makes, or is made of.
pub(super) fn each_its_own(set: &StageSet, templates: &[TemplatePlan]) -> Result<(), StageFailure> {
    let wanted: BTreeSet<&Name> = set.templates.iter().map(|it| &it.template).collect();
    let mut ids = PlaceIds::default();
    let mut sources: BTreeMap<PlaceId, &TemplatePlan> = BTreeMap::new();
    for plan in templates {
        sources.extend(ids.of(&plan.src).map(|id| (id, plan)));
    }
    let mut destinations: BTreeMap<PlaceId, &TemplatePlan> = BTreeMap::new();
    for plan in templates {
        let Some(id) = ids.of(&plan.dst) else { continue };
        let is_wanted =
            |other: &TemplatePlan| wanted.contains(&plan.name) || wanted.contains(&other.name);
        if let Some(source) = sources.get(&id).filter(|_| wanted.contains(&plan.name)) {
            return Err(clash(plan, "is made from", &source.name, &source.src));
        }
        if let Some(other) = destinations.get(&id).filter(|it| is_wanted(it)) {
            return Err(clash(plan, "makes", &other.name, &other.dst));
        }
        destinations.insert(id, plan);
    }
    Ok(())
}

fn clash(plan: &TemplatePlan, how: &str, other: &Name, path: &Path) -> StageFailure {
    let (name, dst, path) = (&plan.name, plan.dst.display(), path.display());
    let why = format!(
        "template '{name}': {dst} is the same place as {path}, which template '{other}' {how}: give \
         one of them another dst"
    );
    StageFailure::Disk(Trouble(why))
}
