//! The files of rules: aliases, models, and applications with their programs.
//!
//! An application is found by its name, else by the pattern that covers most of it. The first file
//! that names one wins; of patterns, aliases and models that are the same the last.

use super::rule::Rule;
use crate::{
    ForeignFile,
    draft::Draft,
    supervisord::problem,
    xml::{self, Element},
};
use mainstay_config::Diagnostic;
use regex::{Regex, RegexBuilder};
use std::{collections::BTreeMap, path::PathBuf};

/// Of one file.
const LARGEST: usize = 1 << 20;
/// A program, its model, and the model of that.
const LONGEST_CHAIN: usize = 3;
/// Of a compiled pattern.
const LARGEST_PATTERN: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Rules {
    aliases: Vec<(String, Vec<String>)>,
    models: BTreeMap<String, Rule>,
    pub(super) applications: Vec<Application>,
}

pub(super) struct Application {
    pub(super) selector: Selector,
    pub(super) rule: Rule,
    pub(super) programs: Vec<(Selector, Rule)>,
}

impl Application {
    /// What is said of a process, without its models.
    pub(super) fn of_program(&self, process: &str) -> Option<&(Selector, Rule)> {
        best(self.programs.iter(), |it| &it.0, process)
    }
}

/// What an element is about.
pub(super) enum Selector {
    Name(String),
    Pattern(String, Regex),
}

impl Selector {
    fn is_name(&self, name: &str) -> bool {
        match self {
            Selector::Name(own) => own == name,
            Selector::Pattern(..) => false,
        }
    }

    fn is_pattern(&self, pattern: &str) -> bool {
        match self {
            Selector::Name(_) => false,
            Selector::Pattern(own, _) => own == pattern,
        }
    }

    /// How much of a name a pattern covers.
    fn covers(&self, name: &str) -> Option<usize> {
        match self {
            Selector::Name(_) => None,
            Selector::Pattern(_, regex) => {
                regex.find(name).map(|found| found.as_str().chars().count())
            }
        }
    }

    /// As it is written.
    pub(super) fn text(&self) -> &str {
        match self {
            Selector::Name(text) | Selector::Pattern(text, _) => text,
        }
    }
}

/// By name, else by the pattern that covers most; of several the first.
fn best<'a, T>(
    all: impl Iterator<Item = &'a T> + Clone,
    selector: impl Fn(&T) -> &Selector,
    name: &str,
) -> Option<&'a T> {
    let by_name = all.clone().find(|it| selector(it).is_name(name));
    by_name.or_else(|| {
        let mut found: Option<(usize, &T)> = None;
        for it in all {
            let Some(covered) = selector(it).covers(name) else { continue };
            if found.is_none_or(|(most, _)| covered > most) {
                found = Some((covered, it));
            }
        }
        found.map(|(_, it)| it)
    })
}

impl Rules {
    pub(super) fn of_files(
        draft: &mut Draft,
        paths: &[PathBuf],
        problems: &mut Vec<Diagnostic>,
    ) -> Rules {
        let mut files = Vec::new();
        for path in paths {
            match ForeignFile::read(path) {
                Ok(file) => files.push(file),
                Err(errors) => problems.extend(errors.iter().cloned()),
            }
        }
        Rules::read(draft, &files.iter().collect::<Vec<_>>(), problems)
    }

    pub(super) fn read(
        draft: &mut Draft,
        files: &[&ForeignFile],
        problems: &mut Vec<Diagnostic>,
    ) -> Rules {
        let mut rules = Rules::default();
        for file in files {
            let name = &file.source.name;
            if file.source.text.len() > LARGEST {
                let message = "a file of rules has 1 MiB at most".to_owned();
                problems.push(problem(name, 1, message));
                continue;
            }
            match xml::parse(file.source.text.trim_start_matches('\u{feff}')) {
                Ok(root) => rules.take(draft, name, &root, problems),
                Err(error) => problems.push(problem(name, error.line, error.why.to_string())),
            }
        }
        rules
    }

    fn take(
        &mut self,
        draft: &mut Draft,
        file: &str,
        root: &Element,
        problems: &mut Vec<Diagnostic>,
    ) {
        if root.name != "root" {
            let message = format!("'{}' is no root of rules", root.name);
            problems.push(problem(file, root.line, message));
            return;
        }
        for element in &root.children {
            match (element.name.as_str(), element.attribute("name")) {
                ("alias", Some(name)) => {
                    let words = element.text.split([',', '\n']).map(str::trim);
                    let words = words.filter(|word| !word.is_empty()).map(str::to_owned).collect();
                    match self.aliases.iter_mut().find(|(known, _)| known == name) {
                        Some((_, known)) => *known = words,
                        None => self.aliases.push((name.to_owned(), words)),
                    }
                }
                ("model", Some(name)) => {
                    self.models.insert(name.to_owned(), Rule::read(draft, file, element));
                }
                ("application", _) => self.application(draft, file, element, problems),
                (name, _) => {
                    let message = format!("<{name}> is passed over: it is not known, or unnamed");
                    draft.note_of(file.to_owned(), element.line, message);
                }
            }
        }
    }

    fn application(
        &mut self,
        draft: &mut Draft,
        file: &str,
        element: &Element,
        problems: &mut Vec<Diagnostic>,
    ) {
        let Some(own) = selector(draft, file, element, problems) else { return };
        let rule = Rule::read(draft, file, element);
        let mut programs: Vec<(Selector, Rule)> = Vec::new();
        let nested = element.children.iter().filter(|it| it.name == "programs");
        // Once they stood in the application itself.
        for child in nested.flat_map(|it| &it.children).chain(&element.children) {
            let found = match child.name.as_str() {
                "program" => selector(draft, file, child, problems),
                // Once patterns had an element of their own.
                "pattern" => pattern_element(draft, file, child, problems),
                _ => None,
            };
            if let Some(found) = found {
                put(
                    &mut programs,
                    found,
                    Rule::read(draft, file, child),
                    |it| &it.0,
                    |s, r| (s, r),
                );
            }
        }
        let make = |selector, rule| Application { selector, rule, programs };
        put(&mut self.applications, own, rule, |it| &it.selector, make);
    }

    /// The rules of an application that is managed.
    pub(super) fn of_application(&self, name: &str) -> Option<&Application> {
        best(self.applications.iter(), |it| &it.selector, name)
    }

    /// The rules of a program as its models complete them, and whether a pattern found it.
    pub(super) fn of_program<'a>(
        &self,
        draft: &mut Draft,
        application: &'a Application,
        process: &str,
    ) -> Option<(Rule, &'a Selector)> {
        let (selector, rule) = application.of_program(process)?;
        let mut chain = vec![rule.clone()];
        while let Some(model) = chain.last().and_then(|it| it.reference.clone()) {
            let (file, line) = chain.last().map_or(("", 0), |it| (it.file.as_str(), it.line));
            let Some(next) = self.models.get(&model) else {
                draft.gather(file, line, format!("reference: there is no model '{model}'"));
                break;
            };
            if chain.len() == LONGEST_CHAIN {
                let message =
                    "reference: models beyond the second are passed over, as by Supvisors";
                draft.gather(file, line, message);
                break;
            }
            chain.push(next.clone());
        }
        let whole = chain.into_iter().rev().reduce(|base, nearer| nearer.over(base))?;
        Some((whole, selector))
    }

    /// Aliases replaced by what they stand for, each once and in the order of the files: one may
    /// use another only if that comes later.
    pub(super) fn resolved(&self, identifiers: &[String]) -> Vec<String> {
        let mut words = identifiers.to_vec();
        for (alias, stands_for) in &self.aliases {
            if let Some(at) = words.iter().position(|word| word == alias) {
                words.splice(at..=at, stands_for.iter().cloned());
            }
        }
        let mut all: Vec<String> = Vec::new();
        for word in words {
            if !all.contains(&word) {
                all.push(word);
            }
        }
        all
    }
}

/// Of one name the first stays, of one pattern the last.
fn put<T>(
    all: &mut Vec<T>,
    selector: Selector,
    rule: Rule,
    of: impl Fn(&T) -> &Selector,
    make: impl FnOnce(Selector, Rule) -> T,
) {
    let same = match &selector {
        Selector::Name(name) => {
            if all.iter().any(|it| of(it).is_name(name)) {
                return;
            }
            None
        }
        Selector::Pattern(pattern, _) => all.iter().position(|it| of(it).is_pattern(pattern)),
    };
    let made = make(selector, rule);
    match same.and_then(|at| all.get_mut(at)) {
        Some(place) => *place = made,
        None => all.push(made),
    }
}

fn selector(
    draft: &mut Draft,
    file: &str,
    element: &Element,
    problems: &mut Vec<Diagnostic>,
) -> Option<Selector> {
    match (element.attribute("name"), element.attribute("pattern")) {
        (Some(name), _) => Some(Selector::Name(name.to_owned())),
        (None, Some(pattern)) => compiled(file, element, pattern, problems),
        (None, None) => {
            let message = format!("<{}> is passed over: it has no name", element.name);
            draft.note_of(file.to_owned(), element.line, message);
            None
        }
    }
}

fn pattern_element(
    draft: &mut Draft,
    file: &str,
    element: &Element,
    problems: &mut Vec<Diagnostic>,
) -> Option<Selector> {
    match element.attribute("name") {
        Some(pattern) => compiled(file, element, pattern, problems),
        None => selector(draft, file, element, problems),
    }
}

/// Python's expressions are nearly those of the engine at hand; what it does not know is an error.
fn compiled(
    file: &str,
    element: &Element,
    pattern: &str,
    problems: &mut Vec<Diagnostic>,
) -> Option<Selector> {
    match RegexBuilder::new(pattern).size_limit(LARGEST_PATTERN).build() {
        Ok(regex) => Some(Selector::Pattern(pattern.to_owned(), regex)),
        Err(error) => {
            // Its account draws lines; the last one says what it is.
            let text = error.to_string();
            let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let message = format!("pattern '{pattern}' is not understood: {why}");
            problems.push(problem(file, element.line, message));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn rules(text: &str) -> (Rules, Vec<Diagnostic>) {
        let source = mainstay_config::Source::text("r.xml", text).expect("a text");
        let file = ForeignFile { source, path: Path::new("r.xml").to_owned() };
        let mut problems = Vec::new();
        let rules = Rules::read(&mut Draft::new("x", "r.xml"), &[&file], &mut problems);
        (rules, problems)
    }

    #[test]
    fn a_name_comes_before_every_pattern_and_the_longest_cover_before_others() {
        let (rules, problems) = rules(
            "<root><application pattern='web'/><application pattern='web_[0-9]+'/>\
             <application pattern=''/><application name='web_1'/><application pattern='eb_'/></root>",
        );
        assert_eq!(problems, []);
        let found = |name| rules.of_application(name).map(|it| it.selector.text());
        assert_eq!(found("web_1"), Some("web_1"));
        assert_eq!(found("web_22"), Some("web_[0-9]+"));
        assert_eq!(found("my_webs"), Some("web"));
        assert_eq!(found("db"), Some(""));
    }

    #[test]
    fn models_complete_each_other_two_deep() {
        let (rules, _) = rules(
            "<root><model name='a'><reference>b</reference><required>true</required></model>\
             <model name='b'><reference>c</reference><start_sequence>2</start_sequence></model>\
             <model name='c'><expected_loading>9</expected_loading></model>\
             <application name='x'><programs><program name='p'><reference>a</reference>\
             <start_sequence>5</start_sequence></program></programs></application></root>",
        );
        let app = rules.of_application("x").expect("it is there");
        let (rule, _) = rules.of_program(&mut Draft::new("x", "f"), app, "p").expect("so is this");
        assert_eq!((rule.start_sequence, rule.required, rule.load), (Some(5), Some(true), None));
    }

    #[test]
    fn an_alias_may_use_one_that_comes_later() {
        let (rules, _) = rules(
            "<root><alias name='a'>x, b</alias><alias name='b'>y,z</alias>\
             <alias name='c'>a</alias></root>",
        );
        let resolved = |text: &str| rules.resolved(&[text.to_owned()]);
        assert_eq!(resolved("a"), ["x", "y", "z"]);
        assert_eq!(resolved("c"), ["a"]);
    }

    #[test]
    fn what_is_no_file_of_rules_is_a_problem() {
        for (text, told) in [
            ("<!DOCTYPE root SYSTEM 'x'><root/>".to_owned(), "document type"),
            ("<root><application pattern='('/></root>".to_owned(), "'(' is not understood"),
            ("<rules/>".to_owned(), "no root"),
            ("<root>".to_owned(), "not closed"),
            (format!("<root>{}{}</root>", "<a>".repeat(64), "</a>".repeat(64)), "64 elements deep"),
            (format!("<root><!--{}--></root>", " ".repeat(LARGEST)), "1 MiB"),
        ] {
            let (_, problems) = rules(&text);
            let first = problems.first().map(|it| it.message.clone()).unwrap_or_default();
            assert!(first.contains(told), "{told}: {first}");
        }
    }
}
