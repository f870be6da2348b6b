//! XML as a tree, read strictly and within bounds: rules of Supvisors, calls by XML-RPC.
//!
//! There is no document type here and no entity but the five that XML itself has: nothing in a
//! document can refer to a file or grow. A document that is too deep or has too many elements is
//! refused before anything is made of it.

use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event},
};
use std::borrow::Cow;

/// Elements within elements.
const DEEPEST: usize = 64;
/// Elements in all.
const MOST: usize = 100_000;
/// Of one element.
const MOST_ATTRIBUTES: usize = 64;

/// An element with all that is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    /// The text between its children, joined.
    pub text: String,
    pub children: Vec<Element>,
    /// Of its begin, counted from 1.
    pub line: usize,
}

/// Why a text is no document that can be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct XmlError {
    pub line: usize,
    pub why: XmlFlaw,
}

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum XmlFlaw {
    #[error("{0}")]
    Syntax(String),
    #[error("the entity '{0}' is not known")]
    UnknownEntity(String),
    #[error("the character U+{:04X} is not taken", u32::from(*.0))]
    Character(char),
    #[error("a document type is not taken")]
    DocumentType,
    #[error("a processing instruction is not taken")]
    Instruction,
    #[error("the declaration comes too late")]
    LateDeclaration,
    #[error("it is more than {DEEPEST} elements deep")]
    TooDeep,
    #[error("it has more than {MOST} elements")]
    TooMany,
    #[error("an element has more than {MOST_ATTRIBUTES} attributes")]
    TooManyAttributes,
    #[error("there is more than one element at the top")]
    SecondRoot,
    #[error("an element ends that was not begun")]
    NotBegun,
    #[error("the element '{0}' is not closed")]
    NotClosed(String),
    #[error("there is text outside of every element")]
    TextOutside,
    #[error("there is no element in it")]
    Empty,
}

impl Element {
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The first child of this name.
    #[must_use]
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }
}

/// The root of a document.
///
/// # Errors
/// It is not well-formed, or beyond what is taken here.
pub fn parse(text: &str) -> Result<Element, XmlError> {
    let mut lines = Lines { text, at: 0, line: 1 };
    let mut reader = Reader::from_str(text);
    reader.config_mut().enable_all_checks(true);
    let mut tree = Tree::default();
    loop {
        let line = lines.up_to(reader.buffer_position());
        let wrong = |why: XmlFlaw| XmlError { line, why };
        let event = reader.read_event().map_err(|error| wrong(syntax(error)))?;
        let done = match event {
            Event::Start(start) => tree.open(&start, line),
            Event::Empty(start) => tree.open(&start, line).and_then(|()| tree.close()),
            Event::End(_) => tree.close(),
            Event::Text(text) => tree.text(&text.xml10_content()),
            Event::CData(text) => tree.text(&text.xml10_content()),
            Event::GeneralRef(reference) => {
                let name: &str = &reference;
                let found = match reference.resolve_char_ref() {
                    Ok(Some(c)) => Some(c),
                    Ok(None) => entity(name),
                    Err(_) => None,
                };
                match found {
                    Some(c) => tree.text(c.encode_utf8(&mut [0; 4])),
                    None => Err(XmlFlaw::UnknownEntity(name.to_owned())),
                }
            }
            Event::DocType(_) => Err(XmlFlaw::DocumentType),
            Event::PI(_) => Err(XmlFlaw::Instruction),
            Event::Decl(_) if tree.is_untouched() => Ok(()),
            Event::Decl(_) => Err(XmlFlaw::LateDeclaration),
            Event::Comment(_) => Ok(()),
            Event::Eof => return tree.root().map_err(wrong),
        };
        done.map_err(wrong)?;
    }
}

fn syntax(error: impl ToString) -> XmlFlaw {
    XmlFlaw::Syntax(error.to_string())
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "apos" => '\'',
        "quot" => '"',
        _ => return None,
    })
}

/// What has been read so far.
#[derive(Default)]
struct Tree {
    open: Vec<Element>,
    root: Option<Element>,
    count: usize,
}

impl Tree {
    fn is_untouched(&self) -> bool {
        self.open.is_empty() && self.root.is_none()
    }

    fn open(&mut self, start: &BytesStart<'_>, line: usize) -> Result<(), XmlFlaw> {
        if self.root.is_some() {
            return Err(XmlFlaw::SecondRoot);
        }
        if self.open.len() == DEEPEST {
            return Err(XmlFlaw::TooDeep);
        }
        self.count += 1;
        if self.count > MOST {
            return Err(XmlFlaw::TooMany);
        }
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            if attributes.len() == MOST_ATTRIBUTES {
                return Err(XmlFlaw::TooManyAttributes);
            }
            let attribute = attribute.map_err(syntax)?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value: Cow<'_, str> = value.map_err(syntax)?;
            attributes.push((attribute.key.as_ref().to_owned(), allowed(&value)?.to_owned()));
        }
        let name = start.name().as_ref().to_owned();
        self.open.push(Element { name, attributes, line, ..Element::default() });
        Ok(())
    }

    fn close(&mut self) -> Result<(), XmlFlaw> {
        let Some(element) = self.open.pop() else {
            return Err(XmlFlaw::NotBegun);
        };
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), XmlFlaw> {
        let text = allowed(text)?;
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(XmlFlaw::TextOutside),
        }
        Ok(())
    }

    fn root(self) -> Result<Element, XmlFlaw> {
        match self.open.last() {
            Some(element) => Err(XmlFlaw::NotClosed(element.name.clone())),
            None => self.root.ok_or(XmlFlaw::Empty),
        }
    }
}

/// Characters that XML has no place for stand in no document, not even by their number.
fn allowed(text: &str) -> Result<&str, XmlFlaw> {
    let strange = |c: char| matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}');
    match text.chars().find(|c| strange(*c)) {
        Some(c) => Err(XmlFlaw::Character(c)),
        None => Ok(text),
    }
}

/// Counts lines on the way.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl Lines<'_> {
    fn up_to(&mut self, position: u64) -> usize {
        let position = usize::try_from(position).unwrap_or(usize::MAX).min(self.text.len());
        let passed = self.text.as_bytes().get(self.at..position).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.at = position.max(self.at);
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    #[test]
    fn a_document_becomes_a_tree_with_its_lines() {
        let text = "<?xml version='1.0'?>\n<root a=\"1 &lt; 2\">\n <b/><!-- no -->\n <c>x &amp; <![CDATA[<y>]]>&#33;</c>\n</root>\n";
        let root = parse(text).expect("a document");
        assert_eq!(
            (root.name.as_str(), root.line, root.attribute("a")),
            ("root", 2, Some("1 < 2"))
        );
        assert_eq!(root.child("b").map(|it| it.line), Some(3));
        assert_eq!(root.child("c").map(|it| it.text.as_str()), Some("x & <y>!"));
    }

    #[test]
    fn what_could_grow_or_reach_out_is_refused() {
        assert!(why("<!DOCTYPE r SYSTEM '/etc/passwd'><r/>").contains("document type"));
        let laughs = "<!DOCTYPE r [<!ENTITY a 'aaaa'>]><r>&a;</r>";
        assert!(why(laughs).contains("document type"));
        assert!(why("<r>&nbsp;</r>").contains("'nbsp' is not known"));
        assert!(why("<r>&#0;</r>").contains("is not known"));
        assert!(why("<r>&#27;</r>").contains("U+001B"));
        assert!(why("<r a='&x;'/>").contains('x'));
        assert!(why("<r><?php x?></r>").contains("processing instruction"));
    }

    #[test]
    fn depth_and_size_have_their_bounds() {
        let nested = |depth: usize| "<a>".repeat(depth) + &"</a>".repeat(depth);
        assert!(parse(&nested(DEEPEST)).is_ok());
        assert!(why(&nested(DEEPEST + 1)).contains("64 elements deep"));
        assert!(why(&format!("<r>{}</r>", "<a/>".repeat(MOST))).contains("more than"));
    }

    #[test]
    fn what_is_not_well_formed_is_refused_with_its_line() {
        for text in
            ["", "x", "<a>", "</a>", "<a></b>", "<a/><b/>", "<a/>x", "<a b=c/>", "<a>&", "<"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(why("<a>\n<b>\n</c>\n</a>").starts_with("line 3"));
    }
}
