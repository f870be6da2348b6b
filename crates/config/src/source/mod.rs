//! Sources: the texts of a configuration, and how an offset in one becomes a line and a column.

mod find;

pub use find::find;

use crate::diag::{Diagnostic, Errors, Spot, printable};
use std::{
    fs,
    io::{self, Read},
    ops::Range,
    path::{Path, PathBuf},
};

/// Far beyond any configuration; keeps a wrong path (a disk image, /dev/zero) from filling memory.
const LARGEST_FILE: u64 = 8 << 20;
const LARGEST_TOTAL: u64 = 64 << 20;
/// How much of a long line is shown, in characters.
const SHOWN: usize = 120;

/// The texts of a configuration with the paths they came from.
#[derive(Debug)]
pub struct Sources {
    files: Vec<Source>,
    /// What kept others from being read.
    unread: Vec<Diagnostic>,
}

/// One text, and how an offset in it becomes a place.
#[derive(Debug)]
pub struct Source {
    pub name: String,
    pub text: String,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl Sources {
    /// One text that did not come from a file.
    pub fn text(name: &str, text: &str) -> Result<Sources, Errors> {
        Source::text(name, text).map(Sources::one)
    }

    /// A file, or the `*.toml` files of a directory in lexical order. Hidden files are left alone:
    /// editors and volume mounts keep their own there.
    pub fn read(path: &Path) -> Result<Sources, Errors> {
        let meta = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if !meta.is_dir() {
            return Ok(Sources::one(Source::read(path)?));
        }
        let files = toml_files(path).map_err(|error| unreadable(path, &error))?;
        if files.is_empty() {
            let none = Diagnostic::error("no *.toml file in this directory")
                .file(path.to_string_lossy())
                .help("put the configuration there, or name another place with -c");
            return Err(none.into());
        }
        let (mut sources, mut unread) = (Vec::new(), Vec::new());
        let mut total = 0;
        for file in files {
            match Source::read(&file) {
                Ok(source) => {
                    total += source.text.len() as u64;
                    sources.push(source);
                }
                Err(errors) => unread.extend(errors.iter().cloned()),
            }
            if total > LARGEST_TOTAL {
                return Err(too_large(&path.to_string_lossy()).into());
            }
        }
        Ok(Sources { files: sources, unread })
    }

    fn one(source: Source) -> Sources {
        Sources { files: vec![source], unread: Vec::new() }
    }

    /// Files of the directory that could not be read, and why.
    pub(crate) fn unread(&self) -> &[Diagnostic] {
        &self.unread
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Source)> {
        self.files.iter().enumerate()
    }

    pub(crate) fn get(&self, file: usize) -> Option<&Source> {
        self.files.get(file)
    }
}

impl Source {
    fn new(name: String, text: String) -> Source {
        let lines =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Source { name, text, lines }
    }

    /// A text that did not come from a file.
    pub fn text(name: &str, text: &str) -> Result<Source, Errors> {
        if text.len() as u64 > LARGEST_FILE {
            return Err(too_large(name).into());
        }
        Ok(Source::new(name.to_owned(), text.to_owned()))
    }

    /// The text of one file.
    pub fn read(path: &Path) -> Result<Source, Errors> {
        let name = path.to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        let meta = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        // A pipe that nobody writes to would be waited for. What the caller has opened itself is
        // its own affair.
        if !meta.is_file() && !is_own_descriptor(path) {
            let error = io::Error::other("it is not a regular file");
            return Err(unreadable(path, &error).into());
        }
        fs::File::open(path)
            .and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes))
            .map_err(|error| unreadable(path, &error))?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(too_large(&name).into());
        }
        let bad = match String::from_utf8(bytes) {
            Ok(text) => return Ok(Source::new(name, text)),
            Err(bad) => bad,
        };
        let at = bad.utf8_error().valid_up_to();
        let byte = bad.as_bytes().get(at).copied().unwrap_or_default();
        // What comes before the byte is valid, so its offset stays true in the lossy text.
        let source = Source::new(name, String::from_utf8_lossy(bad.as_bytes()).into_owned());
        let found = Diagnostic::error(format!("byte 0x{byte:02x} is not UTF-8 text"))
            .help("save the file as UTF-8")
            .at(&source, at..at + 1);
        Err(found.into())
    }

    /// The line an offset is on, counted from 0.
    #[must_use]
    pub fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    #[must_use]
    pub fn spot(&self, span: Range<usize>) -> Spot {
        let at = floor(&self.text, span.start);
        let line = self.line(at);
        let start = self.lines.get(line).copied().unwrap_or_default();
        let rest = self.text.get(start..).unwrap_or_default();
        let whole = rest.split('\n').next().unwrap_or_default().trim_end_matches('\r');
        // Only one line is shown: a longer mistake is marked to its end.
        let inside = (at - start).min(whole.len());
        let end = floor(&self.text, span.end).saturating_sub(start).clamp(inside, whole.len());
        let before = whole.get(..inside).unwrap_or_default().chars().count();
        let marked = whole.get(inside..end).unwrap_or_default().chars().count().max(1);
        let skipped = if before + marked > SHOWN { before.saturating_sub(SHOWN / 4) } else { 0 };
        let cut = Cut { before: skipped > 0, after: whole.chars().count() > skipped + SHOWN };
        let shown: String = whole.chars().skip(skipped).take(SHOWN).collect();
        let (lead, tail) = (if cut.before { "…" } else { "" }, if cut.after { "…" } else { "" });
        let indent = before - skipped + usize::from(cut.before);
        Spot {
            line: line + 1,
            column: before + 1,
            text: format!("{lead}{}{tail}", printable(&shown.replace('\t', " "))),
            indent,
            width: marked.min(SHOWN.saturating_sub(before - skipped).max(1)),
        }
    }
}

/// `/dev/stdin` and the like: `mainstay import … | mainstay check -c /dev/stdin`.
fn is_own_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc/self/fd")
}

struct Cut {
    before: bool,
    after: bool,
}

fn floor(text: &str, offset: usize) -> usize {
    text.floor_char_boundary(offset)
}

fn toml_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let path = entry.path();
        if !hidden && path.extension().is_some_and(|ext| ext == "toml") && !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Secrets and variables are small; anything else is the wrong file.
const LARGEST_SMALL: u64 = 1 << 20;

/// The text of a file that a configuration refers to, or why there is none.
pub(crate) fn read_small(path: &Path) -> Result<String, String> {
    // A pipe or a terminal might never answer.
    let regular = fs::metadata(path).map_err(|error| error.to_string())?.is_file();
    if !regular {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(LARGEST_SMALL + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST_SMALL {
        return Err("it is larger than 1 MiB".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error(format!("cannot read the configuration: {error}"))
        .file(path.to_string_lossy())
        .help("check the path and its permissions")
}

fn too_large(name: &str) -> Diagnostic {
    Diagnostic::error("the configuration is too large: a file may have 8 MiB, a directory 64 MiB")
        .file(name)
        .help("check that this is the right path")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(text: &str, span: Range<usize>) -> Spot {
        Source::new("x".into(), text.into()).spot(span)
    }

    #[test]
    fn columns_count_characters_and_not_bytes() {
        let found = spot("a = 1\nü = \"é\"\n", 11..15);
        assert_eq!((found.line, found.column, found.indent), (2, 5, 4));
        assert_eq!(found.text, "ü = \"é\"");
    }

    #[test]
    fn a_mistake_over_several_lines_is_marked_on_its_first() {
        let found = spot("a = [\n1,\n2]\n", 4..11);
        assert_eq!((found.text.as_str(), found.width), ("a = [", 1));
    }

    #[test]
    fn the_end_of_a_text_is_a_place_too() {
        for text in ["", "a", "a\n", "ü", "a\r\n"] {
            let found = spot(text, text.len()..text.len() + 7);
            assert_eq!(found.width, 1, "{text:?}");
        }
    }

    #[test]
    fn a_long_line_is_cut_around_the_mistake() {
        let line = format!("{}WRONG{}", "x".repeat(1000), "y".repeat(1000));
        let found = spot(&line, 1000..1005);
        assert_eq!(found.column, 1001);
        let marked: String = found.text.chars().skip(found.indent).take(found.width).collect();
        assert_eq!(marked, "WRONG");
        assert!(found.text.chars().count() < 130);
    }
}
