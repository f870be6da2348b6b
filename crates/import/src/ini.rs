//! INI files as Python's RawConfigParser reads them for supervisord.
//!
//! `;` and `#` begin a comment at the start of a line, and inside one after a blank. An indented line
//! goes on with the value above it. A section or key that comes again goes over the first.

use std::collections::BTreeMap;

/// One `[section]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// In lower case.
    pub(super) key: String,
    pub(super) value: String,
    pub(super) line: usize,
}

impl Section {
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

impl Section {
    /// As if its lines followed in the same file.
    pub(super) fn go_over(&mut self, later: Section) {
        for entry in later.entries {
            match self.entries.iter_mut().find(|it| it.key == entry.key) {
                Some(first) => *first = entry,
                None => self.entries.push(entry),
            }
        }
    }
}

/// A line that is none of these.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stray {
    pub(super) line: usize,
}

/// No section has so many keys; what comes beyond is told as strays.
const MOST_ENTRIES: usize = 500;

pub(super) fn parse(file: &str, text: &str) -> (Vec<Section>, Vec<Stray>) {
    let mut sections: Vec<Section> = Vec::new();
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    let mut strays = Vec::new();
    // The section and entry that a continuation line belongs to, and the indent of the entry.
    let mut current: Option<usize> = None;
    let mut open: Option<(usize, usize)> = None;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, raw) in (1..).zip(text.lines()) {
        let whole = raw.trim_start();
        if whole.starts_with([';', '#']) {
            continue;
        }
        let indent = raw.len() - whole.len();
        let value = uncommented(raw).trim();
        if value.is_empty() {
            // An empty line does not end a value: an indented one may follow.
            continue;
        }
        if let (Some((entry, at)), Some(section)) = (open, current)
            && indent > at
            && let Some(entry) =
                sections.get_mut(section).and_then(|section| section.entries.get_mut(entry))
        {
            entry.value.push('\n');
            entry.value.push_str(value);
            continue;
        }
        open = None;
        if let Some(name) = value.strip_prefix('[').and_then(|it| it.split_once(']')) {
            let at = *by_name.entry(name.0.to_owned()).or_insert_with(|| {
                let (name, file) = (name.0.to_owned(), file.to_owned());
                sections.push(Section { name, file, line, entries: Vec::new() });
                sections.len() - 1
            });
            current = Some(at);
            continue;
        }
        let Some((key, rest)) = value.split_once(['=', ':']) else {
            strays.push(Stray { line });
            continue;
        };
        let Some(section) = current.and_then(|at| sections.get_mut(at)) else {
            strays.push(Stray { line });
            continue;
        };
        let entry =
            Entry { key: key.trim().to_ascii_lowercase(), value: rest.trim().to_owned(), line };
        let at = match section.entries.iter().position(|it| it.key == entry.key) {
            Some(at) => {
                section.entries[at] = entry;
                at
            }
            None if section.entries.len() == MOST_ENTRIES => {
                strays.push(Stray { line });
                continue;
            }
            None => {
                section.entries.push(entry);
                section.entries.len() - 1
            }
        };
        open = Some((at, indent));
    }
    (sections, strays)
}

/// The line without the comment at its end.
fn uncommented(line: &str) -> &str {
    let mut blank = false;
    for (at, c) in line.char_indices() {
        if blank && matches!(c, ';' | '#') {
            return &line[..at];
        }
        blank = c.is_whitespace();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let (sections, _) = parse("f", text);
        let entries = sections.into_iter().flat_map(|it| it.entries);
        entries.map(|it| (it.key, it.value)).collect()
    }

    #[test]
    fn real_files_are_read_as_python_reads_them() {
        let text = "; head\n[program:a]\nCommand = /bin/a --x=1 ; comment\nenvironment=A=\"1;2\",\n  \
                    B='x#y'   # note\n\n  C=3\nurl: http://h:1/x\nempty=\n[program:a]\ncommand=b\n";
        let expected = [
            ("command", "b"),
            ("environment", "A=\"1;2\",\nB='x#y'\nC=3"),
            ("url", "http://h:1/x"),
            ("empty", ""),
        ];
        let read = pairs(text);
        let read: Vec<(&str, &str)> = read.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn lines_that_are_nothing_are_told() {
        let (_, strays) = parse("f", "before=1\n[a]\nno value\nx=1\n");
        assert_eq!(strays, [Stray { line: 1 }, Stray { line: 3 }]);
    }
}
