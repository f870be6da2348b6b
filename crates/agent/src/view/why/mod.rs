//! Why a job is as it is: the words are core's, the clocks are ours.

use crate::inputs::cron;
use mainstay_core::{
    clock::Now,
    explain::{self, Calendar},
    node::Node,
};
use mainstay_wire::stamp::rfc3339;

/// Five lines at most. `None`: there is no such job.
pub(crate) fn why(node: &Node, now: Now, name: &str) -> Option<Vec<String>> {
    explain::why(node, calendar(now), name)
}

pub(crate) fn calendar(now: Now) -> Calendar {
    let next_due = |cron: &_, wall| cron::next(cron, wall).ok();
    Calendar { now, written: rfc3339, next_due }
}

#[cfg(test)]
mod tests;
