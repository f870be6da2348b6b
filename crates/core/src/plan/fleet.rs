//! `[fleet]`: the nodes that act as one, and which of them a job may run on.

use super::Plan;
use crate::{
    fleet::{Conciliation, Strategy},
    name::Name,
};
use ::core::net::SocketAddr;
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

/// The port of a node that names none.
pub const FLEET_PORT: u16 = 7071;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetPlan {
    /// Nodes of another fleet are not listened to.
    pub name: Name,
    pub engine: FleetEngine,
    /// UDP and TCP.
    pub listen: SocketAddr,
    /// Those that are expected, in their order; empty: whoever joins.
    pub nodes: Vec<FleetNode>,
    /// Some that know the others, as `host:port`.
    pub join: Vec<String>,
    pub core: Vec<Name>,
    /// How often nodes look whether the others are there.
    pub tick: Duration,
    pub sync_timeout: Duration,
    pub order_timeout: Duration,
    pub auto_fence: bool,
    pub strategy: Strategy,
    pub conciliation: Conciliation,
    #[serde(with = "crate::text::path")]
    pub key_file: PathBuf,
}

/// What the fleet stands on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetEngine {
    #[default]
    Mesh,
}

/// An expected node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetNode {
    pub name: Name,
    /// `host:port`
    pub address: String,
}

impl FleetPlan {
    pub const TICK: Duration = Duration::from_secs(1);
    pub const SYNC_TIMEOUT: Duration = Duration::from_secs(15);
    pub const ORDER_TIMEOUT: Duration = Duration::from_secs(5);
}

/// What differs, and only a new run of the node can have.
#[must_use]
pub fn wants_new_run(old: &Plan, new: &Plan) -> Vec<&'static str> {
    let (a, b) = match (&old.fleet, &new.fleet) {
        (None, None) => return Vec::new(),
        (None, Some(_)) | (Some(_), None) => return vec!["[fleet]"],
        (Some(a), Some(b)) => (a, b),
    };
    let keys = [
        ("node.name", old.node.name != new.node.name),
        ("node.machine", old.node.machine != new.node.machine),
        ("fleet.name", a.name != b.name),
        ("fleet.engine", a.engine != b.engine),
        ("fleet.listen", a.listen != b.listen),
        ("fleet.key_file", a.key_file != b.key_file),
        ("fleet.tick", a.tick != b.tick),
    ];
    keys.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

/// A name of a node, or a pattern with `*` and `?` that stands for several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodePattern(String);

impl NodePattern {
    /// `None`: no name of a node looks like that.
    #[must_use]
    pub fn new(text: &str) -> Option<NodePattern> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'*' | b'?');
        let fits = !text.is_empty() && text.len() <= 63 && text.bytes().all(allowed);
        fits.then(|| NodePattern(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// It stands for this node and no other.
    #[must_use]
    pub fn one(&self) -> Option<Name> {
        if self.0.contains(['*', '?']) { None } else { Name::new(&self.0).ok() }
    }

    #[must_use]
    pub fn matches(&self, node: &Name) -> bool {
        matches(self.0.as_bytes(), node.as_str().as_bytes())
    }
}

/// What a `*` stands for is as short as can be, and longer only where the rest does not fit: no text
/// takes long.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, read));
                at += 1;
            }
            Some(wanted) if *wanted == b'?' || *wanted == text[read] => {
                (at, read) = (at + 1, read + 1)
            }
            Some(_) | None => {
                let Some((after, from)) = star else { return false };
                star = Some((after, from + 1));
                (at, read) = (after, from + 1);
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == b'*')
}

/// The nodes that patterns stand for: in their order, a pattern in the order of the nodes; each once.
#[must_use]
pub fn nodes_in_order(patterns: &[NodePattern], nodes: &[Name]) -> Vec<Name> {
    let mut all: Vec<Name> = Vec::new();
    for pattern in patterns {
        let named = match pattern.one() {
            Some(node) => vec![node],
            None => nodes.iter().filter(|node| pattern.matches(node)).cloned().collect(),
        };
        for node in named {
            if !all.contains(&node) {
                all.push(node);
            }
        }
    }
    all
}

/// How the instances of a job are divided between the nodes that it may run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Each belongs to one node, in turn.
    Even,
    /// As even, but none is the second of its node: those beyond have none.
    OneEach,
}

impl Spread {
    /// Of these nodes the ones that instance `number`, counted from 1, may run on.
    #[must_use]
    pub fn of(self, number: u32, nodes: Vec<Name>) -> Vec<Name> {
        let index = number.saturating_sub(1) as usize;
        let index = match self {
            Spread::Even => index.checked_rem(nodes.len()),
            Spread::OneEach => Some(index),
        };
        index.and_then(|index| nodes.into_iter().nth(index)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<Name> {
        text.split_whitespace().map(|it| Name::new(it).expect("a name")).collect()
    }

    fn patterns(text: &str) -> Vec<NodePattern> {
        text.split_whitespace().map(|it| NodePattern::new(it).expect("a pattern")).collect()
    }

    #[test]
    fn patterns_stand_for_nodes_in_the_order_of_the_fleet() {
        let nodes = names("web-2 db-1 web-1 web-10");
        for (written, expected) in [
            ("web-*", "web-2 web-1 web-10"),
            ("web-1 web-*", "web-1 web-2 web-10"),
            ("web-?", "web-2 web-1"),
            ("*", "web-2 db-1 web-1 web-10"),
            ("far db-1", "far db-1"),
            ("w*1*", "web-1 web-10"),
            ("x*", ""),
        ] {
            assert_eq!(nodes_in_order(&patterns(written), &nodes), names(expected), "{written}");
        }
    }

    #[test]
    fn instances_are_divided_between_nodes() {
        let nodes = || names("a b c");
        let even = |number| Spread::Even.of(number, nodes());
        assert_eq!([even(1), even(3), even(4)], [names("a"), names("c"), names("a")]);
        let each = |number| Spread::OneEach.of(number, nodes());
        assert_eq!([each(1), each(3), each(4)], [names("a"), names("c"), names("")]);
        assert_eq!(Spread::Even.of(1, Vec::new()), names(""));
    }

    #[test]
    fn what_no_node_is_called_is_no_pattern() {
        for text in ["", "a b", "a.b", "ä", "[ab]"] {
            assert_eq!(NodePattern::new(text), None, "{text}");
        }
    }
}
