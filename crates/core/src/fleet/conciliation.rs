//! What becomes of a job that runs on several nodes.
//!
//! | rule | stays | then |
//! |---|---|---|
//! | senicide | the youngest, by its uptime | |
//! | infanticide | the oldest, by its uptime | |
//! | user | all, until somebody or something ends them | |
//! | stop | none | it rests |
//! | restart | none | it is started anew, where the rules say |
//! | running-failure | none | as if it had been lost with its node |

use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::{cmp::Reverse, time::Duration};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conciliation {
    Senicide,
    Infanticide,
    #[default]
    User,
    Stop,
    Restart,
    RunningFailure,
}

/// What follows once all copies are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Afterwards {
    Rest,
    Start,
    Fail,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// Nothing is done by itself.
    Wait,
    /// This one stays, the others are stopped.
    Keep {
        node: Name,
        stop: Vec<Name>,
    },
    StopAll {
        stop: Vec<Name>,
        then: Afterwards,
    },
}

/// The copies of one job, each with its uptime.
#[must_use]
pub fn conciliate(rule: Conciliation, copies: &[(Name, Duration)]) -> Settlement {
    let all = || copies.iter().map(|(node, _)| node.clone()).collect();
    let keep = |kept: Option<&(Name, Duration)>| match kept {
        None => Settlement::Wait,
        Some((node, _)) => {
            let others = copies.iter().filter(|(other, _)| other != node);
            Settlement::Keep {
                node: node.clone(),
                stop: others.map(|(other, _)| other.clone()).collect(),
            }
        }
    };
    match rule {
        Conciliation::User => Settlement::Wait,
        Conciliation::Senicide => keep(copies.iter().min_by_key(|(node, up)| (*up, node))),
        Conciliation::Infanticide => {
            keep(copies.iter().min_by_key(|(node, up)| (Reverse(*up), node)))
        }
        Conciliation::Stop => Settlement::StopAll { stop: all(), then: Afterwards::Rest },
        Conciliation::Restart => Settlement::StopAll { stop: all(), then: Afterwards::Start },
        Conciliation::RunningFailure => Settlement::StopAll { stop: all(), then: Afterwards::Fail },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_its_settlement() {
        let name = |text: &str| Name::new(text).expect("a name");
        let copies = [("a", 5), ("b", 90), ("c", 5)];
        let copies = copies.map(|(node, up)| (name(node), Duration::from_secs(up)));
        let keep = |node, stop: [&str; 2]| Settlement::Keep {
            node: name(node),
            stop: stop.map(name).to_vec(),
        };
        let all = |then| Settlement::StopAll { stop: ["a", "b", "c"].map(name).to_vec(), then };
        for (rule, expected) in [
            (Conciliation::Senicide, keep("a", ["b", "c"])),
            (Conciliation::Infanticide, keep("b", ["a", "c"])),
            (Conciliation::User, Settlement::Wait),
            (Conciliation::Stop, all(Afterwards::Rest)),
            (Conciliation::Restart, all(Afterwards::Start)),
            (Conciliation::RunningFailure, all(Afterwards::Fail)),
        ] {
            assert_eq!(conciliate(rule, &copies), expected, "{rule:?}");
        }
    }
}
