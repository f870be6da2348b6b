//! A YAML document as a tree with line numbers. Keys keep their order; anchors, aliases and merge
//! keys (`<<`) are resolved, within bounds.

use granit_parser::{Event, Parser};
use std::collections::BTreeMap;

/// Values in one document, aliases counted each time they are used.
const MOST_NODES: usize = 500_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// `plain`: without quotes, so `true` and `1` are what they look like.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// Why a text is no usable YAML.
#[derive(Debug, PartialEq)]
pub(super) struct Bad {
    pub(super) line: usize,
    pub(super) why: String,
}

impl Node {
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.map().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    pub(super) fn map(&self) -> &[(String, Node)] {
        match &self.value {
            Value::Map(pairs) => pairs,
            Value::Scalar { .. } | Value::List(_) => &[],
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, plain }
                if *plain && matches!(text.as_str(), "" | "null" | "~") =>
            {
                None
            }
            Value::Scalar { text, .. } => Some(text),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    pub(super) fn truth(&self) -> Option<bool> {
        match self.text()? {
            "true" | "True" | "TRUE" | "yes" => Some(true),
            "false" | "False" | "FALSE" | "no" => Some(false),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Option<u32> {
        self.text()?.parse().ok()
    }

    fn size(&self) -> usize {
        // Depth is bounded by the parser.
        1 + match &self.value {
            Value::Scalar { .. } => 0,
            Value::List(all) => all.iter().map(Node::size).sum(),
            Value::Map(all) => all.iter().map(|(_, node)| node.size()).sum(),
        }
    }
}

/// A collection whose end has not come.
struct Open {
    line: usize,
    anchor: usize,
    kind: Kind,
}

enum Kind {
    List(Vec<Node>),
    Map { pairs: Vec<(String, Node)>, key: Option<(String, usize)> },
}

/// The first document.
pub(super) fn parse(text: &str) -> Result<Node, Bad> {
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: BTreeMap<usize, (Node, usize)> = BTreeMap::new();
    let mut nodes = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| Bad {
            line: error.marker().line().max(1),
            why: error.info().to_owned(),
        })?;
        let line = span.start.line().max(1);
        let done = match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == granit_parser::ScalarStyle::Plain;
                let value = Value::Scalar { text: text.into_owned(), plain };
                nodes += 1;
                Some((Node { line, value }, anchor, 1))
            }
            Event::Alias(anchor) => {
                let (node, size) =
                    anchors.get(&anchor).ok_or_else(|| bad(line, "an alias without an anchor"))?;
                nodes += size;
                if nodes > MOST_NODES {
                    return Err(bad(line, "it is too large"));
                }
                Some((node.clone(), 0, *size))
            }
            Event::SequenceStart(_, anchor, _) => {
                open.push(Open { line, anchor, kind: Kind::List(Vec::new()) });
                nodes += 1;
                None
            }
            Event::MappingStart(_, anchor, _) => {
                open.push(Open { line, anchor, kind: Kind::Map { pairs: Vec::new(), key: None } });
                nodes += 1;
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(|it| {
                let value = match it.kind {
                    Kind::List(all) => Value::List(all),
                    Kind::Map { pairs, .. } => Value::Map(merged(pairs)),
                };
                let node = Node { line: it.line, value };
                let size = if it.anchor > 0 { node.size() } else { 0 };
                (node, it.anchor, size)
            }),
            _ => None,
        };
        if nodes > MOST_NODES {
            return Err(bad(line, "it is too large"));
        }
        let Some((node, anchor, size)) = done else { continue };
        if anchor > 0 {
            // A copy is kept: anchors within anchors must not add up without end.
            nodes += size;
            anchors.insert(anchor, (node.clone(), size));
        }
        match open.last_mut().map(|it| &mut it.kind) {
            None => return Ok(node),
            Some(Kind::List(all)) => all.push(node),
            Some(Kind::Map { pairs, key }) => match key.take() {
                None => {
                    let Some(name) = node.text() else {
                        return Err(bad(node.line, "a key that is no text"));
                    };
                    *key = Some((name.to_owned(), node.line));
                }
                // What belongs to a key is found where the key is.
                Some((name, line)) => pairs.push((name, Node { line, ..node })),
            },
        }
    }
    Err(bad(1, "it is empty"))
}

fn bad(line: usize, why: &str) -> Bad {
    Bad { line, why: why.to_owned() }
}

/// What `<<` brings in, unless it is there already.
fn merged(pairs: Vec<(String, Node)>) -> Vec<(String, Node)> {
    if pairs.iter().all(|(key, _)| key != "<<") {
        return pairs;
    }
    let mut all: Vec<(String, Node)> = Vec::new();
    let mut from: Vec<(String, Node)> = Vec::new();
    for (key, node) in pairs {
        match (key.as_str(), node.value) {
            ("<<", Value::Map(more)) => from.extend(more),
            ("<<", Value::List(many)) => {
                from.extend(many.into_iter().flat_map(|node| node.map().to_vec()));
            }
            (_, value) => all.push((key, Node { line: node.line, value })),
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
        let tree = parse("a: &x\n  k: 1\n  l: 'true'\nb:\n  <<: *x\n  k: 2\nc: [1, two]\n")
            .expect("valid");
        let b = tree.get("b").expect("valid");
        assert_eq!(
            (b.get("k").expect("there").number(), b.get("k").expect("there").line),
            (Some(2), 6)
        );
        assert_eq!(b.get("l").and_then(Node::text), Some("true"));
        assert_eq!(tree.get("c").expect("there").line, 7);
    }

    #[test]
    fn a_tree_that_would_explode_is_refused() {
        let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for n in 1..12 {
            let all = vec![format!("*a{}", n - 1); 10].join(",");
            text.push_str(&format!("a{n}: &a{n} [{all}]\n"));
        }
        assert_eq!(parse(&text).expect_err("refused").why, "it is too large");
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&"- ".repeat(100_000)).is_err());
        assert!(parse("").is_err());
    }
}
