//! The little Ruby that templates are made of, as Jinja: what is read from profiles and secrets,
//! comparisons, and a few methods that mean the same in both. All else is refused by name.

use super::lexer::{Lexeme, Untranslatable, lexemes};
use std::collections::BTreeSet;

/// Expressions within expressions.
const DEEPEST: usize = 40;
/// Of what an expression becomes; `a || b` says `a` again and again.
const LONGEST: usize = 4000;
/// Words that no variable of Jinja can be called.
const KEYWORDS: [&str; 20] = [
    "and", "or", "not", "in", "is", "if", "else", "elif", "endif", "for", "endfor", "set", "true",
    "false", "none", "True", "False", "None", "loop", "self",
];
/// Words that mean something of ours in every template.
const OWN: [&str; 3] = ["profiles", "node", "secrets"];

/// What a template may name.
pub(super) struct RubyScope<'a> {
    /// Profiles by the names that the original gives them, with ours.
    pub(super) profiles: &'a [(String, String)],
    pub(super) locals: Vec<String>,
    /// The profiles that were named, by our names.
    pub(super) used: BTreeSet<String>,
}

/// An expression, translated.
#[derive(Debug, Clone)]
struct Translated {
    jinja: String,
    meaning: Meaning,
    /// Nothing that follows needs it in brackets.
    tight: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Meaning {
    /// `profiles`
    Profiles,
    Profile(String),
    Secrets,
    Secret,
    Value,
    /// Something that may be missing: `fetch(:key, nil)`.
    Optional,
    /// The same, with `&.` behind it.
    Guarded,
    Bool,
    Nil,
}

type RubyOutcome = Result<Translated, Untranslatable>;

impl RubyScope<'_> {
    /// What `<%= %>` prints: an expression of Jinja.
    pub(super) fn printed(&mut self, code: &str) -> Result<String, Untranslatable> {
        let it = self.whole(code)?;
        match it.meaning {
            Meaning::Value | Meaning::Bool => Ok(it.jinja),
            Meaning::Optional => Ok(format!("{}|default(\"\")", it.bracketed())),
            Meaning::Nil => Ok("\"\"".to_owned()),
            Meaning::Profiles
            | Meaning::Profile(_)
            | Meaning::Secrets
            | Meaning::Secret
            | Meaning::Guarded => Err(Untranslatable::new("it prints an object of Ruby")),
        }
    }

    /// What `if` asks.
    pub(super) fn condition(&mut self, code: &str) -> Result<String, Untranslatable> {
        self.whole(code)?.condition()
    }

    /// What `unless` asks.
    pub(super) fn negated(&mut self, code: &str) -> Result<String, Untranslatable> {
        Ok(format!("not ({})", self.whole(code)?.condition()?))
    }

    /// What is kept in a variable or gone through.
    pub(super) fn value(&mut self, code: &str) -> Result<String, Untranslatable> {
        let it = self.whole(code)?;
        match it.meaning {
            Meaning::Value | Meaning::Bool => Ok(it.jinja),
            _ => Err(Untranslatable::new("it is no plain value")),
        }
    }

    fn whole(&mut self, code: &str) -> RubyOutcome {
        let all = lexemes(code)?;
        let mut parser = RubyParser { all: &all, at: 0, depth: 0, scope: self };
        let found = parser.ternary()?;
        match parser.peek() {
            None => Ok(found),
            Some(more) => Err(Untranslatable::new(format!("{more} is not understood here"))),
        }
    }

    fn profile(&mut self, name: &str) -> RubyOutcome {
        let known = self.profiles.iter().find(|(theirs, _)| theirs == name);
        let (_, ours) =
            known.ok_or_else(|| Untranslatable::new(format!("there is no profile '{name}'")))?;
        self.used.insert(ours.clone());
        Ok(Translated {
            jinja: String::new(),
            meaning: Meaning::Profile(ours.clone()),
            tight: true,
        })
    }

    fn contents(&self, profile: &str) -> String {
        let plain = is_identifier(profile)
            && !OWN.contains(&profile)
            && !self.locals.iter().any(|it| it == profile);
        if plain { profile.to_owned() } else { format!("profiles[{}]", text(profile)) }
    }
}

struct RubyParser<'a, 'b, 'c> {
    all: &'a [Lexeme],
    at: usize,
    depth: usize,
    scope: &'b mut RubyScope<'c>,
}

impl RubyParser<'_, '_, '_> {
    fn peek(&self) -> Option<&Lexeme> {
        self.all.get(self.at)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let here = matches!(self.peek(), Some(Lexeme::Sign(it)) if *it == sign);
        self.at += usize::from(here);
        here
    }

    fn needs(&mut self, sign: &str) -> Result<(), Untranslatable> {
        if self.takes(sign) {
            Ok(())
        } else {
            Err(Untranslatable::new(format!("a '{sign}' is missing")))
        }
    }

    fn ternary(&mut self) -> RubyOutcome {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Untranslatable::new("it is too deep"));
        }
        let asked = self.any_of()?;
        let found = match self.takes("?") {
            false => asked,
            true => {
                let yes = self.ternary()?.plain()?;
                self.needs(":")?;
                let no = self.ternary()?.plain()?;
                Translated::loose(format!("({yes} if {} else {no})", asked.condition()?))
            }
        };
        self.depth -= 1;
        found.limited()
    }

    fn any_of(&mut self) -> RubyOutcome {
        let mut left = self.all_of()?;
        while self.takes("||") {
            let right = self.all_of()?;
            left = match (&left.meaning, &right.meaning) {
                (Meaning::Bool, Meaning::Bool) => {
                    Translated::bool(format!("({} or {})", left.jinja, right.jinja))
                }
                _ => {
                    let shown = left.clone().plain_or_optional()?;
                    let asked = left.condition()?;
                    Translated::loose(format!("({shown} if {asked} else {})", right.plain()?))
                }
            }
            .limited()?;
        }
        Ok(left)
    }

    fn all_of(&mut self) -> RubyOutcome {
        let mut left = self.compared()?;
        while self.takes("&&") {
            let right = self.compared()?;
            left = match (&left.meaning, &right.meaning) {
                (Meaning::Bool, Meaning::Bool) => {
                    Translated::bool(format!("({} and {})", left.jinja, right.jinja))
                }
                // The value of `a && b` is not that of its condition.
                _ => {
                    let (left, right) = (left.condition()?, right.condition()?);
                    Translated::bool(format!("({left} and {right})"))
                }
            }
            .limited()?;
        }
        Ok(left)
    }

    fn compared(&mut self) -> RubyOutcome {
        let left = self.negation()?;
        for sign in ["==", "!=", "<=", ">=", "<", ">"] {
            if self.takes(sign) {
                let right = self.negation()?;
                let nothing = |it: &Translated| it.meaning == Meaning::Nil;
                return match (sign, nothing(&left), nothing(&right)) {
                    ("==", false, true) => left.compared_to_nil(),
                    ("!=", false, true) => {
                        Ok(Translated::bool(format!("not {}", left.compared_to_nil()?.jinja)))
                    }
                    (_, false, false) => {
                        let (left, right) = (left.plain()?, right.plain()?);
                        Ok(Translated::bool(format!("({left} {sign} {right})")))
                    }
                    _ => Err(Untranslatable::new("nil is compared")),
                };
            }
        }
        Ok(left)
    }

    fn negation(&mut self) -> RubyOutcome {
        if !self.takes("!") {
            return self.postfix();
        }
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Untranslatable::new("it is too deep"));
        }
        let found = self.negation()?.condition()?;
        self.depth -= 1;
        Ok(Translated::bool(format!("(not {found})")))
    }

    fn postfix(&mut self) -> RubyOutcome {
        let mut it = self.primary()?;
        loop {
            if self.takes("[") {
                let key = self.key()?;
                self.needs("]")?;
                it = self.member(it, &key)?;
            } else if self.takes(".") {
                it = self.method(it)?;
            } else if self.takes("&.") {
                if it.meaning == Meaning::Optional {
                    it = Translated { meaning: Meaning::Guarded, ..it };
                }
                it = self.method(it)?;
            } else {
                return Ok(it);
            }
        }
    }

    fn primary(&mut self) -> RubyOutcome {
        let Some(lexeme) = self.peek().cloned() else {
            return Err(Untranslatable::new("it ends too early"));
        };
        self.at += 1;
        match lexeme {
            Lexeme::Word(word) => match word.as_str() {
                "profiles" => {
                    Ok(Translated { jinja: String::new(), meaning: Meaning::Profiles, tight: true })
                }
                "true" | "false" => Ok(Translated::bool(word)),
                "nil" => {
                    Ok(Translated { jinja: "none".into(), meaning: Meaning::Nil, tight: true })
                }
                _ if self.scope.locals.contains(&word) => Ok(Translated::value(word)),
                _ => Err(Untranslatable::new(format!("'{word}' is not understood"))),
            },
            Lexeme::Text(it) => Ok(Translated::value(text(&it))),
            Lexeme::Symbol(it) => Ok(Translated::value(text(&it))),
            Lexeme::Number(it) => Ok(Translated::value(it)),
            Lexeme::Sign("(") => {
                let within = self.ternary()?;
                self.needs(")")?;
                Ok(within)
            }
            other @ Lexeme::Sign(_) => {
                Err(Untranslatable::new(format!("{other} is not understood here")))
            }
        }
    }

    fn key(&mut self) -> Result<Key, Untranslatable> {
        let found = match self.peek() {
            Some(Lexeme::Symbol(name)) => Key::Name(name.clone()),
            Some(Lexeme::Number(number)) => Key::Index(number.clone()),
            // Keys of profiles are symbols: a text finds nothing there.
            _ => return Err(Untranslatable::new("a key that is no symbol or number")),
        };
        self.at += 1;
        Ok(found)
    }

    /// `it[key]`
    fn member(&mut self, it: Translated, key: &Key) -> RubyOutcome {
        match (&it.meaning, key) {
            (Meaning::Profiles, Key::Name(name)) => self.scope.profile(name),
            (Meaning::Secrets, Key::Name(name)) => Ok(Translated {
                jinja: path("secrets", name),
                meaning: Meaning::Secret,
                tight: true,
            }),
            (Meaning::Value, Key::Name(name)) => Ok(Translated::value(path(&it.bracketed(), name))),
            (Meaning::Value, Key::Index(number)) => {
                Ok(Translated::value(format!("{}[{number}]", it.bracketed())))
            }
            _ => Err(Untranslatable::new("what is in '[]' is not understood")),
        }
    }

    fn method(&mut self, it: Translated) -> RubyOutcome {
        let Some(Lexeme::Word(name)) = self.peek().cloned() else {
            return Err(Untranslatable::new("a method is missing"));
        };
        self.at += 1;
        let refused = || Err(Untranslatable::new(format!("'.{name}' is not understood here")));
        match (&it.meaning, name.as_str()) {
            (Meaning::Profiles, "fetch") => {
                self.needs("(")?;
                let Key::Name(key) = self.key()? else { return refused() };
                self.needs(")")?;
                self.scope.profile(&key)
            }
            (Meaning::Profile(profile), "contents" | "to_h") => {
                Ok(Translated::value(self.scope.contents(profile)))
            }
            (Meaning::Profile(_), "secrets") => {
                Ok(Translated { meaning: Meaning::Secrets, ..it.clone() })
            }
            (Meaning::Secret, "contents") => Ok(Translated::value(it.jinja)),
            (Meaning::Secrets | Meaning::Value | Meaning::Guarded, "fetch") => self.fetch(it),
            (Meaning::Guarded, "contents") => Ok(it),
            (Meaning::Value | Meaning::Optional, "nil?") => it.compared_to_nil(),
            (Meaning::Value, _) => self.method_of_value(it, &name),
            _ => refused(),
        }
    }

    /// `it.fetch(key)`, `it.fetch(key, default)`
    fn fetch(&mut self, it: Translated) -> RubyOutcome {
        self.needs("(")?;
        let key = self.key()?;
        let default = match self.takes(",") {
            true => Some(self.ternary()?),
            false => None,
        };
        self.needs(")")?;
        let of = match it.meaning {
            // What may be missing has nothing in it then.
            Meaning::Guarded => {
                let jinja = format!("({}|default({{}}))", it.bracketed());
                Translated::value(jinja)
            }
            _ => it,
        };
        let secret = of.meaning == Meaning::Secrets;
        let found = self.member(of, &key)?;
        match default {
            None => Ok(found),
            Some(Translated { meaning: Meaning::Nil, .. }) => {
                Ok(Translated { meaning: Meaning::Optional, ..found })
            }
            Some(_) if secret => Err(Untranslatable::new("a secret with a default")),
            Some(default) => {
                let jinja = format!("{}|default({})", found.bracketed(), default.plain()?);
                Ok(Translated::loose(jinja))
            }
        }
    }

    fn method_of_value(&mut self, it: Translated, name: &str) -> RubyOutcome {
        let base = it.bracketed();
        let filtered = |filter: &str| Ok(Translated::loose(format!("{base}|{filter}")));
        match name {
            "to_s" => Ok(it),
            "length" | "size" => filtered("length"),
            "upcase" => filtered("upper"),
            "downcase" => filtered("lower"),
            "strip" => filtered("trim"),
            "first" => filtered("first"),
            "last" => filtered("last"),
            "empty?" => Ok(Translated::bool(format!("({base}|length == 0)"))),
            "join" => {
                let separator = match self.takes("(") {
                    false => text(""),
                    true => {
                        let separator = self.ternary()?.plain()?;
                        self.needs(")")?;
                        separator
                    }
                };
                filtered(&format!("join({separator})"))
            }
            "key?" | "has_key?" | "include?" => {
                self.needs("(")?;
                let sought = self.ternary()?.plain()?;
                self.needs(")")?;
                Ok(Translated::bool(format!("({sought} in {base})")))
            }
            _ => Err(Untranslatable::new(format!("'.{name}' is not understood"))),
        }
    }
}

enum Key {
    Name(String),
    Index(String),
}

impl Translated {
    fn value(jinja: String) -> Translated {
        Translated { jinja, meaning: Meaning::Value, tight: true }
    }

    fn loose(jinja: String) -> Translated {
        Translated { jinja, meaning: Meaning::Value, tight: false }
    }

    fn bool(jinja: String) -> Translated {
        Translated { jinja, meaning: Meaning::Bool, tight: false }
    }

    fn limited(self) -> RubyOutcome {
        if self.jinja.len() > LONGEST {
            Err(Untranslatable::new("it is too long"))
        } else {
            Ok(self)
        }
    }

    fn bracketed(&self) -> String {
        if self.tight { self.jinja.clone() } else { format!("({})", self.jinja) }
    }

    /// As an operand.
    fn plain(self) -> Result<String, Untranslatable> {
        match self.meaning {
            Meaning::Value | Meaning::Bool => Ok(self.jinja),
            Meaning::Nil => Ok("none".to_owned()),
            _ => Err(Untranslatable::new("an object of Ruby where a value is needed")),
        }
    }

    fn plain_or_optional(self) -> Result<String, Untranslatable> {
        match self.meaning {
            Meaning::Optional => Ok(self.jinja),
            _ => self.plain(),
        }
    }

    /// Ruby takes all but nil and false for true: 0 and an empty text as well.
    fn condition(self) -> Result<String, Untranslatable> {
        match self.meaning {
            Meaning::Bool => Ok(self.jinja),
            Meaning::Value | Meaning::Optional => {
                let it = self.bracketed();
                Ok(format!("({it} is defined and {it} is not none and {it} is not false)"))
            }
            Meaning::Nil => Ok("false".to_owned()),
            _ => Err(Untranslatable::new("an object of Ruby where a condition is needed")),
        }
    }

    fn compared_to_nil(self) -> RubyOutcome {
        match self.meaning {
            Meaning::Value | Meaning::Optional => {
                let it = self.bracketed();
                Ok(Translated::bool(format!("({it} is undefined or {it} is none)")))
            }
            _ => Err(Untranslatable::new("nil is compared")),
        }
    }
}

/// `base.name`, or `base["na-me"]`.
fn path(base: &str, name: &str) -> String {
    match is_identifier(name) {
        true => format!("{base}.{name}"),
        false => format!("{base}[{}]", text(name)),
    }
}

/// A string of Jinja.
pub(super) fn text(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

pub(super) fn is_identifier(name: &str) -> bool {
    let first = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    first
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !KEYWORDS.contains(&name)
}
