//! What is made of a request: one file for each template, or all files of a directory.
//!
//! Of a directory each file is a template; an ending `.j2` is dropped, and what begins with `.` or
//! `_` is there to be included.

use super::{
    RenderRequest, TemplateRequest,
    pieces::put,
    protocol::{RenderAnswer, SourceFile, Work, put_compiled},
};
use crate::template::{Cause, ProfileScope, Rendered, Scope, Template, TemplateError};
use mainstay_core::{
    name::Name,
    rollout::{StageFailure, Trouble},
};
use std::{
    collections::BTreeMap,
    fmt::Display,
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

/// Of one directory.
const MOST_FILES: usize = 1000;
const DEEPEST: usize = 8;

/// Why there are no more answers.
enum Stop {
    Failure(StageFailure),
    /// Nobody hears them.
    Unheard(io::Error),
}

/// Reads a request and answers it. `before_each` is called before each template.
pub(super) fn serve(
    input: impl Read,
    mut output: impl Write,
    before_each: impl Fn() -> io::Result<()>,
) -> io::Result<()> {
    match Work::read(input)? {
        Work::Render(request) => match render(&request, &mut output, before_each) {
            Ok(()) => {}
            Err(Stop::Failure(failure)) => RenderAnswer::of_failure(failure).put(&mut output)?,
            Err(Stop::Unheard(error)) => return Err(error),
        },
        Work::Compile(files) => compile(&files, &mut output, before_each)?,
    }
    output.flush()
}

fn compile(
    files: &[SourceFile],
    output: &mut impl Write,
    before_each: impl Fn() -> io::Result<()>,
) -> io::Result<()> {
    for SourceFile { template, path } in files {
        // Whoever listens counts what has come before an end.
        output.flush()?;
        before_each()?;
        let compiled = Template::compile(template, path).and_then(|it| it.variables());
        put_compiled(output, &compiled)?;
    }
    Ok(())
}

fn render(
    request: &RenderRequest,
    output: &mut impl Write,
    before_each: impl Fn() -> io::Result<()>,
) -> Result<(), Stop> {
    let mut profiles = BTreeMap::new();
    for (name, content) in &request.profiles {
        let scope = ProfileScope::read(content)
            .map_err(|error| StageFailure::Disk(Trouble(format!("profile '{name}': {error}"))))?;
        profiles.insert(name, scope);
    }
    RenderAnswer::Ready.put(output)?;
    for template in &request.templates {
        // Whoever listens counts what has come before an end.
        output.flush()?;
        before_each()?;
        render_one(request, template, &profiles, output)?;
    }
    Ok(())
}

fn render_one(
    request: &RenderRequest,
    template: &TemplateRequest,
    profiles: &BTreeMap<&Name, ProfileScope>,
    output: &mut impl Write,
) -> Result<(), Stop> {
    let TemplateRequest { name, src, profiles: uses } = template;
    let mut used = Vec::new();
    for profile in uses {
        let scope = profiles
            .get(profile)
            .ok_or_else(|| failed(name, format!("its profile '{profile}' has no version yet")))?;
        used.push((profile, scope));
    }
    let scope = Scope::new(&request.node, &used, request.show).map_err(|it| failed(name, it))?;
    let one = |path: &Path| -> Result<Rendered, StageFailure> {
        let rendered = Template::compile(name, path).and_then(|it| it.render(&scope));
        rendered.map_err(failed_as)
    };
    let tree = fs::metadata(src).is_ok_and(|it| it.is_dir());
    if tree {
        for path in files(src).map_err(|error| {
            let cause = Cause::Unreadable(format!("{}: {error}", src.display()));
            failed_as(TemplateError { template: name.clone(), place: None, cause })
        })? {
            put_file(output, without_ending(path.clone()), &one(&src.join(path))?)?;
        }
    } else {
        put_file(output, PathBuf::new(), &one(src)?)?;
    }
    Ok(RenderAnswer::Made { tree }.put(output)?)
}

fn put_file(output: &mut impl Write, below: PathBuf, rendered: &Rendered) -> io::Result<()> {
    RenderAnswer::File { below, uses_secret: rendered.uses_secret }.put(output)?;
    put(output, &rendered.bytes)
}

/// The templates of a directory, by paths below it, in their order.
pub(crate) fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    list(root, Path::new(""), DEEPEST, &mut paths)?;
    paths.sort();
    Ok(paths)
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

impl From<StageFailure> for Stop {
    fn from(failure: StageFailure) -> Stop {
        Stop::Failure(failure)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Unheard(error)
    }
}
