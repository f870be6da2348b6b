//! A page, as far as something can be done with it: its blocks, its headings, its links, and the
//! commands in its sentences.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where the pages are.
pub(super) fn repository() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("it is in the repository").to_owned()
}

/// Every page there is: the book's and those beside it.
pub(super) fn all() -> Vec<Page> {
    let root = repository();
    let mut paths = pages_in(&root);
    let mut dirs = vec![root.join("docs")];
    while let Some(dir) = dirs.pop() {
        paths.extend(pages_in(&dir));
        dirs.extend(entries(&dir).filter(|it| it.is_dir()));
    }
    paths.sort();
    assert!(paths.len() > 10, "the pages are not where they were: {paths:?}");
    paths.into_iter().map(|path| Page::read(&path)).collect()
}

fn pages_in(dir: &Path) -> Vec<PathBuf> {
    entries(dir).filter(|path| path.extension().is_some_and(|it| it == "md")).collect()
}

fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(dir).expect("a directory of the repository");
    entries.map(|entry| entry.expect("an entry").path())
}

#[derive(Debug)]
pub(super) struct Page {
    pub(super) path: PathBuf,
    pub(super) blocks: Vec<Block>,
    /// Lines outside of blocks and comments, with their numbers.
    pub(super) prose: Vec<(usize, String)>,
}

/// What stands between two fences.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) line: usize,
    pub(super) language: String,
    pub(super) text: String,
    pub(super) comments: Vec<Comment>,
}

#[derive(Debug)]
pub(super) enum Comment {
    NotRun,
    First(String),
    File(String),
    Is(String),
    Beside(Vec<String>),
    PrintedBy(String),
}

impl Page {
    fn read(path: &Path) -> Page {
        Page::parse(path, &fs::read_to_string(path).expect("a page can be read"))
    }

    pub(super) fn parse(path: &Path, text: &str) -> Page {
        let mut page = Page { path: path.to_owned(), blocks: Vec::new(), prose: Vec::new() };
        let mut comments = Vec::new();
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        while let Some((number, line)) = lines.next() {
            if let Some(language) = line.strip_prefix("```") {
                let inside = lines.by_ref().map(|(_, line)| line).take_while(|it| *it != "```");
                let text = inside.map(|line| format!("{line}\n")).collect();
                let comments = std::mem::take(&mut comments);
                page.blocks.push(Block {
                    line: number,
                    language: language.to_owned(),
                    text,
                    comments,
                });
            } else if let Some(begun) = line.strip_prefix("<!--") {
                let mut comment = begun.to_owned();
                while !comment.contains("-->") {
                    let (_, more) = lines.next().unwrap_or_else(|| {
                        panic!("{}:{number}: a comment without an end", path.display())
                    });
                    comment = format!("{comment}\n{more}");
                }
                let text = comment.trim_end().trim_end_matches("-->").trim();
                comments.extend(Comment::parse(text));
            } else {
                assert!(
                    line.is_empty() || comments.is_empty(),
                    "{}:{number}: this comment stands before no block",
                    path.display()
                );
                page.prose.push((number, line.to_owned()));
            }
        }
        assert!(comments.is_empty(), "{}: a comment at its end", path.display());
        page
    }

    /// Its path, as the repository has it.
    pub(super) fn name(&self) -> String {
        self.path.strip_prefix(repository()).unwrap_or(&self.path).display().to_string()
    }

    /// What stands between backticks in its sentences, by line.
    pub(super) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.prose.iter().flat_map(|(number, line)| {
            line.split('`').skip(1).step_by(2).map(move |code| (*number, code))
        })
    }

    /// The targets of its links, by line.
    pub(super) fn links(&self) -> impl Iterator<Item = (usize, &str)> {
        self.prose.iter().flat_map(|(number, line)| {
            let ends = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            ends.map(move |target| (*number, target))
        })
    }

    /// What links to its headings say behind the `#`.
    pub(super) fn anchors(&self) -> Vec<String> {
        let headings = self.prose.iter().filter(|(_, line)| line.starts_with('#'));
        let anchor = |line: &str| -> String {
            let text = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            text.chars().filter(|it| it.is_alphanumeric() || "-_".contains(*it)).collect()
        };
        headings.map(|(_, line)| anchor(line)).collect()
    }
}

impl Comment {
    /// Nothing if it is meant for somebody else.
    fn parse(text: &str) -> Option<Comment> {
        let (word, rest) = text.split_once(':')?;
        let rest = rest.trim().to_owned();
        match word {
            _ if rest.is_empty() => None,
            "not run" => Some(Comment::NotRun),
            "first" => Some(Comment::First(rest)),
            "file" => Some(Comment::File(rest)),
            "printed by" => Some(Comment::PrintedBy(rest)),
            "is" => Some(Comment::Is(rest)),
            "beside" => {
                Some(Comment::Beside(rest.split(',').map(|it| it.trim().to_owned()).collect()))
            }
            _ => None,
        }
    }
}

impl Block {
    pub(super) fn is_run(&self) -> bool {
        !self.comments.iter().any(|it| matches!(it, Comment::NotRun))
    }

    /// A session at a terminal: its commands, each with the lines that it is said to print.
    pub(super) fn session(&self) -> Vec<(String, Vec<String>)> {
        for comment in &self.comments {
            if let Comment::PrintedBy(command) = comment {
                return vec![(command.clone(), self.text.lines().map(str::to_owned).collect())];
            }
        }
        if self.language != "text" {
            return Vec::new();
        }
        let prompt = if self.text.starts_with("# ") { "# " } else { "$ " };
        let mut session: Vec<(String, Vec<String>)> = Vec::new();
        for line in self.text.lines() {
            let command = line.strip_prefix(prompt);
            match (command, session.last_mut()) {
                (Some(command), _) => session.push((command.to_owned(), Vec::new())),
                (None, Some((_, shown))) => shown.push(line.to_owned()),
                (None, None) => return Vec::new(),
            }
        }
        session
    }
}
