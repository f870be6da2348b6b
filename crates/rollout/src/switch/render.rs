//! All templates of a set, rendered: one file each, or all files of a directory.
//!
//! Of a directory each file is a template; an ending `.j2` is dropped, and what begins with `.` or
//! `_` is there to be included.

use super::destination::digest_of_parts;
use crate::{
    profile,
    store::Store,
    template::{
        Cause, Mask, ProfileScope, Rendered, Scope, ShowSecrets, Template, TemplateError, source,
    },
};
use mainstay_core::{
    name::Name,
    plan::TemplatePlan,
    rollout::{Content, Digest, StageFailure, StageSet, Trouble},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fmt::Display,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Of one directory.
const MOST_FILES: usize = 1000;
const DEEPEST: usize = 8;

/// What a template makes.
#[derive(Debug)]
pub(super) enum Output {
    File(Rendered),
    /// By paths below the destination.
    Tree(BTreeMap<PathBuf, Rendered>),
}

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

/// All of them, or the first that cannot be rendered. `unstored`: contents that are not in the store.
pub(super) fn render<'a>(
    store: &Store,
    set: &StageSet,
    unstored: &BTreeMap<Name, Arc<Content>>,
    templates: &'a [TemplatePlan],
    node: &Value,
    show: ShowSecrets,
) -> Result<Vec<RenderedTemplate<'a>>, StageFailure> {
    let mut profiles = BTreeMap::new();
    for (name, version) in &set.profiles {
        let content = match unstored.get(name) {
            Some(content) => content.clone(),
            None => Arc::new(store.content(name, version).map_err(disk)?),
        };
        let scope = ProfileScope::read(&content)
            .map_err(|error| disk(format!("profile '{name}': {error}")))?;
        profiles.insert(name, scope);
    }
    let rendered = set.templates.iter().map(|wanted| {
        let plan = templates
            .iter()
            .find(|it| it.name == wanted.template)
            .ok_or_else(|| failed(&wanted.template, "it is not in the configuration any more"))?;
        let (output, mask) = render_one(plan, &profiles, node, show)?;
        let digest = output.digest();
        Ok(RenderedTemplate { plan, expected: wanted.expected, output, digest, mask })
    });
    rendered.collect()
}

fn render_one(
    plan: &TemplatePlan,
    profiles: &BTreeMap<&Name, ProfileScope>,
    node: &Value,
    show: ShowSecrets,
) -> Result<(Output, Mask), StageFailure> {
    let mut used = Vec::new();
    for name in &plan.profiles {
        let scope = profiles.get(name).ok_or_else(|| {
            failed(&plan.name, format!("its profile '{name}' has no version yet"))
        })?;
        used.push((name, scope));
    }
    let scope = Scope::new(node, &used, show).map_err(|error| failed(&plan.name, error))?;
    let one = |path: &Path| {
        Template::compile(&plan.name, path).and_then(|template| template.render(&scope)).map_err(
            |error| StageFailure::Render {
                template: plan.name.clone(),
                trouble: Trouble(error.to_string()),
            },
        )
    };
    let output = match fs::metadata(&plan.src).is_ok_and(|it| it.is_dir()) {
        false => Output::File(one(&plan.src)?),
        true => {
            let mut paths = Vec::new();
            list(&plan.src, Path::new(""), DEEPEST, &mut paths).map_err(|error| {
                let cause = Cause::Unreadable(format!("{}: {error}", plan.src.display()));
                failed_as(TemplateError { template: plan.name.clone(), place: None, cause })
            })?;
            let files = paths.into_iter().map(|path| {
                let rendered = one(&plan.src.join(&path))?;
                Ok((without_ending(path), rendered))
            });
            Output::Tree(files.collect::<Result<_, StageFailure>>()?)
        }
    };
    Ok((output, scope.mask().clone()))
}

/// Of the text of a template, or of all files of a directory; what they include from beside them is
/// not part of it. `None`: it cannot be read.
#[must_use]
pub fn source_digest(src: &Path) -> Option<Digest> {
    let one = |path: &Path| Some(profile::digest(&[source::read(path).ok()?.as_bytes()]));
    if !fs::metadata(src).is_ok_and(|it| it.is_dir()) {
        return one(src);
    }
    let mut paths = Vec::new();
    list(src, Path::new(""), DEEPEST, &mut paths).ok()?;
    paths.sort();
    let parts: Option<Vec<(PathBuf, Digest)>> =
        paths.into_iter().map(|path| Some((path.clone(), one(&src.join(path))?))).collect();
    Some(digest_of_parts(parts?.iter().map(|(path, digest)| (path.as_path(), *digest))))
}

fn list(root: &Path, below: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let name = entry?.file_name();
        if name.as_encoded_bytes().starts_with(b".") || name.as_encoded_bytes().starts_with(b"_") {
            continue;
        }
        let path = below.join(name);
        match fs::metadata(root.join(&path))?.is_dir() {
            true if depth == 0 => return Err(io::Error::other("it is nested too deep")),
            true => list(root, &path, depth - 1, paths)?,
            false => paths.push(path),
        }
        if paths.len() > MOST_FILES {
            return Err(io::Error::other(format!("it has more than {MOST_FILES} files")));
        }
    }
    Ok(())
}

fn without_ending(path: PathBuf) -> PathBuf {
    match path.extension().is_some_and(|it| it == "j2") {
        true => path.with_extension(""),
        false => path,
    }
}

fn failed(template: &Name, why: impl Display) -> StageFailure {
    let trouble = Trouble(format!("template '{template}': {why}"));
    StageFailure::Render { template: template.clone(), trouble }
}

fn failed_as(error: TemplateError) -> StageFailure {
    StageFailure::Render { template: error.template.clone(), trouble: Trouble(error.to_string()) }
}

fn disk(error: impl Display) -> StageFailure {
    StageFailure::Disk(Trouble(error.to_string()))
}
