//! The sections of a configuration: of its file, of those that are given beside it, and of what
//! they include. A section that comes again goes over the first, key by key.

use super::{ForeignFile, problem, text::Scope};
use crate::{
    draft::Draft,
    ini::{self, Section},
};
use mainstay_config::{Context, Diagnostic};
use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
};

const MOST_FILES: usize = 1000;

/// What has been read, and what is wrong with it.
pub(crate) struct Sections {
    pub(crate) all: Vec<Section>,
    pub(crate) problems: Vec<Diagnostic>,
    files: usize,
}

impl Sections {
    pub(crate) fn read(
        draft: &mut Draft,
        first: &ForeignFile,
        others: &[&ForeignFile],
        ctx: &Context,
    ) -> Sections {
        let mut sections = Sections { all: Vec::new(), problems: Vec::new(), files: 0 };
        for file in std::iter::once(first).chain(others.iter().copied()) {
            sections.take(file);
            // One that is itself included says so in vain, as in the original.
            if let Some(at) = sections.all.iter().position(|section| section.name == "include") {
                let include = sections.all.remove(at);
                sections.include(draft, &include, &file.directory(), ctx);
            }
        }
        sections.all.retain(|section| section.name != "include");
        sections
    }

    fn take(&mut self, file: &ForeignFile) {
        let name = &file.source.name;
        let (mut more, strays) = ini::parse(name, &file.source.text);
        place(&mut more, &file.directory());
        for stray in strays {
            let what = "neither [section] nor key = value".to_owned();
            self.problems.push(problem(name, stray.line, what));
        }
        for section in more {
            match self.all.iter_mut().find(|it| it.name == section.name) {
                Some(first) => first.go_over(section),
                None => self.all.push(section),
            }
        }
    }

    fn include(&mut self, draft: &mut Draft, include: &Section, here: &Path, ctx: &Context) {
        let Some(files) = include.get("files") else { return };
        let nobody = Scope {
            program: "",
            group: "",
            number: 0,
            count: 1,
            host: &ctx.host_name,
            env: &ctx.env,
            set: BTreeMap::new(),
        };
        let patterns = match nobody.now(&files.value) {
            Ok(patterns) => patterns,
            Err(why) => {
                let message = format!("[include] files: {why}");
                return self.problems.push(problem(&include.file, files.line, message));
            }
        };
        for pattern in patterns.split_whitespace() {
            let found = glob(&here.join(pattern));
            if found.is_empty() {
                let message = format!("include '{pattern}' matches no file here");
                draft.note_of(include.file.clone(), files.line, message);
            }
            for path in found {
                self.files += 1;
                if self.files > MOST_FILES {
                    let message = format!("more than {MOST_FILES} included files");
                    return self.problems.push(problem(&include.file, files.line, message));
                }
                match ForeignFile::read(&path) {
                    Ok(file) => self.take(&file),
                    Err(errors) => self.problems.extend(errors.iter().cloned()),
                }
            }
        }
    }
}

/// `%(here)s` is the directory of the file that says so.
fn place(sections: &mut [Section], here: &Path) {
    let here = here.to_string_lossy().replace('%', "%%");
    for entry in sections.iter_mut().flat_map(|section| &mut section.entries) {
        if entry.value.contains("%(here)s") {
            entry.value = entry.value.replace("%(here)s", &here);
        }
    }
}

/// Files that match a pattern with `*` and `?` in its parts, sorted.
pub(crate) fn glob(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let text = part.as_os_str().to_string_lossy();
        found = match part {
            Component::Normal(_) if text.contains(['*', '?']) => {
                found.iter().flat_map(|dir| entries(dir, &text)).take(MOST_FILES + 1).collect()
            }
            _ => found.into_iter().map(|dir| dir.join(part)).collect(),
        };
    }
    found.retain(|path| path.is_file());
    found.sort();
    found
}

fn entries(dir: &Path, pattern: &str) -> Vec<PathBuf> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| matches(pattern, &entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Which prefixes of the pattern match the name so far.
    let mut row = vec![false; pattern.len() + 1];
    row[0] = true;
    let stars = |row: &mut Vec<bool>| {
        for at in 0..pattern.len() {
            if pattern[at] == '*' && row[at] {
                row[at + 1] = true;
            }
        }
    };
    stars(&mut row);
    for c in name {
        let mut next = vec![false; pattern.len() + 1];
        for at in 0..pattern.len() {
            let fits = pattern[at] == '?' || pattern[at] == c;
            next[at + 1] =
                (row[at] && fits && pattern[at] != '*') || (pattern[at] == '*' && row[at + 1]);
        }
        stars(&mut next);
        row = next;
    }
    row[pattern.len()]
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("*.conf", "a.conf", true),
            ("*.conf", ".a.conf", false),
            ("a?c*", "abc", true),
            ("a?c*", "ac", false),
            ("*", "x", true),
            ("**a*b", "xxaxxb", true),
            ("a", "b", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
