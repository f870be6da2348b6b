//! Identifiers: the nodes that an application or a program may run on.

use super::{nodes::Nodes, options::Options, rule::Rule, rules::Rules};
use crate::draft::{Draft, list, quoted};

/// The nodes that identifiers come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Among {
    All,
    /// In this order; none: it cannot run.
    These(Vec<usize>),
}

/// How the processes of a program are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// `#`: in turn.
    Even,
    /// `@`: one each.
    OneEach,
}

/// What identifiers are looked up in.
#[derive(Clone, Copy)]
pub(super) struct Identifiers<'a> {
    pub(super) options: &'a Options,
    pub(super) rules: &'a Rules,
}

impl Identifiers<'_> {
    fn nodes(&self) -> &Nodes {
        &self.options.nodes
    }

    /// The nodes of a list of identifiers, with the sign in it.
    fn among(
        &self,
        draft: &mut Draft,
        (file, line): (&str, usize),
        identifiers: &[String],
    ) -> (Among, Option<Sign>) {
        let words = self.rules.resolved(identifiers);
        let has = |sign: &str| words.iter().any(|word| word == sign);
        let sign = match (has("@"), has("#")) {
            (true, _) => Some(Sign::OneEach),
            (false, true) => Some(Sign::Even),
            (false, false) => None,
        };
        let named: Vec<&String> =
            words.iter().filter(|word| !matches!(word.as_str(), "@" | "#")).collect();
        if has("*") || (sign.is_some() && named.is_empty()) {
            return (Among::All, sign);
        }
        let nodes = self.nodes();
        let mut these: Vec<usize> = Vec::new();
        for word in named {
            let tagged = nodes.me.filter(|_| nodes.stereotypes.contains(word));
            match nodes.named(word).or(tagged) {
                Some(at) if these.contains(&at) => {}
                Some(at) => these.push(at),
                None => {
                    let message = format!("identifiers: '{word}' is no node of the list");
                    draft.gather(file, line, message);
                }
            }
        }
        (Among::These(these), sign)
    }

    /// Those of a job; `index`: its number among those that are divided.
    pub(super) fn of_job(
        &self,
        draft: &mut Draft,
        rule: &Rule,
        by_pattern: bool,
        index: usize,
    ) -> Among {
        let Some(identifiers) = &rule.identifiers else { return Among::All };
        let at = (rule.file.as_str(), rule.line);
        let (among, sign) = self.among(draft, at, identifiers);
        let Some(sign) = sign else { return among };
        if !by_pattern {
            let message =
                "identifiers: '#' and '@' are for patterns: it may run anywhere, as there";
            draft.gather(at.0, at.1, message);
            return Among::All;
        }
        let all: Vec<usize> = match among {
            Among::All => (0..self.nodes().all.len()).collect(),
            Among::These(these) => these,
        };
        let index = match sign {
            Sign::Even => index.checked_rem(all.len()),
            Sign::OneEach => Some(index),
        };
        Among::These(index.and_then(|index| all.get(index).copied()).into_iter().collect())
    }

    /// The `N` of an application called `x-N` or `x_N` says which node is its own.
    pub(super) fn of_app(&self, draft: &mut Draft, name: &str, rule: &Rule) -> Among {
        let Some(identifiers) = &rule.identifiers else { return Among::All };
        let (among, sign) = self.among(draft, (&rule.file, rule.line), identifiers);
        if sign.is_none() {
            return among;
        }
        let all: Vec<usize> = match among {
            Among::All => (0..self.nodes().all.len()).collect(),
            Among::These(these) => these,
        };
        let number = name.rsplit_once(['-', '_']).and_then(|(_, number)| number.parse().ok());
        let index = number.and_then(|it: usize| it.checked_sub(1)?.checked_rem(all.len()));
        Among::These(index.and_then(|index| all.get(index).copied()).into_iter().collect())
    }

    pub(super) fn written(&self, these: &[usize]) -> String {
        list(these.iter().filter_map(|at| self.nodes().name(*at)).map(quoted))
    }
}
