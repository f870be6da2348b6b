//! What a journal has of a step, for the tests that compare it with the node.

use mainstay_core::{
    name::Name,
    node::{Node, Outcome},
    record::Record,
};
use std::collections::BTreeMap;

/// A record as a journal gives it back.
pub(crate) fn written(record: &Record) -> Record {
    let text = serde_json::to_string(record).expect("a record");
    serde_json::from_str(&text).expect("a record")
}

/// The jobs that a step has records of.
pub(crate) fn recorded(outcome: &Outcome) -> Vec<&Name> {
    let jobs = outcome.records.iter().filter_map(|record| match record {
        Record::Job(name, _) => Some(name),
        _ => None,
    });
    jobs.collect()
}

/// Each job as it is written.
pub(crate) fn journal(node: &Node) -> BTreeMap<Name, String> {
    node.jobs()
        .map(|(plan, job)| (plan.name.clone(), serde_json::to_string(job).expect("a job")))
        .collect()
}
