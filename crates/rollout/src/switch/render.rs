//! All templates of a set, rendered.

use super::destination::digest_of_parts;
use crate::{
    profile,
    renderer::{Output, RenderRequest, Renderer, TemplateRequest, template_files},
    store::{ContentLoss, Store},
    template::{Mask, ProfileScope, ShowSecrets, source},
};
use mainstay_core::{
    name::Name,
    plan::{RolloutPlan, TemplatePlan},
    rollout::{Content, Digest, StageFailure, StageSet, Trouble},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fmt::Display,
    fs, iter,
    path::{Path, PathBuf},
    sync::Arc,
};

type Contents = BTreeMap<Name, Arc<Content>>;
type Masks = BTreeMap<Name, Mask>;

#[derive(Debug)]
pub(super) struct RenderedTemplate<'a> {
    pub(super) plan: &'a TemplatePlan,
    pub(super) expected: Option<Digest>,
    pub(super) output: Output,
    pub(super) digest: Digest,
    pub(super) mask: Mask,
}

impl Output {
    pub(super) fn uses_secret(&self) -> bool {
        match self {
            Output::File(rendered) => rendered.uses_secret,
            Output::Tree(files) => files.values().any(|it| it.uses_secret),
        }
    }

    pub(super) fn digest(&self) -> Digest {
        match self {
            Output::File(rendered) => profile::digest(&[&rendered.bytes]),
            Output::Tree(files) => digest_of_parts(
                files.iter().map(|(path, it)| (path.as_path(), profile::digest(&[&it.bytes]))),
            ),
        }
    }
}

/// What is rendered of what.
pub(super) struct RenderSet<'a> {
    pub(super) store: &'a Store,
    pub(super) renderer: &'a Renderer,
    pub(super) set: &'a StageSet,
    /// Contents that are not in the store.
    pub(super) own: &'a [PathBuf],
    pub(super) unstored: &'a BTreeMap<Name, Arc<Content>>,
    pub(super) plan: &'a RolloutPlan,
    pub(super) node: &'a Value,
}

impl<'a> RenderSet<'a> {
    /// What is the node's own.
    pub(super) fn own(&self) -> impl Iterator<Item = &'a Path> {
        let state_dir = self.store.path().parent().unwrap_or(self.store.path());
        iter::once(state_dir).chain(self.own.iter().map(PathBuf::as_path))
    }

    /// All of them, or the first that cannot be rendered.
    pub(super) fn render(
        &self,
        show: ShowSecrets,
    ) -> Result<Vec<RenderedTemplate<'a>>, StageFailure> {
        let (profiles, masks) = self.profiles()?;
        let wanted = self.wanted()?;
        let template = |(plan, _): &(&TemplatePlan, _)| TemplateRequest {
            name: plan.name.clone(),
            src: plan.src.clone(),
            profiles: plan.profiles.clone(),
        };
        let templates = wanted.iter().map(template).collect();
        let request = RenderRequest { show, node: self.node.clone(), profiles, templates };
        let outputs = self.renderer.render(&request)?;
        let rendered = wanted.into_iter().zip(outputs).map(|((plan, expected), output)| {
            let mut mask = Mask::default();
            plan.profiles.iter().filter_map(|it| masks.get(it)).for_each(|it| mask.append(it));
            let digest = output.digest();
            RenderedTemplate { plan, expected, output, digest, mask }
        });
        Ok(rendered.collect())
    }

    /// Of each version of the set its content, and what hides its secrets.
    fn profiles(&self) -> Result<(Contents, Masks), StageFailure> {
        let (mut profiles, mut masks) = (BTreeMap::new(), BTreeMap::new());
        for (name, version) in &self.set.profiles {
            let content = match self.unstored.get(name) {
                Some(content) => content.clone(),
                None => {
                    let lost = |it: ContentLoss| match it.is_gone() {
                        true => StageFailure::Lost {
                            profile: name.clone(),
                            version: Box::new(version.clone()),
                            trouble: Trouble(it.to_string()),
                        },
                        false => disk(it),
                    };
                    Arc::new(self.store.content(name, version).map_err(lost)?)
                }
            };
            let mask = ProfileScope::secrets_of(&content)
                .map_err(|error| disk(format!("profile '{name}': {error}")))?;
            masks.insert(name.clone(), mask);
            profiles.insert(name.clone(), content);
        }
        Ok((profiles, masks))
    }

    fn wanted(&self) -> Result<Vec<(&'a TemplatePlan, Option<Digest>)>, StageFailure> {
        let by_name: BTreeMap<&Name, &TemplatePlan> =
            self.plan.templates.iter().map(|it| (&it.name, it)).collect();
        let wanted = self.set.templates.iter().map(|wanted| {
            let plan = by_name.get(&wanted.template).copied().ok_or_else(|| {
                let template = wanted.template.clone();
                let why = format!("template '{template}': it is not in the configuration any more");
                StageFailure::Render { template, trouble: Trouble(why) }
            })?;
            Ok((plan, wanted.expected))
        });
        wanted.collect()
    }
}

/// Of the text of a template, or of all files of a directory; what they include from beside them is
/// not part of it. `None`: it cannot be read.
#[must_use]
pub fn source_digest(src: &Path) -> Option<Digest> {
    let one = |path: &Path| Some(profile::digest(&[source::read(path).ok()?.as_bytes()]));
    if !fs::metadata(src).is_ok_and(|it| it.is_dir()) {
        return one(src);
    }
    let paths = template_files(src).ok()?;
    let parts: Option<Vec<(PathBuf, Digest)>> =
        paths.into_iter().map(|path| Some((path.clone(), one(&src.join(path))?))).collect();
    Some(digest_of_parts(parts?.iter().map(|(path, digest)| (path.as_path(), *digest))))
}

fn disk(error: impl Display) -> StageFailure {
    StageFailure::Disk(Trouble(error.to_string()))
}
