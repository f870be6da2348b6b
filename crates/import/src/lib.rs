//! Importers: what another supervisor reads, written as a configuration of ours.
//!
//! ```text
//! text ─► entries with line numbers ─► Draft (tables in order, notes where they belong) ─► TOML
//! ```
//!
//! The TOML that comes out loads without an error and runs as the original did. Whatever differs is
//! a comment above the table it belongs to and a [`Note`], with the line of the original: where
//! there is no note, nothing is lost. What cannot be imported at all is an error.

mod config_o_mat;
mod containerpilot;
mod draft;
mod ini;
mod plan_source;
mod process_compose;
mod procfile;
mod supervisord;
mod supvisors;
pub mod xml;
mod yaml;

pub use plan_source::{Loaded, PlanSource, located};

use config_o_mat::ConfDirectory;
use mainstay_config::{Context, Diagnostic, Errors, Source};
use mainstay_core::text::bytes;
use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

/// A file of another supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Procfile,
    Supervisord,
    Supvisors,
    ProcessCompose,
    ContainerPilot,
    ConfigOMat,
}

/// A configuration made of a foreign file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    pub toml: String,
    /// What is not as it was; each is a comment in `toml` as well.
    pub notes: Vec<Note>,
    /// Lines of `toml`, ascending, and where in the original what they say is written.
    pub places: Vec<(usize, String)>,
    /// Files that `toml` names, made of those of the original.
    pub files: Vec<MadeFile>,
}

/// A file that belongs beside the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeFile {
    /// Relative to it.
    pub path: PathBuf,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The file it is about, as it was named.
    pub file: String,
    /// Counted from 1; `None`: about the file as a whole.
    pub line: Option<usize>,
    pub message: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl Format {
    pub const ALL: [Format; 6] = [
        Format::Procfile,
        Format::Supervisord,
        Format::Supvisors,
        Format::ProcessCompose,
        Format::ContainerPilot,
        Format::ConfigOMat,
    ];

    /// As it is written on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Format::Procfile => "procfile",
            Format::Supervisord => "supervisord",
            Format::Supvisors => "supvisors",
            Format::ProcessCompose => "process-compose",
            Format::ContainerPilot => "containerpilot",
            Format::ConfigOMat => "config-o-mat",
        }
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Format, UnknownFormat> {
        let named = Format::ALL.into_iter().find(|format| format.word() == text);
        named.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// Not the name of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a format: use one of {known}", known = Format::ALL.map(Format::word).join(", "))]
pub struct UnknownFormat(String);

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A text, and where it came from: that stands in the notes, and files that it names are looked for
/// beside it.
struct ForeignFile {
    source: Source,
    path: PathBuf,
}

impl ForeignFile {
    fn read(path: &Path) -> Result<ForeignFile, Errors> {
        Ok(ForeignFile { source: Source::read(path)?, path: path.to_owned() })
    }

    /// Its directory, whatever directory we are in.
    fn directory(&self) -> PathBuf {
        let whole = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        whole.parent().map(Path::to_owned).unwrap_or(whole)
    }
}

/// Writes the configuration that does what `text` says. `path` is where it came from.
pub fn import(format: Format, text: &str, path: &Path, ctx: &Context) -> Result<Imported, Errors> {
    import_texts(format, (path, text), &[], ctx)
}

/// As [`import_files`], of texts with the paths that they are said to have.
pub fn import_texts(
    format: Format,
    first: (&Path, &str),
    others: &[(&Path, &str)],
    ctx: &Context,
) -> Result<Imported, Errors> {
    let file = |(path, text): &(&Path, &str)| {
        // For its cap on size and its line numbers.
        let source = Source::text(&bytes::from_os(path.as_os_str()), text)?;
        Ok(ForeignFile { source, path: (*path).to_owned() })
    };
    let others: Result<Vec<ForeignFile>, Errors> = others.iter().map(file).collect();
    import_all(format, &file(&first)?, &others?, ctx)
}

/// As [`import`], of files: those that follow the first go over it, as the original reads them.
pub fn import_files(
    format: Format,
    first: &Path,
    others: &[PathBuf],
    ctx: &Context,
) -> Result<Imported, Errors> {
    // A directory as well.
    if let (Format::ContainerPilot, []) = (format, others) {
        let name = bytes::from_os(first.as_os_str());
        return containerpilot::import(&containerpilot::sources(first)?, &name, ctx);
    }
    if let (Format::ConfigOMat, []) = (format, others) {
        return config_o_mat::import(&ConfDirectory::read(first)?, ctx);
    }
    let others: Result<Vec<ForeignFile>, Errors> =
        others.iter().map(|path| ForeignFile::read(path)).collect();
    import_all(format, &ForeignFile::read(first)?, &others?, ctx)
}

/// As [`import`], of a file.
pub fn import_file(format: Format, path: &Path, ctx: &Context) -> Result<Imported, Errors> {
    import_files(format, path, &[], ctx)
}

fn import_all(
    format: Format,
    first: &ForeignFile,
    others: &[ForeignFile],
    ctx: &Context,
) -> Result<Imported, Errors> {
    match (format, others.first()) {
        (Format::Supervisord, _) => supervisord::import(first, others, ctx),
        (Format::Supvisors, _) => supvisors::import(first, others, ctx),
        (Format::ProcessCompose, _) => process_compose::import(first, others, ctx),
        (Format::Procfile, None) => procfile::import(first, ctx),
        (Format::ContainerPilot, None) => {
            let sources = std::slice::from_ref(&first.source);
            containerpilot::import(sources, &first.source.name, ctx)
        }
        (Format::ConfigOMat, None) => {
            let source = Source::text(&first.source.name, &first.source.text)?;
            config_o_mat::import(&ConfDirectory::of_file(&first.path, source), ctx)
        }
        (Format::Procfile | Format::ContainerPilot | Format::ConfigOMat, Some(second)) => {
            let message = format!("{format} reads one file: this is a second one");
            let help = "import them one by one";
            Err(Diagnostic::error(message).file(&second.source.name).help(help).into())
        }
    }
}

/// A ContainerPilot file with its template rendered, and nothing else done to it.
pub fn containerpilot_render(path: &Path, ctx: &Context) -> Result<String, Errors> {
    containerpilot::render(&containerpilot::sources(path)?, ctx)
}

/// A template of config_o_mat in Jinja, with profiles of these names.
#[must_use]
pub fn config_o_mat_template(erb: &str, profiles: &[&str]) -> String {
    config_o_mat::translated(erb, profiles)
}

/// The control socket that a ContainerPilot file names, however broken the rest of it is.
pub fn containerpilot_socket(path: &Path, ctx: &Context) -> Result<PathBuf, Errors> {
    Ok(containerpilot::socket(&containerpilot::sources(path)?, ctx))
}
