//! What is desired of a job, apart from what is observed of it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Desired {
    Run,
    Rest,
    Disabled,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Wish {
    desired: Desired,
    /// A user's arguments, behind the plan's, for as long as it is desired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
}

impl Wish {
    pub(super) fn new(desired: Desired) -> Wish {
        Wish { desired, args: Vec::new() }
    }

    pub(super) fn desired(&self) -> Desired {
        self.desired
    }

    pub(super) fn args(&self) -> &[String] {
        &self.args
    }

    pub(super) fn run(&mut self) {
        self.desired = Desired::Run;
    }

    /// Somebody asks for a run; arguments stay as they are unless there are others.
    pub(super) fn run_with(&mut self, args: Option<Vec<String>>) {
        self.run();
        if let Some(args) = args {
            self.args = args;
        }
    }

    /// From now on nothing but a user makes it run.
    pub(super) fn rest(&mut self) {
        self.desired = match self.desired {
            Desired::Run | Desired::Rest => Desired::Rest,
            Desired::Disabled => Desired::Disabled,
        };
        self.args.clear();
    }

    /// As the keeper remembers it.
    pub(super) fn recall(&mut self, desired: Desired) {
        self.desired = desired;
    }

    pub(super) fn disable(&mut self) {
        self.desired = Desired::Disabled;
    }
}
