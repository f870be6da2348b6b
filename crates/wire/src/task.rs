//! Tasks on the link: what the agent wants run, and what came of it.

use crate::link::Exec;
use mainstay_core::{
    name::Name,
    plan::Log,
    task::{Bytes, TaskId, TaskOutcome},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How the keeper knows a task. Its owner is the agent's affair: the keeper keeps it as it is, so
/// that there can be owners that it has never heard of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "KeyFormats")]
pub struct TaskKey {
    /// As in [`TaskId`].
    pub number: u64,
    pub owner: Value,
}

/// A key as it is written now, or as format 2 had it.
#[derive(Deserialize)]
#[serde(untagged)]
enum KeyFormats {
    Numbered { number: u64, owner: Value },
    OfJob { job: Name, incarnation: u64, what: Value },
}

impl From<KeyFormats> for TaskKey {
    fn from(format: KeyFormats) -> TaskKey {
        match format {
            KeyFormats::Numbered { number, owner } => TaskKey { number, owner },
            KeyFormats::OfJob { job, incarnation, what } => {
                let owner = json!({"job": {"job": job, "incarnation": incarnation, "kind": what}});
                TaskKey { number: 0, owner }
            }
        }
    }
}

impl TaskKey {
    /// Both name the same task. One without a number is the one that its owner has.
    #[must_use]
    pub fn is_same(&self, other: &TaskKey) -> bool {
        let (one, two) = (self.number, other.number);
        self.owner == other.owner && (one == two || one == 0 || two == 0)
    }

    /// Both are of one check, be it of two incarnations of its job.
    #[must_use]
    pub fn is_same_check(&self, other: &TaskKey) -> bool {
        let of = |key: &TaskKey| {
            let mut owner = key.owner.clone();
            owner.as_object_mut()?.values_mut().for_each(|it| {
                it.as_object_mut().map(|it| it.remove("incarnation"));
            });
            (!key.is_journaled()).then_some(owner)
        };
        of(self).is_some_and(|owner| Some(owner) == of(other))
    }

    /// Its outcome is kept until the agent has it in its journal.
    #[must_use]
    pub fn is_journaled(&self) -> bool {
        self.number != 0
    }

    /// What the agent makes of it; `None`: it does not know such owners.
    #[must_use]
    pub fn id(&self) -> Option<TaskId> {
        let owner = serde_json::from_value(self.owner.clone()).ok()?;
        Some(TaskId { number: self.number, owner })
    }
}

impl From<&TaskId> for TaskKey {
    fn from(id: &TaskId) -> TaskKey {
        let owner = serde_json::to_value(&id.owner).unwrap_or_default();
        TaskKey { number: id.number, owner }
    }
}

/// Everything needed to run a task. Names are resolved: the keeper looks nothing up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunTask {
    pub id: TaskKey,
    /// The job whose cookie it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Name>,
    /// Nobody wants to know its outcome once this incarnation of a job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_with: Option<(Name, u64)>,
    pub exec: Exec,
    /// What it reads on stdin, at most [`mainstay_core::task::MAX_INPUT`].
    #[serde(default, skip_serializing_if = "Bytes::is_empty")]
    pub input: Bytes,
    pub timeout_ms: u64,
    /// What it writes is forwarded like this, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<Box<Log>>,
}

/// The outcome of a task: kept and told to every new agent until one has it in its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDone {
    pub id: TaskKey,
    #[serde(flatten)]
    pub outcome: TaskOutcome,
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_core::task::{TaskKind, TaskOwner};

    #[test]
    fn a_key_of_format_2_is_the_task_that_its_owner_has() {
        for (text, kind) in [
            (r#"{"job":"web","incarnation":3,"what":"stopexec"}"#, TaskKind::StopExec),
            (r#"{"job":"web","incarnation":3,"what":{"check":1}}"#, TaskKind::Check(1)),
        ] {
            let old: TaskKey = serde_json::from_str(text).expect("a key");
            let job = Name::new("web").expect("a name");
            let owner = TaskOwner::Job { job, incarnation: 3, kind };
            assert_eq!(old.id(), Some(TaskId { number: 0, owner: owner.clone() }));
            assert!(TaskKey::from(&TaskId { number: 7, owner }).is_same(&old));
        }
    }

    #[test]
    fn an_owner_that_nobody_knows_yet_goes_through_as_it_is() {
        let text = r#"{"number":4,"owner":{"cluster":{"name":"db","step":2}}}"#;
        let key: TaskKey = serde_json::from_str(text).expect("a key");
        assert_eq!(key.id(), None);
        assert_eq!(serde_json::to_string(&key).expect("JSON"), text);
    }
}
