//! The outline of a text that is no TOML: which keys stand where, which words stand for values, and
//! where brackets open. What a mistake of the parser's is about is told by its place in it, so that
//! nobody has to look into what the parser says.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};
use toml_parser::{
    ErrorSink, Source, Span,
    decoder::{Encoding, ScalarKind},
    parser::{EventReceiver, RecursionGuard, parse_document},
};

/// So many levels inside each other are read.
const DEEPEST: usize = 80;

/// What a mistake is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A key that stands already in its table, and where.
    DuplicateKey {
        first: Range<usize>,
    },
    NoValue,
    /// A word that is neither a number, a date, a boolean nor text in quotes.
    UnquotedText,
    /// Too many levels inside each other, here.
    TooDeep(Range<usize>),
    /// Whatever the parser says.
    Syntax,
}

/// From the outermost table; the elements of a list have a part of their own.
type KeyPath = Vec<String>;

#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// By where each part of a key begins.
    keys: BTreeMap<usize, KeyPart>,
    /// Where a path stands for the first time.
    first: BTreeMap<KeyPath, Range<usize>>,
    /// Words that stand for values and are none.
    words: BTreeMap<usize, usize>,
    /// Brackets that open beyond the last level.
    too_deep: BTreeSet<usize>,
    /// The key with the most parts: their number, and where it begins.
    longest_key: (usize, usize),
}

#[derive(Debug)]
struct KeyPart {
    path: KeyPath,
    end: usize,
    /// Where the whole key begins.
    begin: usize,
    /// How much of the path is written in it; of a header, only the last part is new.
    own: usize,
}

impl Outline {
    pub(crate) fn of(text: &str) -> Outline {
        let source = Source::new(text);
        let tokens = source.lex().into_vec();
        let mut scan = Scan::new(source);
        parse_document(&tokens, &mut RecursionGuard::new(&mut scan, DEEPEST as u32), &mut ());
        scan.outline
    }

    /// What the parser's mistake at this place of the text is about; `None`: it named no place.
    pub(crate) fn mistake(&self, text: &str, at: Option<&Range<usize>>) -> Mistake {
        let Some(at) = at else {
            let (parts, begin) = self.longest_key;
            let too_deep = parts > DEEPEST;
            return if too_deep { Mistake::TooDeep(line(text, begin)) } else { Mistake::Syntax };
        };
        if let Some(first) = self.first_of(at) {
            return Mistake::DuplicateKey { first };
        }
        match self.words.get(&at.start) {
            Some(end) if *end == at.end && at.is_empty() => return Mistake::NoValue,
            Some(end) if *end == at.end => return Mistake::UnquotedText,
            Some(_) | None => {}
        }
        match self.too_deep.contains(&at.start) {
            true => Mistake::TooDeep(at.clone()),
            false => Mistake::Syntax,
        }
    }

    /// Where the key at this place, or a table that it goes into, stood before.
    fn first_of(&self, at: &Range<usize>) -> Option<Range<usize>> {
        let KeyPart { path, end, begin, own } = self.keys.get(&at.start)?;
        let lengths = (path.len() - own + 1..=path.len()).rev();
        let mut before = lengths.filter_map(|length| self.first.get(&path[..length]));
        before.find(|first| first.start < *begin && *end == at.end).cloned()
    }
}

/// The line that this offset is on.
fn line(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
    start..start + text[start..end].trim_end().len()
}

/// Goes through a text, and draws its outline.
struct Scan<'t> {
    source: Source<'t>,
    outline: Outline,
    /// The table that a header has named last.
    table: KeyPath,
    /// The element that each list of tables has come to.
    elements: BTreeMap<KeyPath, String>,
    /// What is open inside a value: the path of each table and list.
    open: Vec<KeyPath>,
    /// The key that was read last, below its table.
    key: KeyPath,
    /// Where it begins, and how many parts it has.
    begin: usize,
    parts: usize,
    /// A dot was read: the next part belongs to the same key.
    dotted: bool,
    in_header: bool,
    counted: usize,
}

impl<'t> Scan<'t> {
    fn new(source: Source<'t>) -> Scan<'t> {
        Scan {
            source,
            outline: Outline::default(),
            table: Vec::new(),
            elements: BTreeMap::new(),
            open: Vec::new(),
            key: Vec::new(),
            begin: 0,
            parts: 0,
            dotted: false,
            in_header: false,
            counted: 0,
        }
    }

    /// The table that keys go into.
    fn base(&self) -> KeyPath {
        match self.open.last() {
            Some(open) => open.clone(),
            None if self.in_header => Vec::new(),
            None => self.table.clone(),
        }
    }

    /// With the element that each list of tables on the way has come to.
    fn resolved(&self, path: KeyPath) -> KeyPath {
        let mut resolved = KeyPath::new();
        for part in path {
            resolved.push(part);
            resolved.extend(self.elements.get(&resolved).cloned());
        }
        resolved
    }

    fn next_element(&mut self) -> String {
        self.counted += 1;
        // No key is written like that.
        format!("\0{}", self.counted)
    }

    fn value_path(&self) -> KeyPath {
        self.base().into_iter().chain(self.key.iter().cloned()).collect()
    }

    /// What is open in a list has no key.
    fn open_value(&mut self, span: Span) {
        let mut path = KeyPath::new();
        if self.open.len() < DEEPEST {
            path = self.value_path();
            path.extend(self.key.is_empty().then(|| self.next_element()));
        } else {
            self.outline.too_deep.insert(span.start());
        }
        self.open.push(path);
        self.key.clear();
    }

    fn close_value(&mut self) {
        self.open.pop();
        self.key.clear();
    }
}

impl EventReceiver for Scan<'_> {
    fn std_table_open(&mut self, _: Span, _: &mut dyn ErrorSink) {
        (self.in_header, self.dotted) = (true, false);
        self.open.clear();
        self.key.clear();
    }

    fn std_table_close(&mut self, _: Span, _: &mut dyn ErrorSink) {
        self.in_header = false;
        let key = std::mem::take(&mut self.key);
        self.table = self.resolved(key);
    }

    fn array_table_open(&mut self, span: Span, error: &mut dyn ErrorSink) {
        self.std_table_open(span, error);
    }

    fn array_table_close(&mut self, _: Span, _: &mut dyn ErrorSink) {
        self.in_header = false;
        let mut parts = std::mem::take(&mut self.key);
        let last = parts.pop();
        let mut list = self.resolved(parts);
        list.extend(last);
        let element = self.next_element();
        self.elements.insert(list.clone(), element.clone());
        list.push(element);
        self.table = list;
    }

    fn inline_table_open(&mut self, span: Span, _: &mut dyn ErrorSink) -> bool {
        self.open_value(span);
        true
    }

    fn inline_table_close(&mut self, _: Span, _: &mut dyn ErrorSink) {
        self.close_value();
    }

    fn array_open(&mut self, span: Span, _: &mut dyn ErrorSink) -> bool {
        self.open_value(span);
        true
    }

    fn array_close(&mut self, _: Span, _: &mut dyn ErrorSink) {
        self.close_value();
    }

    fn simple_key(&mut self, span: Span, encoding: Option<Encoding>, _: &mut dyn ErrorSink) {
        if !std::mem::take(&mut self.dotted) {
            self.key.clear();
            (self.begin, self.parts) = (span.start(), 0);
        }
        self.parts += 1;
        if self.parts > self.outline.longest_key.0 {
            self.outline.longest_key = (self.parts, self.begin);
        }
        if self.parts > DEEPEST {
            return;
        }
        let mut part = std::borrow::Cow::Borrowed("");
        if let Some(text) = self.source.input().get(span.start()..span.end()) {
            toml_parser::Raw::new_unchecked(text, encoding, span).decode_key(&mut part, &mut ());
        }
        self.key.push(part.into_owned());
        let (begin, end) = (self.begin, span.end());
        let (path, own) = match self.in_header {
            true => (self.resolved(self.key.clone()), 1),
            false => (self.value_path(), self.key.len()),
        };
        self.outline.first.entry(path.clone()).or_insert(span.start()..end);
        self.outline.keys.insert(span.start(), KeyPart { path, end, begin, own });
    }

    fn key_sep(&mut self, _: Span, _: &mut dyn ErrorSink) {
        self.dotted = true;
    }

    fn scalar(&mut self, span: Span, encoding: Option<Encoding>, _: &mut dyn ErrorSink) {
        if encoding.is_some() {
            return;
        }
        let Some(text) = self.source.input().get(span.start()..span.end()) else { return };
        let raw = toml_parser::Raw::new_unchecked(text, encoding, span);
        let mut value = std::borrow::Cow::Borrowed("");
        match raw.decode_scalar(&mut value, &mut ()) {
            // Text without quotes.
            ScalarKind::String => {
                self.outline.words.insert(span.start(), span.end());
            }
            ScalarKind::Boolean(_)
            | ScalarKind::DateTime
            | ScalarKind::Float
            | ScalarKind::Integer(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of the last place where this stands.
    fn at_last(text: &str, word: &str) -> Mistake {
        let start = text.rfind(word).expect("it is there");
        Outline::of(text).mistake(text, Some(&(start..start + word.len())))
    }

    fn twice(first: Range<usize>) -> Mistake {
        Mistake::DuplicateKey { first }
    }

    #[test]
    fn a_key_is_found_again_however_it_is_written() {
        assert_eq!(at_last("exec = 1\nexec = 2", "exec"), twice(0..4));
        assert_eq!(at_last("exec = 1\n\"exec\" = 2", "\"exec\""), twice(0..4));
        assert_eq!(at_last("[a]\nx = 1\n[b]\nx = 1\n[a]\n", "a"), twice(1..2));
        assert_eq!(at_last("a.b = 1\na.b = 2", "b"), twice(2..3));
        assert_eq!(at_last("a = 1\na.b = 2", "a"), twice(0..1));
        assert_eq!(at_last("[a.b]\nx = 1\n[a]\nb.y = 2", "y"), twice(3..4));
        assert_eq!(at_last("e = { A = 1, A = 2 }", "A"), twice(6..7));
    }

    #[test]
    fn the_same_word_in_another_table_is_another_key() {
        for text in [
            "[a]\nexec = 1\n[b]\nexec = 2",
            "[[a]]\nexec = 1\n[[a]]\nexec = 2",
            "[[a]]\n[a.x]\nexec = 1\n[[a]]\n[a.x]\nexec = 2",
            "l = [{ exec = 1 }, { exec = 2 }]",
            "a = { exec = 1 }\nb = { exec = 2 }",
        ] {
            assert_eq!(at_last(text, "exec"), Mistake::Syntax, "{text}");
        }
    }

    #[test]
    fn words_that_are_no_values_are_told_from_values() {
        assert_eq!(at_last("a = web", "web"), Mistake::UnquotedText);
        assert_eq!(at_last("a = 5 5", "5 5"), Mistake::UnquotedText);
        assert_eq!(at_last("a = 50", "50"), Mistake::Syntax);
        let text = "user = \n";
        assert_eq!(Outline::of(text).mistake(text, Some(&(7..7))), Mistake::NoValue);
    }
}
