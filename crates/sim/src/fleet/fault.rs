//! What happens to a fleet, in words that a person can read.

use mainstay_core::{fleet::FleetRequest, name::Name};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The machine loses its power: jobs and agent are gone.
    Crash(Name),
    /// It comes back with what is on its disk.
    Boot(Name),
    /// It loses its power and is back before anybody has noticed.
    Reboot(Name),
    /// The agent dies, and the next one of the same run takes over; the jobs go on.
    NewAgent(Name),
    /// The same, and what the journal said is lost: the next one finds the processes, and neither their
    /// arguments nor who has started them.
    LoseJournal(Name),
    /// A user ends the node.
    Shutdown(Name),
    /// A user is about to end the node once others have what it runs; or does not want that any more.
    HandOver {
        node: Name,
        on: bool,
    },
    /// What is on its disk is copied to another machine, which begins under the same name.
    Clone(Name),
    /// That other machine loses its power for good.
    EndClone(Name),
    /// What is on its disk is torn: the next run finds nothing there.
    Tear(Name),
    /// Agent and mesh stand still; the jobs go on.
    Freeze(Name),
    Thaw(Name),
    /// The agent takes everything so many milliseconds late; its mesh does not.
    Slow {
        node: Name,
        by: u64,
    },
    /// The two groups no longer hear each other; one-way: the second does not hear the first.
    Cut {
        one: Vec<Name>,
        other: Vec<Name>,
        one_way: bool,
    },
    Heal,
    /// Packets are lost and come twice (of a thousand), and late (ms).
    Weather {
        loss: u64,
        repeats: u64,
        delay: u64,
    },
    /// A process ends by itself, wherever it runs.
    JobCrash(Name),
    /// It cannot be started any more, on any node; or it can again.
    JobBreaks {
        job: Name,
        on: bool,
    },
    /// Somebody starts it there, whatever the fleet says.
    StartHere {
        job: Name,
        node: Name,
    },
    /// Somebody stops it there, whatever the fleet says.
    StopHere {
        job: Name,
        node: Name,
    },
    /// A reload takes a job from the file of a node, writes it otherwise there, or brings it back.
    Reload {
        node: Name,
        job: Name,
        to: Written,
    },
    Ask {
        node: Name,
        request: FleetRequest,
    },
}

/// How a job is written in the file of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    AsElsewhere,
    Otherwise,
    Not,
}

impl Fault {
    /// Nodes may give each other up although both run.
    #[must_use]
    pub fn divides(&self) -> bool {
        match self {
            Fault::Cut { .. }
            | Fault::Freeze(_)
            | Fault::Clone(_)
            | Fault::Weather { loss: 1.., .. } => true,
            Fault::Crash(_)
            | Fault::Boot(_)
            | Fault::Reboot(_)
            | Fault::NewAgent(_)
            | Fault::LoseJournal(_)
            | Fault::Shutdown(_)
            | Fault::EndClone(_)
            | Fault::HandOver { .. }
            | Fault::Tear(_)
            | Fault::Thaw(_)
            | Fault::Slow { .. }
            | Fault::Heal
            | Fault::Weather { loss: 0, .. }
            | Fault::JobCrash(_)
            | Fault::JobBreaks { .. }
            | Fault::StartHere { .. }
            | Fault::StopHere { .. }
            | Fault::Reload { .. }
            | Fault::Ask { .. } => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[Name]| names.iter().map(Name::as_str).collect::<Vec<_>>().join(" ");
        match self {
            Fault::Crash(node) => write!(f, "{node} loses its power"),
            Fault::Boot(node) => write!(f, "{node} is switched on"),
            Fault::Reboot(node) => write!(f, "{node} loses its power and is back at once"),
            Fault::NewAgent(node) => write!(f, "the agent of {node} dies and is replaced"),
            Fault::LoseJournal(node) => {
                write!(f, "the agent of {node} dies with its journal and is replaced")
            }
            Fault::Shutdown(node) => write!(f, "{node} is shut down"),
            Fault::HandOver { node, on: true } => write!(f, "{node} hands over what it runs"),
            Fault::HandOver { node, on: false } => write!(f, "{node} hands over nothing more"),
            Fault::Clone(node) => write!(f, "a copy of {node} is switched on"),
            Fault::EndClone(node) => write!(f, "the copy of {node} loses its power"),
            Fault::Tear(node) => write!(f, "what is on the disk of {node} is torn"),
            Fault::Freeze(node) => write!(f, "{node} freezes"),
            Fault::Thaw(node) => write!(f, "{node} thaws"),
            Fault::Slow { node, by } => write!(f, "{node} takes everything {by} ms late"),
            Fault::Cut { one, other, one_way: false } => {
                write!(f, "cut between [{}] and [{}]", list(one), list(other))
            }
            Fault::Cut { one, other, one_way: true } => {
                write!(f, "[{}] no longer hear [{}]", list(other), list(one))
            }
            Fault::Heal => f.write_str("all cuts heal"),
            Fault::Weather { loss, repeats, delay } => {
                write!(
                    f,
                    "{loss} of 1000 packets are lost, {repeats} repeated, up to {delay} ms late"
                )
            }
            Fault::JobCrash(job) => write!(f, "{job} crashes"),
            Fault::JobBreaks { job, on: true } => write!(f, "{job} cannot be started any more"),
            Fault::JobBreaks { job, on: false } => write!(f, "{job} can be started again"),
            Fault::StartHere { job, node } => write!(f, "{job} is started on {node} by hand"),
            Fault::StopHere { job, node } => write!(f, "{job} is stopped on {node} by hand"),
            Fault::Reload { node, job, to } => {
                let how = match to {
                    Written::AsElsewhere => "as elsewhere",
                    Written::Otherwise => "otherwise",
                    Written::Not => "no more",
                };
                write!(f, "a reload on {node}: {job} is written there {how}")
            }
            Fault::Ask { node, request } => write!(f, "{node} is asked: {request:?}"),
        }
    }
}
