//! Sources: the texts of a configuration, and how an offset in one becomes a line and a column.

mod find;
mod small;

pub use find::find;
pub(crate) use small::read_small;

use crate::diag::{Diagnostic, Errors, Spot};
use mainstay_core::text::bytes;
use std::{
    fs,
    io::{self, Read},
    ops::Range,
    path::{Path, PathBuf},
};

/// Far beyond any configuration; keeps a wrong path (a disk image, /dev/zero) from filling memory.
const LARGEST_FILE: u64 = 8 << 20;
const LARGEST_TOTAL: u64 = 64 << 20;

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
                .file(bytes::from_os(path.as_os_str()))
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
                return Err(too_large(&bytes::from_os(path.as_os_str())).into());
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

    /// The text of one file. Its name may be any bytes.
    pub fn read(path: &Path) -> Result<Source, Errors> {
        let name = bytes::from_os(path.as_os_str());
        let mut content = Vec::new();
        let meta = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        // A pipe that nobody writes to would be waited for. What the caller has opened itself is
        // its own affair.
        if !meta.is_file() && !is_own_descriptor(path) {
            let error = io::Error::other("it is not a regular file");
            return Err(unreadable(path, &error).into());
        }
        fs::File::open(path)
            .and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut content))
            .map_err(|error| unreadable(path, &error))?;
        if content.len() as u64 > LARGEST_FILE {
            return Err(too_large(&name).into());
        }
        let bad = match String::from_utf8(content) {
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
        let at = self.text.floor_char_boundary(span.start);
        let line = self.line(at);
        let start = self.lines.get(line).copied().unwrap_or_default();
        let whole = self.whole_line(line);
        // Only one line is marked: a longer mistake is marked to its end.
        let begin = (at - start).min(whole.len());
        let end = self.text.floor_char_boundary(span.end).saturating_sub(start);
        Spot::new(line + 1, whole, begin..end.clamp(begin, whole.len()))
    }

    /// A line as it may be shown, counted from 1.
    pub(crate) fn shown_line(&self, number: usize) -> String {
        Spot::new(number, self.whole_line(number.saturating_sub(1)), 0..0).text
    }

    /// A line without its end, counted from 0.
    fn whole_line(&self, line: usize) -> &str {
        let start = self.lines.get(line).copied().unwrap_or(self.text.len());
        let rest = self.text.get(start..).unwrap_or_default();
        rest.split('\n').next().unwrap_or_default().trim_end_matches('\r')
    }
}

/// `/dev/stdin` and the like: `mainstay import … | mainstay check -c /dev/stdin`.
fn is_own_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc/self/fd")
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

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error(format!("cannot read the configuration: {error}"))
        .file(bytes::from_os(path.as_os_str()))
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
        assert_eq!((found.line, found.column, found.mark), (2, 5, 5..9));
        assert_eq!(found.text, "ü = \"é\"");
    }

    #[test]
    fn a_mistake_over_several_lines_is_marked_on_its_first() {
        let found = spot("a = [\n1,\n2]\n", 4..11);
        assert_eq!((found.text.as_str(), found.mark), ("a = [", 4..5));
    }

    #[test]
    fn the_end_of_a_text_is_a_place_too() {
        for text in ["", "a", "a\n", "ü", "a\r\n"] {
            let found = spot(text, text.len()..text.len() + 7);
            assert_eq!(found.mark, found.text.len()..found.text.len(), "{text:?}");
        }
    }

    #[test]
    fn a_long_line_is_cut_around_the_mistake() {
        for before in [1000, 5000] {
            let line = format!("{}WRONG{}", "x".repeat(before), "y".repeat(1000));
            let found = spot(&line, before..before + 5);
            assert_eq!(found.column, before + 1);
            assert_eq!(found.text.get(found.mark.clone()), Some("WRONG"));
            assert!(found.text.chars().count() < 4500, "{}", found.text.len());
        }
    }
}
