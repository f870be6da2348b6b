//! How a diagnostic looks to a person.

use super::{Diagnostic, Related, Severity, Spot};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::{collections::BTreeMap, ops::Range};

impl Diagnostic {
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(&self.message));
        match (&self.file, &self.spot) {
            (Some(file), Some(spot)) => {
                let (near, far): (Vec<&Related>, Vec<&Related>) =
                    self.related.iter().partition(|it| it.is_near(file, spot));
                // What is near goes into one picture, if that begins where the lines do.
                let (near, far) = if spot.cut {
                    (Vec::new(), self.related.iter().collect())
                } else {
                    (near, far)
                };
                let mut picture = Picture::default();
                picture.mark(spot, AnnotationKind::Primary, None);
                for related in near {
                    picture.mark(&related.spot, AnnotationKind::Context, Some(&related.label));
                    if let Some(text) = &related.between {
                        let line = related.spot.line.min(spot.line) + 1;
                        picture.lines.entry(line).or_insert(text);
                    }
                }
                group = picture.shown(group, file, spot);
                for related in far {
                    let mut picture = Picture::default();
                    picture.mark(&related.spot, AnnotationKind::Context, Some(&related.label));
                    group = picture.shown(group, &related.file, &related.spot);
                }
            }
            (Some(file), None) => group = group.element(Origin::path(file)),
            (None, _) => {}
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }
}

/// Lines further apart than this are shown one after the other.
const NEAR: usize = 1000;

impl Related {
    fn is_near(&self, file: &str, spot: &Spot) -> bool {
        self.file == file && !self.spot.cut && self.spot.line.abs_diff(spot.line) <= NEAR
    }
}

/// Lines of one file, and what is marked in them.
#[derive(Default)]
struct Picture<'a> {
    lines: BTreeMap<usize, &'a str>,
    marks: Vec<Mark<'a>>,
}

struct Mark<'a> {
    line: usize,
    span: Range<usize>,
    kind: AnnotationKind,
    label: Option<&'a str>,
}

impl<'a> Picture<'a> {
    fn mark(&mut self, spot: &'a Spot, kind: AnnotationKind, label: Option<&'a str>) {
        // Of two marks in a line the later one keeps more of it.
        let text = self.lines.entry(spot.line).or_insert(&spot.text);
        if spot.text.len() > text.len() {
            *text = &spot.text;
        }
        self.marks.push(Mark { line: spot.line, span: spot.mark.clone(), kind, label });
    }

    fn shown(self, group: Group<'a>, file: &'a str, at: &Spot) -> Group<'a> {
        let first = self.lines.keys().next().copied().unwrap_or(1);
        let last = self.lines.keys().next_back().copied().unwrap_or(first);
        // Lines that are not at hand stay empty: no more than one of them would be shown.
        let mut text = String::new();
        let mut starts = BTreeMap::new();
        for line in first..=last {
            starts.insert(line, text.len());
            text.push_str(self.lines.get(&line).copied().unwrap_or_default());
            text.push('\n');
        }
        let marks = self.marks.into_iter().filter_map(|mark| {
            let start = starts.get(&mark.line)?;
            let span = start + mark.span.start..start + mark.span.end;
            Some(mark.kind.span(span).label(mark.label))
        });
        let snippet = Snippet::source(text).line_start(first).annotations(marks);
        if at.cut {
            // The column cannot be found in what is left of the line.
            let origin = Origin::path(file).line(at.line).char_column(at.column);
            return group.element(origin).element(snippet);
        }
        group.element(snippet.path(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn source(text: &str) -> Source {
        Source::text("a.toml", text).expect("small enough")
    }

    #[test]
    fn a_terminal_never_sees_the_control_characters_of_a_file() {
        let one = Diagnostic::error("bad \x1b[2J word").help("a\nb");
        let shown = one.at(&source("x = \"\x1b[2J\u{9b}\u{202e}\"\n"), 0..1).render(false);
        assert!(!shown.contains(['\x1b', '\u{9b}', '\u{202e}']), "{shown:?}");
        assert_eq!(shown.lines().count(), 7, "{shown}");
    }

    #[test]
    fn colour_is_only_there_when_asked_for() {
        let one = Diagnostic::error("wrong").file("a.toml");
        assert_eq!(one.render(false), "error: wrong\n--> a.toml");
        assert!(one.render(true).contains("\x1b[91merror\x1b[0m"), "{:?}", one.render(true));
    }

    #[test]
    fn marks_stand_below_wide_characters_and_tabs() {
        let shown = Diagnostic::error("wrong").at(&source("\t日本 = \"語\" # x\n"), 10..15);
        let expected =
            "error: wrong\n --> a.toml:1:7\n  |\n1 |     日本 = \"語\" # x\n  |            ^^^^";
        assert_eq!(shown.render(false), expected);
    }

    #[test]
    fn the_end_of_a_file_can_be_pointed_at() {
        let shown = Diagnostic::error("wrong").at(&source("a = "), 4..4).render(false);
        assert!(shown.ends_with("1 | a = \n  |     ^") || shown.ends_with("1 | a =\n  |     ^"));
        let shown = Diagnostic::error("wrong").at(&source(""), 0..0).render(false);
        assert!(shown.contains("a.toml:1:1"), "{shown}");
    }

    #[test]
    fn two_places_are_shown_in_one_picture() {
        let text = "[jobs.a]\n# kept\n[jobs.a]\n";
        let one = Diagnostic::error("twice").at(&source(text), 22..23);
        let shown = one.beside(&source(text), 6..7, "first here").help("remove one").render(false);
        let expected = "error: twice\n --> a.toml:3:7\n  |\n1 | [jobs.a]\n  |       - first here\n\
                        2 | # kept\n3 | [jobs.a]\n  |       ^\n  |\n  = help: remove one";
        assert_eq!(shown, expected);
    }

    #[test]
    fn two_places_of_two_files_are_shown_one_after_the_other() {
        let other = Source::text("b.toml", "\n\n[jobs.a]\n").expect("small enough");
        let one = Diagnostic::error("twice").at(&other, 8..9);
        let shown = one.beside(&source("[jobs.a]\n"), 6..7, "first here").render(false);
        assert!(shown.contains(" --> b.toml:3:7\n"), "{shown}");
        assert!(shown.contains(" ::: a.toml:1:7\n"), "{shown}");
        assert!(shown.ends_with("- first here"), "{shown}");
    }

    #[test]
    fn a_place_far_along_a_line_keeps_its_column() {
        for before in [1000, 5000, 100_000] {
            let text = format!("{}WRONG{}", "x".repeat(before), "y".repeat(1000));
            let shown = Diagnostic::error("wrong").at(&source(&text), before..before + 5);
            let shown = shown.render(false);
            assert!(shown.contains(&format!("a.toml:1:{}\n", before + 1)), "{shown}");
            assert!(shown.contains("WRONG") && shown.contains("^^^^^"), "{shown}");
            assert!(shown.lines().all(|line| line.chars().count() < 200), "{shown}");
        }
    }
}
