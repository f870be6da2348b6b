//! Why a job has no home in its fleet, in words.

use crate::{
    fleet::placement::{FULL, NotPlaced},
    name::Name,
};
use std::fmt;

impl fmt::Display for NotPlaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotPlaced::NoCandidate => f.write_str("no node that is there knows it and may have it"),
            NotPlaced::WaitsFor { node } => write!(f, "it waits for {node}"),
            NotPlaced::NotLocal => f.write_str("the node that was asked may not have it"),
            NotPlaced::NoRoom { loads } => {
                let one = |(node, load): &(Name, u32)| format!("{node} is at {load} of {FULL}");
                f.write_str(&loads.iter().map(one).collect::<Vec<_>>().join(", "))
            }
        }
    }
}
