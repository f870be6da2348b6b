//! What an update would change, for people to read.

use super::{
    destination::{Directories, Found},
    difference::difference,
    places,
    render::RenderSet,
};
use crate::{
    renderer::Output,
    store::UnknownSecrets,
    template::{Mask, ShowSecrets},
};
use mainstay_core::{
    name::Name,
    rollout::{StageFailure, Trouble},
};
use std::path::PathBuf;

/// One destination that would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    pub template: Name,
    pub destination: PathBuf,
    /// Unified; of a directory, of each of its files.
    pub difference: String,
}

pub(super) fn preview(wanted: &RenderSet<'_>) -> Result<Vec<Preview>, StageFailure> {
    places::each_its_own(wanted.own(), wanted.set, wanted.plan)?;
    // Whether anything changes only the values tell.
    let real = wanted.render(ShowSecrets::Values)?;
    let named = wanted.render(ShowSecrets::Names)?;
    let mut hidden = wanted.store.mask();
    if let Ok(hidden) = &mut hidden {
        real.iter().for_each(|it| hidden.append(&it.mask));
    }
    let mut all = Vec::new();
    let mut directories = Directories::default();
    for (real, named) in real.iter().zip(&named) {
        let plan = real.plan;
        let failed = |error: std::io::Error| {
            let path = plan.dst.display();
            let name = &plan.name;
            StageFailure::Disk(Trouble(format!("template '{name}': cannot read {path}: {error}")))
        };
        let at = directories.destination(&plan.dst).map_err(failed)?;
        let found = at.found().map_err(failed)?;
        if found.digest() != Some(real.digest) {
            let difference = match &named.output {
                Output::File(new) => shown(&found, &new.bytes, real.output.uses_secret(), &hidden),
                Output::Tree(files) => {
                    let path = |path: &PathBuf| format!("{}\n", plan.dst.join(path).display());
                    files.keys().map(path).collect()
                }
            };
            let (template, destination) = (plan.name.clone(), plan.dst.clone());
            all.push(Preview { template, destination, difference });
        }
    }
    Ok(all)
}

/// What is there is shown without any secret that we ever put there.
fn shown(
    found: &Found,
    new: &[u8],
    uses_secret: bool,
    hidden: &Result<Mask, UnknownSecrets>,
) -> String {
    let was = match (found, hidden) {
        (Found::File { bytes, .. }, Ok(mask)) => mask.apply_bytes(bytes),
        (Found::File { bytes, .. }, Err(_)) if !uses_secret => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        (Found::File { .. }, Err(_)) => {
            return "it differs; what is there is not shown, as its secrets are not known\n".into();
        }
        (Found::Nothing | Found::Link { .. }, _) => String::new(),
    };
    let told = difference(&was, &String::from_utf8_lossy(new));
    match told.is_empty() {
        true => "a secret changes\n".to_owned(),
        false => told,
    }
}
