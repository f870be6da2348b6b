//! Why a job is as it is: the words are core's, the clocks are ours.

use crate::inputs::cron;
use mainstay_core::{
    clock::Now,
    explain::{self, Calendar},
    node::Node,
};
use mainstay_wire::{api::Why, stamp::rfc3339};

/// `None`: there is no such job.
pub(crate) fn why(node: &Node, now: Now, name: &str) -> Option<Why> {
    let next_due = |cron: &_, wall| cron::next(cron, wall).ok();
    let lines = explain::why(node, Calendar { now, written: rfc3339, next_due }, name)?;
    Some(Why { job: node.job_plan(name)?.name.clone(), lines })
}

#[cfg(test)]
mod tests;
