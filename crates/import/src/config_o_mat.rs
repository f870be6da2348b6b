//! config_o_mat: every `*.conf` of a directory in YAML, one over the other, and ERB templates beside
//! them.
//!
//! ```text
//! DIR/*.conf ─► one tree ─► Settings ─► [rollout], [profiles.x], [templates.x], [services.x]
//! DIR/templates/x ─► erb (pieces) ─► ruby (expressions) ─► templates/x.j2
//! ```
//!
//! What config_o_mat would refuse is an error here as well.

mod erb;
mod lexer;
mod ruby;
mod settings;
mod template;
mod write;

use super::{
    Imported,
    draft::Draft,
    yaml::{self, YamlNode, YamlValue},
};
use mainstay_config::{Context, Diagnostic, Errors, Source};
use mainstay_core::text::bytes;
use settings::Settings;
use std::{
    fs,
    path::{Path, PathBuf},
};
use write::Writing;

const MOST_FILES: usize = 1000;
const NOTHING: &str =
    "there is neither a profile nor a template in this config_o_mat configuration";
const NOTHING_HELP: &str =
    "name the directory that config_o_mat is given by -c, with its *.conf files";

/// What is read: the files in their order, and where templates are looked for.
pub(super) struct ConfDirectory {
    pub(super) name: String,
    pub(super) sources: Vec<Source>,
    pub(super) templates: PathBuf,
}

impl ConfDirectory {
    /// A directory, or one file of it.
    pub(super) fn read(path: &Path) -> Result<ConfDirectory, Errors> {
        let name = bytes::from_os(path.as_os_str());
        if !path.is_dir() {
            return Ok(ConfDirectory::of_file(path, Source::read(path)?));
        }
        let unreadable = |error: std::io::Error| {
            Errors::from(Diagnostic::error(format!("cannot be read: {error}")).file(&name))
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let found = entry.map_err(unreadable)?.path();
            if found.as_os_str().as_encoded_bytes().ends_with(b".conf") && found.is_file() {
                files.push(found);
            }
        }
        if files.len() > MOST_FILES {
            let message = format!("more than {MOST_FILES} files that end in .conf");
            return Err(Diagnostic::error(message).file(&name).into());
        }
        files.sort();
        let sources: Result<Vec<Source>, Errors> =
            files.iter().map(|it| Source::read(it)).collect();
        Ok(ConfDirectory { name, sources: sources?, templates: path.join("templates") })
    }

    pub(super) fn of_file(path: &Path, source: Source) -> ConfDirectory {
        let beside = path.parent().unwrap_or(Path::new(""));
        let name = source.name.clone();
        ConfDirectory { name, sources: vec![source], templates: beside.join("templates") }
    }
}

pub(super) fn import(directory: &ConfDirectory, ctx: &Context) -> Result<Imported, Errors> {
    let mut tree: Option<YamlNode> = None;
    let mut problems = Vec::new();
    for (number, source) in directory.sources.iter().enumerate() {
        match parsed(source, number) {
            Ok(None) => {}
            Ok(Some(more)) => {
                tree = Some(match tree {
                    None => more,
                    Some(base) => merged(base, more),
                });
            }
            Err(problem) => problems.push(*problem),
        }
    }
    if !problems.is_empty() {
        return Err(Errors::of_file(problems));
    }
    let nothing = || Diagnostic::error(NOTHING).file(&directory.name).help(NOTHING_HELP);
    let Some(tree) = tree else { return Err(nothing().into()) };
    let settings = Settings::read(&tree, &directory.sources)?;
    if settings.profiles.is_empty() && settings.templates.is_empty() {
        return Err(nothing().into());
    }
    let draft = Draft::new("a config_o_mat configuration", &directory.name);
    Writing::new(&settings, directory, ctx, draft).finish()
}

/// A template of config_o_mat as one of ours, with profiles of these names.
pub(super) fn translated(erb: &str, profiles: &[&str]) -> String {
    let named: Vec<(String, String)> =
        profiles.iter().map(|it| ((*it).to_owned(), (*it).to_owned())).collect();
    template::translate(erb, &named).text
}

/// `None`: there is nothing in it.
fn parsed(source: &Source, number: usize) -> Result<Option<YamlNode>, Box<Diagnostic>> {
    let says = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    if !source.text.lines().any(says) {
        return Ok(None);
    }
    let wrong = |line: usize, why: &str| {
        let help = "correct it: config_o_mat would not start with it";
        Box::new(Diagnostic::error(why).file(format!("{}:{line}", source.name)).help(help))
    };
    let tree = yaml::parse(&source.text, number).map_err(|it| wrong(it.line, &it.why))?;
    match tree.value {
        YamlValue::Map(_) => Ok(Some(tree)),
        YamlValue::Scalar { .. } | YamlValue::List(_) => {
            Err(wrong(tree.line, "it is no map of keys"))
        }
    }
}

/// Maps key by key, lists put together; of anything else the later one holds.
fn merged(base: YamlNode, over: YamlNode) -> YamlNode {
    let YamlNode { file, line, value } = base;
    let value = match (value, over.value) {
        (YamlValue::Map(mut pairs), YamlValue::Map(more)) => {
            for (name, node) in more {
                match pairs.iter().position(|(known, _)| *known == name) {
                    None => pairs.push((name, node)),
                    Some(at) => {
                        let (_, known) = pairs.remove(at);
                        pairs.insert(at, (name, merged(known, node)));
                    }
                }
            }
            YamlValue::Map(pairs)
        }
        (YamlValue::List(mut items), YamlValue::List(more)) => {
            items.extend(more);
            YamlValue::List(items)
        }
        (_, value) => return YamlNode { file: over.file, line: over.line, value },
    };
    YamlNode { file, line, value }
}
