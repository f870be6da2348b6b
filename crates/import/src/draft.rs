//! The configuration being written: tables in order, with the notes that belong to them.

use super::{Imported, Note};
use mainstay_core::name::{Name, NameError};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    ops::Range,
};

/// Comments beyond this say nothing new.
const MOST_NOTES: usize = 1000;

pub(super) struct Draft {
    /// What the original is, for the first line.
    what: &'static str,
    file: String,
    notes: Vec<Note>,
    gathered: BTreeMap<String, Vec<(String, usize)>>,
    tables: Vec<Table>,
}

/// One table of the file.
pub(super) struct Table {
    pub(super) header: String,
    file: String,
    /// What helps to read it; nothing differs.
    remarks: Vec<String>,
    notes: Vec<Note>,
    lines: Vec<Line>,
    at: Option<Range<usize>>,
}

struct Line {
    key: String,
    value: String,
    at: Option<Range<usize>>,
}

/// Lines of the outcome, counted from 1, and what of the original they are about.
pub(super) type Places = Vec<(usize, Range<usize>)>;

impl Draft {
    pub(super) fn new(what: &'static str, file: &str) -> Draft {
        Draft {
            what,
            file: file.to_owned(),
            notes: Vec::new(),
            gathered: BTreeMap::new(),
            tables: Vec::new(),
        }
    }

    /// A note about the whole.
    pub(super) fn note(&mut self, line: impl Into<Option<usize>>, message: impl Into<String>) {
        let file = self.file.clone();
        self.note_of(file, line, message);
    }

    pub(super) fn note_of(
        &mut self,
        file: String,
        line: impl Into<Option<usize>>,
        message: impl Into<String>,
    ) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(Note { file, line: line.into(), message: message.into() });
        }
    }

    /// A note of the whole, unless it is there already.
    pub(super) fn note_once(&mut self, file: &str, line: usize, message: &str) {
        if !self.notes.iter().any(|note| note.message == message) {
            self.note_of(file.to_owned(), line, message);
        }
    }

    /// A note that holds for many lines is told once, with all of them.
    pub(super) fn gather(&mut self, file: &str, line: usize, message: impl Into<String>) {
        let places = self.gathered.entry(message.into()).or_default();
        if !places.iter().any(|(known, at)| known == file && *at == line) {
            places.push((file.to_owned(), line));
        }
    }

    pub(super) fn push(&mut self, table: Table) {
        self.tables.push(table);
    }

    pub(super) fn finish(self) -> Imported {
        self.finish_with_places().0
    }

    pub(super) fn finish_with_places(mut self) -> (Imported, Places) {
        for (message, places) in std::mem::take(&mut self.gathered) {
            let Some((file, line)) = places.first().cloned() else { continue };
            let more = also(&places);
            self.note_of(file, line, format!("{message}{more}"));
        }
        let mut toml = format!("# Made from {} by mainstay import.\n", one_line(self.what));
        let own = &self.file;
        for note in &self.notes {
            comment(&mut toml, own, note);
        }
        let mut line = 1 + self.notes.len();
        let mut places = Vec::new();
        for table in &self.tables {
            toml.push('\n');
            for remark in &table.remarks {
                let _ = writeln!(toml, "# {}", one_line(remark));
            }
            for note in &table.notes {
                comment(&mut toml, own, note);
            }
            // Writing to a String cannot fail.
            let _ = writeln!(toml, "[{}]", table.header);
            line += 2 + table.remarks.len() + table.notes.len();
            places.extend(table.at.clone().map(|at| (line, at)));
            for Line { key, value, at } in &table.lines {
                let _ = writeln!(toml, "{key} = {value}");
                line += 1;
                places.extend(at.clone().or_else(|| table.at.clone()).map(|at| (line, at)));
            }
        }
        let of_tables = self.tables.into_iter().flat_map(|table| table.notes);
        let mut notes: Vec<Note> = self.notes;
        notes.extend(of_tables);
        (Imported { toml, notes, places: Vec::new(), files: Vec::new() }, places)
    }
}

impl Table {
    pub(super) fn new(header: impl Into<String>, file: &str) -> Table {
        let header = header.into();
        Table {
            header,
            file: file.to_owned(),
            remarks: Vec::new(),
            notes: Vec::new(),
            lines: Vec::new(),
            at: None,
        }
    }

    /// What of the original it is about.
    pub(super) fn at(mut self, at: Range<usize>) -> Table {
        self.at = Some(at);
        self
    }

    /// A note about this table.
    pub(super) fn note(&mut self, line: impl Into<Option<usize>>, message: impl Into<String>) {
        if self.notes.len() < MOST_NOTES {
            let file = self.file.clone();
            self.notes.push(Note { file, line: line.into(), message: message.into() });
        }
    }

    /// A comment that says nothing new.
    pub(super) fn remark(&mut self, text: impl Into<String>) {
        if self.remarks.len() < MOST_NOTES {
            self.remarks.push(text.into());
        }
    }

    /// A key with a value that is TOML already.
    pub(super) fn set(&mut self, key: &str, value: impl Into<String>) {
        self.lines.push(Line { key: key.to_owned(), value: value.into(), at: None });
    }

    /// As `set`, in place of what it was set to.
    pub(super) fn set_over(&mut self, key: &str, value: impl Into<String>) {
        self.lines.retain(|line| line.key != key);
        self.set(key, value);
    }

    /// As `set`, if there is a value.
    pub(super) fn set_if_some(&mut self, key: &str, value: Option<String>) {
        value.into_iter().for_each(|value| self.set(key, value));
    }

    /// As `set`, of one value or of a list of them.
    pub(super) fn set_one_or_list(&mut self, key: &str, values: Vec<String>) {
        match values.as_slice() {
            [] => {}
            [one] => self.set(key, one.clone()),
            _ => self.set(key, list(values)),
        }
    }

    /// As `set`, with what of the original says so.
    pub(super) fn set_at(&mut self, key: &str, value: impl Into<String>, at: Range<usize>) {
        self.lines.push(Line { key: key.to_owned(), value: value.into(), at: Some(at) });
    }

    /// There is nothing in it, and nothing to say about it.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.notes.is_empty()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.lines.iter().any(|line| line.key == key)
    }
}

/// The lines after the first, as few as say it.
fn also(places: &[(String, usize)]) -> String {
    const SHOWN: usize = 8;
    let first = places.first().map(|(file, _)| file);
    let mut lines: Vec<String> = places
        .iter()
        .skip(1)
        .map(|(file, line)| match Some(file) == first {
            true => line.to_string(),
            false => format!("{file}:{line}"),
        })
        .collect();
    let left = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    match (lines.is_empty(), left) {
        (true, _) => String::new(),
        (false, 0) => format!(" (also line {})", lines.join(", ")),
        (false, left) => format!(" (also line {} and {left} more)", lines.join(", ")),
    }
}

fn comment(out: &mut String, own: &str, note: &Note) {
    let message = one_line(&note.message);
    let _ = match note.line {
        Some(line) if note.file == own => writeln!(out, "# line {line}: {message}"),
        Some(line) => writeln!(out, "# {}:{line}: {message}", one_line(&note.file)),
        None => writeln!(out, "# {message}"),
    };
}

/// A comment ends where its line does.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A TOML string that means exactly this: `${` is not expanded.
pub(super) fn literal(text: &str) -> String {
    quoted(&text.replace("${", "$${"))
}

/// A TOML string in which `${…}` stays what it is.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            // No program can be given one.
            '\0' => {}
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// `["a", "b"]` of values that are TOML already.
pub(super) fn list(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(", "))
}

/// `{ a = 1, b = 2 }` of values that are TOML already.
pub(super) fn inline(pairs: &[(String, String)]) -> String {
    if pairs.is_empty() {
        return "{}".to_owned();
    }
    let bare = |key: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        !key.is_empty() && key.bytes().all(plain)
    };
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(key, value)| {
            let key = if bare(key) { key.clone() } else { quoted(key) };
            format!("{key} = {value}")
        })
        .collect();
    format!("{{ {} }}", pairs.join(", "))
}

pub(super) fn pair(key: &str, value: impl Into<String>) -> (String, String) {
    (key.to_owned(), value.into())
}

/// Job names: valid, and none twice.
#[derive(Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
    /// The last number that was put behind a name.
    last: BTreeMap<String, u32>,
}

/// Room for a number behind a name, and for that of an instance.
const LONGEST: usize = 50;

impl Names {
    /// A name as near to `wanted` as can be; with `instances` its numbered names are taken as well.
    pub(super) fn take(&mut self, wanted: &str, instances: Option<u32>) -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let base: String = wanted
            .chars()
            .map(|c| if allowed(c) { c } else { '-' })
            .skip_while(|c| !c.is_ascii_alphanumeric())
            .take(LONGEST)
            .collect();
        let base = match Name::new(&base) {
            Ok(_) => base,
            Err(NameError::Reserved(_)) => format!("{base}_job"),
            Err(NameError::Shape(_)) => "job".to_owned(),
        };
        let fits = Name::new(wanted).is_ok() && (instances.is_none() || wanted.len() <= LONGEST);
        let mut name = if fits { wanted.to_owned() } else { base.clone() };
        let number = self.last.entry(base.clone()).or_insert(1);
        loop {
            let of_instances = (1..=instances.unwrap_or_default()).map(|n| format!("{name}-{n}"));
            let all: Vec<String> = std::iter::once(name.clone()).chain(of_instances).collect();
            if all.iter().all(|it| !self.taken.contains(it)) {
                self.taken.extend(all);
                return name;
            }
            *number += 1;
            name = format!("{base}_{number}");
        }
    }
}

/// Variables that Mainstay sets itself, and names that no variable can have.
pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['=', '\0'])
        && name != "MAINSTAY_RUN"
        && name != "MAINSTAY_JOB"
}
