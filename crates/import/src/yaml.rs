//! A YAML document as a tree with line numbers. Keys keep their order; anchors, aliases and merge
//! keys (`<<`) are resolved, within bounds.

use granit_parser::{Event, Parser};
use std::collections::BTreeMap;

/// Values in one document, aliases counted each time they are used.
const MOST_NODES: usize = 500_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct YamlNode {
    /// The number of the file it stands in.
    pub(super) file: usize,
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) value: YamlValue,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum YamlValue {
    /// `plain`: without quotes, so `true` and `1` are what they look like.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<YamlNode>),
    Map(Vec<(String, YamlNode)>),
}

/// Why a text is no usable YAML.
#[derive(Debug, PartialEq)]
pub(super) struct YamlError {
    pub(super) line: usize,
    pub(super) why: String,
}

impl YamlNode {
    pub(super) fn get(&self, key: &str) -> Option<&YamlNode> {
        self.map().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    pub(super) fn map(&self) -> &[(String, YamlNode)] {
        match &self.value {
            YamlValue::Map(pairs) => pairs,
            YamlValue::Scalar { .. } | YamlValue::List(_) => &[],
        }
    }

    pub(super) fn items(&self) -> &[YamlNode] {
        match &self.value {
            YamlValue::List(items) => items,
            YamlValue::Scalar { .. } | YamlValue::Map(_) => &[],
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            YamlValue::Scalar { text, plain }
                if *plain && matches!(text.as_str(), "" | "null" | "~") =>
            {
                None
            }
            YamlValue::Scalar { text, .. } => Some(text),
            YamlValue::List(_) | YamlValue::Map(_) => None,
        }
    }

    fn size(&self) -> usize {
        // Depth is bounded by the parser.
        1 + match &self.value {
            YamlValue::Scalar { .. } => 0,
            YamlValue::List(all) => all.iter().map(YamlNode::size).sum(),
            YamlValue::Map(all) => all.iter().map(|(_, node)| node.size()).sum(),
        }
    }
}

/// A collection whose end has not come.
struct Open {
    line: usize,
    anchor: usize,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<YamlNode>),
    Map { pairs: Vec<(String, YamlNode)>, key: Option<(String, usize)> },
}

/// The first document of a file.
pub(super) fn parse(text: &str, file: usize) -> Result<YamlNode, YamlError> {
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: BTreeMap<usize, (YamlNode, usize)> = BTreeMap::new();
    let mut nodes = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| YamlError {
            line: error.marker().line().max(1),
            why: error.info().to_owned(),
        })?;
        let line = span.start.line().max(1);
        let done = match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == granit_parser::ScalarStyle::Plain;
                let value = YamlValue::Scalar { text: text.into_owned(), plain };
                nodes += 1;
                Some((YamlNode { file, line, value }, anchor, 1))
            }
            Event::Alias(anchor) => {
                let (node, size) = anchors
                    .get(&anchor)
                    .ok_or_else(|| error(line, "an alias without an anchor"))?;
                nodes += size;
                if nodes > MOST_NODES {
                    return Err(error(line, "it is too large"));
                }
                Some((node.clone(), 0, *size))
            }
            Event::SequenceStart(_, anchor, _) => {
                open.push(Open { line, anchor, kind: OpenKind::List(Vec::new()) });
                nodes += 1;
                None
            }
            Event::MappingStart(_, anchor, _) => {
                open.push(Open {
                    line,
                    anchor,
                    kind: OpenKind::Map { pairs: Vec::new(), key: None },
                });
                nodes += 1;
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open
                .pop()
                .map(|it| {
                    let value = match it.kind {
                        OpenKind::List(all) => YamlValue::List(all),
                        OpenKind::Map { pairs, .. } => {
                            each_once(&pairs)?;
                            YamlValue::Map(merged(pairs))
                        }
                    };
                    let node = YamlNode { file, line: it.line, value };
                    let size = if it.anchor > 0 { node.size() } else { 0 };
                    Ok((node, it.anchor, size))
                })
                .transpose()?,
            _ => None,
        };
        if nodes > MOST_NODES {
            return Err(error(line, "it is too large"));
        }
        let Some((node, anchor, size)) = done else { continue };
        if anchor > 0 {
            // A copy is kept: anchors within anchors must not add up without end.
            nodes += size;
            anchors.insert(anchor, (node.clone(), size));
        }
        match open.last_mut().map(|it| &mut it.kind) {
            None => return Ok(node),
            Some(OpenKind::List(all)) => all.push(node),
            Some(OpenKind::Map { pairs, key }) => match key.take() {
                None => {
                    let Some(name) = node.text() else {
                        return Err(error(node.line, "a key that is no text"));
                    };
                    *key = Some((name.to_owned(), node.line));
                }
                // What belongs to a key is found where the key is.
                Some((name, line)) => pairs.push((name, YamlNode { line, ..node })),
            },
        }
    }
    Err(error(1, "it is empty"))
}

fn error(line: usize, why: &str) -> YamlError {
    YamlError { line, why: why.to_owned() }
}

/// A key that stands twice in one place: whoever wrote it meant one of them.
fn each_once(pairs: &[(String, YamlNode)]) -> Result<(), YamlError> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (key, node) in pairs.iter().filter(|(key, _)| key != "<<") {
        if let Some(line) = known.insert(key, node.line) {
            return Err(error(node.line, &format!("the key '{key}' is at line {line} already")));
        }
    }
    Ok(())
}

/// What `<<` brings in, unless it is there already.
fn merged(pairs: Vec<(String, YamlNode)>) -> Vec<(String, YamlNode)> {
    if pairs.iter().all(|(key, _)| key != "<<") {
        return pairs;
    }
    let mut all: Vec<(String, YamlNode)> = Vec::new();
    let mut from: Vec<(String, YamlNode)> = Vec::new();
    for (key, node) in pairs {
        match (key.as_str(), node.value) {
            ("<<", YamlValue::Map(more)) => from.extend(more),
            ("<<", YamlValue::List(many)) => {
                from.extend(many.into_iter().flat_map(|node| node.map().to_vec()));
            }
            (_, value) => all.push((key, YamlNode { file: node.file, line: node.line, value })),
        }
    }
    let mut known: std::collections::BTreeSet<String> =
        all.iter().map(|(key, _)| key.clone()).collect();
    for (key, node) in from {
        if known.insert(key.clone()) {
            all.push((key, node));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_becomes_a_tree_with_lines() {
        let tree = parse("a: &x\n  k: 1\n  l: 'true'\nb:\n  <<: *x\n  k: 2\nc: [1, two]\n", 0)
            .expect("valid");
        let b = tree.get("b").expect("valid");
        assert_eq!(
            (b.get("k").expect("there").text(), b.get("k").expect("there").line),
            (Some("2"), 6)
        );
        assert_eq!(b.get("l").and_then(YamlNode::text), Some("true"));
        assert_eq!(tree.get("c").expect("there").line, 7);
    }

    #[test]
    fn a_key_that_stands_twice_is_refused() {
        for text in ["a: 1\nb: 2\na: 3\n", "x: 1\ny:\n- a: 1\n  a: 2\n"] {
            let no = parse(text, 0).expect_err("a key twice");
            assert!(no.why.starts_with("the key 'a' is at line"), "{no:?}");
        }
        assert!(parse("p: &p {a: 1}\nq: &q {b: 1}\nr:\n  <<: *p\n  <<: *q\n  a: 2\n", 0).is_ok());
    }

    #[test]
    fn a_tree_that_would_explode_is_refused() {
        let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for n in 1..12 {
            let all = vec![format!("*a{}", n - 1); 10].join(",");
            text.push_str(&format!("a{n}: &a{n} [{all}]\n"));
        }
        assert_eq!(parse(&text, 0).expect_err("refused").why, "it is too large");
        assert!(parse(&"[".repeat(100_000), 0).is_err());
        assert!(parse(&"- ".repeat(100_000), 0).is_err());
        assert!(parse("", 0).is_err());
    }
}
