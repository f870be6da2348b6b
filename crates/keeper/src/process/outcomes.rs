//! The outcomes of tasks, kept until an agent has them in its journal.

use mainstay_wire::task::{TaskDone, TaskKey};

/// Outcomes whose output is kept; also those of checks, which are asked again.
const WITH_OUTPUT: usize = 64;
/// Outcomes in all, for an agent that has no room for its journal.
const MOST: usize = 4096;

/// Oldest first.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    kept: Vec<TaskDone>,
}

impl Outcomes {
    pub(crate) fn all(&self) -> impl Iterator<Item = TaskDone> {
        self.kept.iter().cloned()
    }

    /// Whether the outcome of this task is here. From now on it has its number.
    pub(crate) fn identify(&mut self, id: &TaskKey) -> bool {
        let found = self.kept.iter_mut().find(|done| done.id.is_same(id));
        found.is_some_and(|done| {
            done.id.clone_from(id);
            true
        })
    }

    pub(crate) fn acknowledged(&mut self, id: &TaskKey) {
        self.kept.retain(|done| !done.id.is_same(id));
    }

    /// Keeps one more. What takes too much room goes first: outcomes that nobody has to know, the
    /// output of old ones, and the oldest of all.
    pub(crate) fn add(&mut self, done: TaskDone) {
        if self.kept.len() >= WITH_OUTPUT {
            match self.kept.iter().position(|done| !done.id.is_journaled()) {
                Some(place) => drop(self.kept.remove(place)),
                None => self.shorten(),
            }
        }
        if self.kept.len() == MOST {
            self.kept.remove(0);
        }
        self.kept.push(done);
    }

    fn shorten(&mut self) {
        let said = self.kept.iter_mut().find(|done| !done.outcome.output.is_empty());
        if let Some(done) = said {
            (done.outcome.output, done.outcome.truncated) = (String::new(), true);
        }
    }
}

impl From<Vec<TaskDone>> for Outcomes {
    fn from(kept: Vec<TaskDone>) -> Outcomes {
        Outcomes { kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_core::{exit::Exit, task::TaskOutcome};
    use serde_json::json;

    fn done(number: u64, owner: u64) -> TaskDone {
        let outcome =
            TaskOutcome { exit: Exit::Code { code: 0 }, output: "x".repeat(100), truncated: false };
        TaskDone { id: TaskKey { number, owner: json!(owner) }, outcome }
    }

    #[test]
    fn checks_go_before_the_output_of_others_and_that_before_their_exits() {
        let mut outcomes = Outcomes::default();
        outcomes.add(done(0, 1000));
        for number in 1..=200 {
            outcomes.add(done(number, number));
        }
        let kept: Vec<TaskDone> = outcomes.all().collect();
        assert!(kept.iter().all(|done| done.id.is_journaled()), "checks went first");
        assert_eq!(kept.len(), 200, "no exit is lost");
        let with_output = kept.iter().filter(|done| !done.outcome.truncated).count();
        assert_eq!(with_output, WITH_OUTPUT);
        outcomes.acknowledged(&done(7, 7).id);
        assert_eq!(outcomes.all().count(), 199);
    }

    #[test]
    fn an_outcome_without_a_number_gets_the_one_that_its_task_is_asked_for_with() {
        let mut outcomes = Outcomes::from(vec![done(0, 1)]);
        assert!(!outcomes.identify(&done(4, 2).id));
        assert!(outcomes.identify(&done(4, 1).id));
        assert!(!outcomes.identify(&done(5, 1).id), "another task of the same owner");
        outcomes.acknowledged(&done(4, 1).id);
        assert_eq!(outcomes.all().count(), 0);
    }
}
