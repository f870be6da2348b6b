//! A template of config_o_mat as one of ours: what means the same in Jinja is translated, every
//! other tag becomes a call that cannot be rendered, so that nobody overlooks it.

use super::{
    erb::{self, ErbPiece, Tag, TagKind},
    lexer::Untranslatable,
    ruby::{RubyScope, is_identifier, text},
};
use std::collections::BTreeSet;

/// Tags within tags.
const DEEPEST: usize = 50;
/// Of what is quoted of a tag.
const SHOWN: usize = 60;

/// A template, translated.
#[derive(Debug)]
pub(super) struct JinjaTemplate {
    pub(super) text: String,
    /// The profiles that it uses, by our names.
    pub(super) profiles: BTreeSet<String>,
    /// What is left to do by hand: line, and what.
    pub(super) left: Vec<(usize, String)>,
}

/// A tag that encloses others.
enum Enclosing {
    If,
    /// `each`, with its variables.
    For(usize),
    /// One that is not translated; it became an `if`.
    Unknown,
}

/// Why the whole file is left as it is.
struct Unbalanced {
    line: usize,
    why: &'static str,
}

/// `profiles`: their names there, and ours.
pub(super) fn translate(source: &str, profiles: &[(String, String)]) -> JinjaTemplate {
    let scope = RubyScope { profiles, locals: Vec::new(), used: BTreeSet::new() };
    let mut it = Translation { scope, out: String::new(), left: Vec::new(), open: Vec::new() };
    let unbalanced = match erb::pieces(source) {
        Ok(pieces) => it.pieces(&pieces),
        Err(open) => Err(Unbalanced { line: open.line, why: "this tag does not end" }),
    };
    if let Err(Unbalanced { line, why }) = unbalanced {
        it.out = format!("{{{{ untranslated({}) }}}}\n", text("the whole file"));
        it.left = vec![(line, format!("{why}: the whole file is left to be translated by hand"))];
    }
    if !it.left.is_empty() {
        named(source, profiles, &mut it.scope.used);
    }
    JinjaTemplate { text: it.out, profiles: it.scope.used, left: it.left }
}

/// The profiles that what is left names, so that whoever translates it has them at hand.
fn named(source: &str, profiles: &[(String, String)], used: &mut BTreeSet<String>) {
    for (theirs, ours) in profiles {
        if source.contains(&format!(":{theirs}")) || source.contains(&format!(":\"{theirs}\"")) {
            used.insert(ours.clone());
        }
    }
}

struct Translation<'a> {
    scope: RubyScope<'a>,
    out: String,
    left: Vec<(usize, String)>,
    open: Vec<Enclosing>,
}

impl Translation<'_> {
    fn pieces(&mut self, pieces: &[ErbPiece]) -> Result<(), Unbalanced> {
        let mut last = 1;
        for (at, piece) in pieces.iter().enumerate() {
            let next = pieces.get(at + 1);
            match piece {
                ErbPiece::Text(text) => self.text(text, matches!(next, Some(ErbPiece::Tag(_)))),
                ErbPiece::Tag(tag) => {
                    last = tag.line;
                    // A sign that takes blanks takes the indentation of the next line, too.
                    let blank = matches!(next, Some(ErbPiece::Text(it)) if it.starts_with(char::is_whitespace));
                    let (start, within, end) = self.tag(tag)?;
                    let space = if within.is_empty() { "" } else { " " };
                    self.out.push_str(&format!("{start}{space}{within}"));
                    match (tag.trims, blank) {
                        (false, _) => self.out.push_str(&format!(" {end}")),
                        (true, false) => self.out.push_str(&format!(" -{end}\n")),
                        (true, true) => self.out.push_str(&format!("\n{end}")),
                    }
                }
            }
        }
        match self.open.is_empty() {
            true => Ok(()),
            false => Err(Unbalanced { line: last, why: "an 'end' is missing" }),
        }
    }

    /// What means something in Jinja is said to be text.
    fn text(&mut self, text: &str, before_tag: bool) {
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match (c, chars.peek()) {
                ('{', Some(second @ ('{' | '%' | '#'))) => {
                    self.out.push_str(&format!("{{{{ \"{{{second}\" }}}}"));
                    chars.next();
                }
                ('{', None) if before_tag => self.out.push_str("{{ \"{\" }}"),
                _ => self.out.push(c),
            }
        }
    }

    /// The two ends of what a tag becomes, and what is between them.
    fn tag(&mut self, tag: &Tag) -> Result<(&'static str, String, &'static str), Unbalanced> {
        let code = tag.code.trim();
        let print = |it: String| Ok(("{{", it, "}}"));
        match tag.kind {
            TagKind::Comment => Ok(("{#", comment(code), "#}")),
            TagKind::Run if code.is_empty() || (code.starts_with('#') && !code.contains('\n')) => {
                Ok(("{#", comment(code.trim_start_matches('#')), "#}"))
            }
            TagKind::Print => match self.scope.printed(code) {
                Ok(jinja) => print(jinja),
                Err(why) => print(self.leave(tag, &why)),
            },
            TagKind::Run => match self.statement(tag, code)? {
                Ok(jinja) => Ok(("{%", jinja, "%}")),
                Err(why) => print(self.leave(tag, &why)),
            },
        }
    }

    /// What `<% %>` becomes, or why it cannot.
    fn statement(
        &mut self,
        tag: &Tag,
        code: &str,
    ) -> Result<Result<String, Untranslatable>, Unbalanced> {
        let (word, rest) = match code.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim()),
            None => (code, ""),
        };
        let unbalanced = |why| Err(Unbalanced { line: tag.line, why });
        let done = match (word, self.open.last()) {
            ("end" | "}", None) => return unbalanced("an 'end' of nothing"),
            ("end" | "}", Some(_)) if rest.is_empty() => self.close(),
            ("else", Some(Enclosing::If | Enclosing::Unknown)) if rest.is_empty() => {
                "else".to_owned()
            }
            ("elsif", Some(Enclosing::If | Enclosing::Unknown)) => {
                let asked = self.scope.condition(rest);
                format!("elif {}", asked.unwrap_or_else(|why| self.leave(tag, &why)))
            }
            ("else" | "elsif" | "when" | "in" | "rescue" | "ensure", _) => {
                return unbalanced("a branch that is not understood");
            }
            ("if", _) => {
                let asked = self.scope.condition(rest);
                self.enclose(tag, "if", asked)?
            }
            ("unless", _) => {
                let asked = self.scope.negated(rest);
                self.enclose(tag, "if", asked)?
            }
            _ if opens(code) => return self.each(tag, code).map(Ok),
            _ => return Ok(self.assignment(code)),
        };
        Ok(Ok(done))
    }

    fn enclose(
        &mut self,
        tag: &Tag,
        word: &str,
        asked: Result<String, Untranslatable>,
    ) -> Result<String, Unbalanced> {
        let asked = asked.unwrap_or_else(|why| self.leave(tag, &why));
        self.push(tag, Enclosing::If)?;
        Ok(format!("{word} {asked}"))
    }

    fn push(&mut self, tag: &Tag, open: Enclosing) -> Result<(), Unbalanced> {
        if self.open.len() == DEEPEST {
            return Err(Unbalanced { line: tag.line, why: "tags are too deep in each other" });
        }
        self.open.push(open);
        Ok(())
    }

    fn close(&mut self) -> String {
        match self.open.pop() {
            Some(Enclosing::For(variables)) => {
                let known = self.scope.locals.len().saturating_sub(variables);
                self.scope.locals.truncate(known);
                "endfor".to_owned()
            }
            Some(Enclosing::If | Enclosing::Unknown) | None => "endif".to_owned(),
        }
    }

    /// `things.each do |thing|`, or something else with a block.
    fn each(&mut self, tag: &Tag, code: &str) -> Result<String, Unbalanced> {
        match self.gone_through(code) {
            Ok((variables, of)) => {
                self.push(tag, Enclosing::For(variables.len()))?;
                let names = variables.join(", ");
                self.scope.locals.extend(variables);
                Ok(format!("for {names} in {of}"))
            }
            Err(why) => {
                let left = self.leave(tag, &why);
                self.push(tag, Enclosing::Unknown)?;
                Ok(format!("if {left}"))
            }
        }
    }

    fn gone_through(&mut self, code: &str) -> Result<(Vec<String>, String), Untranslatable> {
        let not = || Untranslatable::new("a block that is not understood");
        let (head, variables) =
            code.strip_suffix('|').and_then(|it| it.rsplit_once('|')).ok_or_else(not)?;
        let head = head.trim_end();
        let head = head.strip_suffix("do").or_else(|| head.strip_suffix('{')).ok_or_else(not)?;
        let head = head.trim_end();
        let of = head
            .strip_suffix(".each_pair")
            .or_else(|| head.strip_suffix(".each"))
            .ok_or_else(not)?;
        let variables: Vec<String> = variables.split(',').map(|it| it.trim().to_owned()).collect();
        let usable = |name: &String| is_identifier(name) && !self.scope.locals.contains(name);
        if !variables.iter().all(usable) {
            return Err(Untranslatable::new("a variable that cannot be called so here"));
        }
        let of = self.scope.value(of)?;
        match variables.len() {
            1 if !head.ends_with(".each_pair") => Ok((variables, of)),
            2 => Ok((variables, format!("{of}|items"))),
            _ => Err(not()),
        }
    }

    /// `name = value`, of a name that is new.
    fn assignment(&mut self, code: &str) -> Result<String, Untranslatable> {
        let not = || Untranslatable::new("it does something");
        let (name, value) = code.split_once('=').ok_or_else(not)?;
        let name = name.trim();
        if !is_identifier(name) || value.starts_with(['=', '~', '>']) {
            return Err(not());
        }
        // In a loop of Jinja it would be another one.
        if self.scope.locals.iter().any(|it| it == name) || !self.open.is_empty() {
            return Err(Untranslatable::new("a variable that is set again, or in a block"));
        }
        let value = self.scope.value(value)?;
        self.scope.locals.push(name.to_owned());
        Ok(format!("set {name} = {value}"))
    }

    /// What stands for a tag that is not translated.
    fn leave(&mut self, tag: &Tag, why: &Untranslatable) -> String {
        let code = tag.code.trim();
        let first = code.lines().next().unwrap_or_default();
        let mut shown: String = first.chars().take(SHOWN).collect();
        if shown.len() < code.len() {
            shown.push('…');
        }
        let message = format!("'{shown}' is not translated: {why}");
        self.left.push((tag.line, message));
        format!("untranslated({})", text(code))
    }
}

fn opens(code: &str) -> bool {
    let first = code.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    if matches!(first, "case" | "while" | "until" | "for" | "begin") {
        return true;
    }
    let head = match code.strip_suffix('|').and_then(|it| it.rsplit_once('|')) {
        Some((head, _)) => head.trim_end(),
        None => code,
    };
    head.ends_with('{') || head.ends_with(" do") || head.ends_with(")do")
}

/// A comment of Jinja must not end before it ends.
fn comment(text: &str) -> String {
    text.trim().replace("#}", "# }")
}
