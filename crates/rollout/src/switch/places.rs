//! Where templates put what they make: nothing that somebody needs may lie there.
//!
//! Two paths may lead to one place: through a link, or a directory that is mounted twice. So places
//! are compared by the directory itself and the name in it, just before they are used. What is
//! written in the configuration is compared there as well, which tells it earlier.

use mainstay_core::{
    name::Name,
    plan::{ProfilePlan, ProfileSource, RolloutPlan, TemplatePlan},
    rollout::{StageFailure, StageSet, Trouble},
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// A directory, and a name in it.
type PlaceId = (DirId, OsString);

/// As the kernel follows.
const MOST_LINKS: usize = 40;

/// Device and inode.
type DirId = (u64, u64);

/// The directories of many paths, each looked at once.
#[derive(Default)]
struct PlaceIds {
    of: BTreeMap<PathBuf, Option<DirId>>,
    /// Of a directory, itself and all above it, whatever links lead there.
    above: BTreeMap<PathBuf, Vec<DirId>>,
}

/// A directory in which nobody else's file may lie.
struct Closed<'a> {
    id: DirId,
    /// Which template makes all that is in it.
    by: Option<&'a Name>,
    what: String,
}

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
    fn directory(&mut self, path: &Path) -> Option<DirId> {
        if let Some(known) = self.of.get(path) {
            return *known;
        }
        let found = fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
        self.of.insert(path.to_owned(), found);
        found
    }

    /// The directories that a path lies in.
    fn above(&mut self, path: &Path) -> &[DirId] {
        let parent = path.parent().unwrap_or(path);
        if !self.above.contains_key(parent) {
            let real = fs::canonicalize(parent).unwrap_or_default();
            let ids = real.ancestors().filter_map(|it| self.directory(it)).collect();
            self.above.insert(parent.to_owned(), ids);
        }
        &self.above[parent]
    }

    /// `None`: its directory is not there, which whoever needs it tells.
    fn of(&mut self, path: &Path) -> Option<PlaceId> {
        let (parent, name) = (path.parent()?, path.file_name()?);
        Some((self.directory(parent)?, name.to_owned()))
    }
}

impl<'a> ClaimedPlaces<'a> {
    /// With each link on the way to it.
    fn add(&mut self, path: &'a Path, what: String) {
        let claim = Claim { path, what };
        for place in on_the_way(path) {
            if let Some(id) = self.ids.of(&place) {
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

/// The links that a path leads through, and where it ends.
fn on_the_way(path: &Path) -> Vec<PathBuf> {
    let mut rest: VecDeque<OsString> = path.iter().map(ToOwned::to_owned).collect();
    let (mut at, mut places) = (PathBuf::from("/"), Vec::new());
    while let Some(name) = rest.pop_front() {
        match name.as_encoded_bytes() {
            b"/" => at = PathBuf::from("/"),
            b"." => {}
            b".." => drop(at.pop()),
            _ => {
                let next = at.join(&name);
                match fs::read_link(&next) {
                    Ok(target) if places.len() < MOST_LINKS => {
                        places.push(next);
                        target.iter().rev().for_each(|it| rest.push_front(it.to_owned()));
                    }
                    Ok(_) | Err(_) => at = next,
                }
            }
        }
    }
    places.push(at);
    places
}

/// # Errors
/// When a template of the set would take the place of what another one makes or is made of, of the
/// file of a profile, of the configuration, or lie in a directory of ours or of another template.
pub(super) fn each_its_own<'a>(
    own: impl Iterator<Item = &'a Path>,
    set: &StageSet,
    plan: &'a RolloutPlan,
) -> Result<(), StageFailure> {
    let wanted: BTreeSet<&Name> = set.templates.iter().map(|it| &it.template).collect();
    let mut places = ClaimedPlaces::default();
    for path in &plan.configuration {
        places.add(path, "the configuration".to_owned());
    }
    for ProfilePlan { name, source, .. } in &plan.profiles {
        let files = match source {
            ProfileSource::File { path } => [Some(path), None],
            ProfileSource::Http { token_file, ca, .. } => [token_file.as_ref(), ca.as_ref()],
            ProfileSource::AppConfig { .. } | ProfileSource::Agent { .. } => [None, None],
        };
        for path in files.into_iter().flatten() {
            places.add(path, format!("a file of profile '{name}'"));
        }
    }
    for template in &plan.templates {
        places.add(&template.src, format!("what template '{}' is made of", template.name));
    }
    let mut closed = Vec::new();
    for path in own {
        places.add(path, "the node's own".to_owned());
        let what = format!("{}, which is the node's own", path.display());
        closed.extend(places.ids.directory(path).map(|id| Closed { id, by: None, what }));
    }
    for TemplatePlan { name, dst, .. } in plan.templates.iter().filter(|it| it.src.is_dir()) {
        let what = format!("{}, which template '{name}' makes", dst.display());
        closed.extend(places.ids.directory(dst).map(|id| Closed { id, by: Some(name), what }));
    }
    let mut made: BTreeMap<PlaceId, &TemplatePlan> = BTreeMap::new();
    for template in &plan.templates {
        let Some(id) = places.ids.of(&template.dst) else { continue };
        let is_wanted = wanted.contains(&template.name);
        let above = places.ids.above(&template.dst);
        let lies_in = closed.iter().find(|it| above.contains(&it.id));
        if let Some(Closed { what, .. }) = lies_in.filter(|it| {
            it.by != Some(&template.name)
                && (is_wanted || it.by.is_some_and(|it| wanted.contains(it)))
        }) {
            return Err(clash(template, format!("lies in {what}")));
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

fn clash(template: &TemplatePlan, how: String) -> StageFailure {
    let (name, dst) = (&template.name, template.dst.display());
    StageFailure::Disk(Trouble(format!("template '{name}': {dst} {how}: give it another dst")))
}
