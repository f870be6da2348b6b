//! Where templates put what they make: nothing that somebody needs may lie there.
//!
//! Two paths may lead to one place: through a link, or a directory that is mounted twice. So places
//! are compared by the directory itself and the name in it, just before they are used. What is
//! written in the configuration is compared there as well, which tells it earlier.

use crate::store::Store;
use mainstay_core::{
    name::Name,
    plan::{ProfileSource, RolloutPlan, TemplatePlan},
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

/// What somebody needs, and where it is written.
#[derive(Clone)]
struct Claim<'a> {
    path: &'a Path,
    what: String,
}

/// What lies where; of a directory, one thing that lies in it.
#[derive(Default)]
struct ClaimedPlaces<'a> {
    ids: PlaceIds,
    claims: BTreeMap<PlaceId, Claim<'a>>,
    holders: BTreeMap<PlaceId, Claim<'a>>,
}

impl PlaceIds {
    fn directory(&mut self, path: &Path) -> Option<(u64, u64)> {
        if let Some(known) = self.0.get(path) {
            return *known;
        }
        let found = fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
        self.0.insert(path.to_owned(), found);
        found
    }

    /// `None`: its directory is not there, which whoever needs it tells.
    fn of(&mut self, path: &Path) -> Option<PlaceId> {
        let (parent, name) = (path.parent()?, path.file_name()?);
        Some((self.directory(parent)?, name.to_owned()))
    }
}

impl<'a> ClaimedPlaces<'a> {
    /// With what it leads to, if it is a link.
    fn add(&mut self, path: &'a Path, what: String) {
        let is_link = fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink());
        let target = is_link.then(|| fs::canonicalize(path).ok()).flatten();
        let claim = Claim { path, what };
        for place in [Some(path), target.as_deref()].into_iter().flatten() {
            if let Some(id) = self.ids.of(place) {
                self.claims.entry(id).or_insert_with(|| claim.clone());
            }
            for above in place.ancestors().skip(1) {
                if let Some(id) = self.ids.of(above) {
                    self.holders.entry(id).or_insert_with(|| claim.clone());
                }
            }
        }
    }

    fn clash(&self, id: &PlaceId) -> Option<(&'static str, &Claim<'a>)> {
        let claimed = self.claims.get(id).map(|it| ("is the same place as", it));
        claimed.or_else(|| self.holders.get(id).map(|it| ("holds", it)))
    }
}

/// # Errors
/// When a template of the set would take the place of what another one makes or is made of, of the
/// file of a profile, of the configuration, or of what is kept.
pub(super) fn each_its_own(
    store: &Store,
    set: &StageSet,
    plan: &RolloutPlan,
) -> Result<(), StageFailure> {
    let wanted: BTreeSet<&Name> = set.templates.iter().map(|it| &it.template).collect();
    let mut places = ClaimedPlaces::default();
    for path in &plan.configuration {
        places.add(path, "the configuration".to_owned());
    }
    for profile in &plan.profiles {
        if let ProfileSource::File { path } = &profile.source {
            places.add(path, format!("the file of profile '{}'", profile.name));
        }
    }
    for template in &plan.templates {
        places.add(&template.src, format!("what template '{}' is made of", template.name));
    }
    let ours = store.path().parent().unwrap_or(store.path());
    places.add(ours, "the state directory".to_owned());
    let ours = places.ids.directory(ours);
    let mut made: BTreeMap<PlaceId, &TemplatePlan> = BTreeMap::new();
    for template in &plan.templates {
        let Some(id) = places.ids.of(&template.dst) else { continue };
        let is_wanted = wanted.contains(&template.name);
        if is_wanted && is_below(&mut places.ids, &template.dst, ours) {
            return Err(clash(template, "lies in the state directory".to_owned()));
        }
        if let Some((how, claim)) = places.clash(&id).filter(|_| is_wanted) {
            let Claim { path, what } = claim;
            return Err(clash(template, format!("{how} {}, which is {what}", path.display())));
        }
        let other = made.get(&id).filter(|it| is_wanted || wanted.contains(&it.name));
        if let Some(TemplatePlan { name, dst, .. }) = other {
            let path = dst.display();
            let how = format!("is the same place as {path}, which template '{name}' makes");
            return Err(clash(template, how));
        }
        made.insert(id, template);
    }
    Ok(())
}

/// Whatever links lead there.
fn is_below(ids: &mut PlaceIds, path: &Path, directory: Option<(u64, u64)>) -> bool {
    let parent = path.parent().and_then(|it| fs::canonicalize(it).ok());
    let above = parent.as_deref().map(|it| it.ancestors().collect::<Vec<_>>());
    directory.is_some()
        && above.is_some_and(|it| it.iter().any(|it| ids.directory(it) == directory))
}

fn clash(template: &TemplatePlan, how: String) -> StageFailure {
    let (name, dst) = (&template.name, template.dst.display());
    StageFailure::Disk(Trouble(format!("template '{name}': {dst} {how}: give it another dst")))
}
