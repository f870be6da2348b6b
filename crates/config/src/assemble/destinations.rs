//! Where templates put what they make: each in a place of its own, which is neither what it is made
//! of nor what a rollout needs for itself.
//!
//! Paths are compared as they are written, without `.` and `..`; what links make of them is seen when
//! the files are staged.

use crate::{
    keys::rollout::template::PlacedTemplate,
    reader::{Place, Reader},
};
use mainstay_core::plan::{ProfilePlan, ProfileSource};
use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

/// What has a path already.
struct Claim {
    what: String,
    /// Of another destination.
    at: Option<Place>,
}

/// By paths that are [`plain`].
struct ClaimedPaths(BTreeMap<PathBuf, Claim>);

pub(super) fn judge(
    r: &mut Reader<'_>,
    templates: &[(PlacedTemplate, Place)],
    profiles: &[ProfilePlan],
) {
    let mut claimed = ClaimedPaths(BTreeMap::new());
    for path in r.files() {
        claimed.add(&path, "the configuration file".to_owned(), None);
    }
    for profile in profiles {
        if let ProfileSource::File { path } = &profile.source {
            claimed.add(path, format!("the file of profile '{}'", profile.name), None);
        }
    }
    for (template, _) in templates {
        let plan = &template.plan;
        claimed.add(&plan.src, format!("the src of template '{}'", plan.name), None);
    }
    for (template, _) in templates {
        let (plan, at) = (&template.plan, template.dst);
        r.file = at.file;
        r.within(&format!("templates.{}.dst", plan.name), |r| {
            one(r, &plan.dst, at, &claimed);
        });
        claimed.add(&plan.dst, format!("the dst of template '{}'", plan.name), Some(at));
    }
}

fn one(r: &mut Reader<'_>, dst: &Path, at: Place, claimed: &ClaimedPaths) -> Option<()> {
    let Some(name) = dst.file_name() else {
        let help = "name the file, as in dst = \"/etc/nginx/nginx.conf\"";
        return r.wrong(at.span, "it is no name of a file", help);
    };
    if is_ours(name.as_encoded_bytes()) {
        let help = "give it another name";
        return r.wrong(at.span, "a rollout uses such names for itself", help);
    }
    let (how, claim) = claimed.clash(dst)?;
    let (message, help) = (format!("it {how} {}", claim.what), "use another dst");
    match claim.at {
        Some(other) => {
            r.wrong_beside(at.span, (other, "the other one is written here"), message, help)
        }
        None => r.wrong(at.span, message, help),
    }
}

impl ClaimedPaths {
    /// The first to have a path keeps it.
    fn add(&mut self, path: &Path, what: String, at: Option<Place>) {
        self.0.entry(plain(path)).or_insert(Claim { what, at });
    }

    /// What has the path, one above it or one below it. A directory is replaced as a whole, so that
    /// nobody else's files may be in it.
    fn clash(&self, path: &Path) -> Option<(&'static str, &Claim)> {
        let path = plain(path);
        if let Some(claimed) = self.0.get(&path) {
            return Some(("is", claimed));
        }
        if let Some(claimed) = path.ancestors().find_map(|above| self.0.get(above)) {
            return Some(("lies in", claimed));
        }
        let (below, claimed) = self.0.range(path.clone()..).next()?;
        below.starts_with(&path).then_some(("holds", claimed))
    }
}

/// What is staged, what a version of a directory lies in, and edits that are set aside.
fn is_ours(name: &[u8]) -> bool {
    let has = |part: &[u8]| name.windows(part.len()).any(|it| it == part);
    let number = name.rsplit(|byte| *byte == b'-').next().unwrap_or_default();
    let is_aside = name.strip_suffix(number).is_some_and(|it| it.ends_with(b".edited-"))
        && !number.is_empty()
        && number.iter().all(u8::is_ascii_digit);
    is_aside || (name.starts_with(b".") && has(b".mainstay-"))
}

/// Without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}
