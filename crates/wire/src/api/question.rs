//! What is asked about jobs, and that a request was taken.

use mainstay_core::name::Name;

/// Which jobs are asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The job of this name, else the instances of what is written under it.
    Named(String),
    OfApp(Name),
    /// Those that start with their app.
    StartedWith(Name),
    /// Those of them that there are.
    These(Vec<Name>),
}

/// A request that was taken, journaled, and is being carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The incarnation that the job had before; 0 also for requests to the node.
    pub before: u64,
    /// The number of the task that it has begun, or joined.
    pub task: Option<u64>,
}
