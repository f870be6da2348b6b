//! Tasks: short runs on behalf of somebody, with an outcome that reaches whoever they are for.
//!
//! ```text
//!  start ─► number, open ─► Command::RunTask ─► keeper runs it, and keeps what came of it
//!                │                                     │
//!                └── Input::TaskDone ◄─────────────────┘  said again until it is journaled
//!                      └─► closed: its owner hears of it once; whatever comes later is stale
//! ```
//!
//! A task is open from the step that starts it to the step that hears of its end, and both are
//! journaled. An agent that takes over says every open task again under its number; the keeper
//! starts none twice.

use crate::{clock::Mono, exit::Exit, name::Name};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{collections::BTreeMap, path::PathBuf};

/// The most that a task can be given on stdin.
pub const MAX_INPUT: usize = 1 << 20;

/// How keeper and agent name a task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId {
    /// Unique in a run. 0: one that is not journaled, of which its owner has one at a time.
    pub number: u64,
    pub owner: TaskOwner,
}

/// Whom a task is run for. The keeper passes it on as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskOwner {
    Job {
        job: Name,
        incarnation: u64,
        kind: TaskKind,
    },
    /// The node itself, for this purpose.
    Node {
        purpose: String,
    },
    /// The rollout, for an operation; another agent has another room, which counts them anew.
    Rollout {
        room: u64,
        op: u64,
        /// Of an operation that takes several.
        #[serde(default)]
        part: u8,
    },
}

/// What a task does for its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    StopExec,
    Reload,
    /// Made by the agent for an exec check; the number is its place in the plan.
    Check(usize),
}

/// What a task runs that no plan describes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskSpec {
    pub exec: Vec<String>,
    /// On top of what jobs get.
    pub env: Vec<(String, String)>,
    #[serde(default, with = "crate::text::path")]
    pub cwd: Option<PathBuf>,
    pub user: Option<String>,
    /// What it reads on stdin: at most [`MAX_INPUT`].
    pub input: Bytes,
}

/// What came of a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskOutcome {
    pub exit: Exit,
    /// What it said on stdout and stderr: at most 64 KiB.
    pub output: String,
    /// It said more: whole lines of its beginning and of its end are there.
    pub truncated: bool,
}

impl TaskOutcome {
    /// Of a task that could not be run, or that nobody has run.
    #[must_use]
    pub fn error(error: String, errno: i32) -> TaskOutcome {
        TaskOutcome { exit: Exit::error(error, errno), output: String::new(), truncated: false }
    }
}

impl TaskId {
    /// A check of a job, asked by the agent.
    #[must_use]
    pub fn check(job: Name, incarnation: u64, check: usize) -> TaskId {
        let owner = TaskOwner::Job { job, incarnation, kind: TaskKind::Check(check) };
        TaskId { number: 0, owner }
    }

    /// Both name the same task. One without a number is the one that its owner has.
    #[must_use]
    pub fn is_same(&self, other: &TaskId) -> bool {
        let (one, two) = (self.number, other.number);
        self.owner == other.owner && (one == two || one == 0 || two == 0)
    }

    #[must_use]
    pub fn is_journaled(&self) -> bool {
        self.number != 0
    }
}

impl TaskOwner {
    /// The job that it is for, if it is one.
    #[must_use]
    pub fn job(&self) -> Option<&Name> {
        match self {
            TaskOwner::Job { job, .. } => Some(job),
            TaskOwner::Node { .. } | TaskOwner::Rollout { .. } => None,
        }
    }
}

/// The tasks of a node that have not ended, as far as it knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Tasks {
    /// The number of the last one.
    last: u64,
    open: BTreeMap<u64, OpenTask>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct OpenTask {
    pub(crate) owner: TaskOwner,
    pub(crate) deadline: Mono,
    /// `None`: what it runs is in the plan of its job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spec: Option<Box<TaskSpec>>,
}

impl Tasks {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Tasks::default()
    }

    /// Opens a task under the next number.
    pub(crate) fn open(&mut self, task: OpenTask) -> TaskId {
        self.last += 1;
        let id = TaskId { number: self.last, owner: task.owner.clone() };
        self.open.insert(self.last, task);
        id
    }

    /// Numbers that may have been given are given to no other.
    pub(crate) fn skip_to(&mut self, number: u64) {
        self.last = self.last.max(number);
    }

    /// The task that this owner has open.
    pub(crate) fn find(&self, owner: &TaskOwner) -> Option<TaskId> {
        let (number, open) = self.open.iter().find(|(_, open)| open.owner == *owner)?;
        Some(TaskId { number: *number, owner: open.owner.clone() })
    }

    /// The open task that an outcome belongs to. `None`: it was closed before, or never open.
    pub(crate) fn find_same(&self, id: &TaskId) -> Option<TaskId> {
        self.find(&id.owner).filter(|open| open.is_same(id))
    }

    /// A task has ended.
    pub(crate) fn close(&mut self, number: u64) {
        self.open.remove(&number);
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &OpenTask)> {
        self.open.iter().map(|(number, open)| (*number, open))
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(u64, &OpenTask) -> bool) {
        self.open.retain(|number, open| keep(*number, open));
    }
}

/// Any bytes; written as text in which each character is one byte.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = self.0.iter().copied().map(char::from).collect();
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = text.chars().map(u8::try_from).collect::<Result<_, _>>();
        bytes.map(Bytes).map_err(|_| D::Error::custom("a character beyond U+00FF"))
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        Bytes(bytes)
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        Bytes(bytes.to_vec())
    }
}

impl From<Bytes> for Vec<u8> {
    fn from(bytes: Bytes) -> Vec<u8> {
        bytes.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reload(incarnation: u64) -> OpenTask {
        let job = Name::new("web").expect("a name");
        let owner = TaskOwner::Job { job, incarnation, kind: TaskKind::Reload };
        OpenTask { owner, deadline: Mono(5), spec: None }
    }

    #[test]
    fn numbers_are_never_given_twice_and_an_owner_has_one_task_open() {
        let mut tasks = Tasks::default();
        let first = tasks.open(reload(1));
        assert_eq!(tasks.find(&reload(1).owner), Some(first.clone()));
        let second = tasks.open(reload(2));
        assert_eq!((first.number, second.number), (1, 2));
        assert_eq!(tasks.find_same(&second), Some(second.clone()));
        tasks.close(second.number);
        assert_eq!(tasks.find_same(&second), None, "told once");
        assert_eq!(tasks.open(reload(2)).number, 3);
        assert_eq!(tasks.find_same(&second), None, "another task of the same owner");
    }

    #[test]
    fn an_outcome_without_a_number_is_that_of_the_task_its_owner_has_open() {
        let mut tasks = Tasks::default();
        let id = tasks.open(reload(1));
        let unnumbered = TaskId { number: 0, owner: id.owner.clone() };
        assert_eq!(tasks.find_same(&unnumbered), Some(id));
    }

    #[test]
    fn any_bytes_come_back_as_they_were() {
        let bytes = Bytes((0..=255).collect());
        let text = serde_json::to_string(&bytes).expect("JSON");
        assert_eq!(serde_json::from_str::<Bytes>(&text).expect("JSON"), bytes);
        assert!(serde_json::from_str::<Bytes>("\"\u{100}\"").is_err());
    }
}
