//! What is wanted of each placed job, apart from what has become of it.
//!
//! One record a job, written by the master, kept by every node. Of two records the one wins that
//! comes later from the latest thing a user has said: so a later record of the same side replaces an
//! earlier one, and when a cut heals what a user wanted on one side beats what the other did by
//! itself. That is an order of all records: it does not matter who hears which first. Arguments have
//! an order of their own, by who has given them or taken them away: a start on the one side without
//! any leaves those that were given on the other.

use super::{LaterFields, Number, Shared};
use crate::{job::Desired, name::Name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobWish {
    /// The last thing that a user has said, which this one follows from.
    user: Option<Number>,
    number: Number,
    pub desired: Desired,
    /// Behind the plan's arguments, until it is stopped on purpose.
    pub args: Vec<String>,
    /// Where they were given, or taken away by a stop on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    args_by: Option<Number>,
    /// The node that it waits for, while it does.
    pub waits_for: Option<Name>,
    /// Lost with the next thing that a user says to a master that does not know them.
    #[serde(flatten)]
    later: LaterFields,
}

/// Who has made a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedBy {
    User,
    /// The fleet does, by its rules.
    Rule,
}

impl JobWish {
    #[must_use]
    pub fn is_by_user(&self) -> bool {
        self.user.as_ref() == Some(&self.number)
    }

    #[must_use]
    pub fn number(&self) -> &Number {
        &self.number
    }

    /// Where its arguments were given, or taken away by a stop on purpose.
    #[must_use]
    pub fn args_by(&self) -> Option<&Number> {
        self.args_by.as_ref()
    }

    fn beats(&self, other: &JobWish) -> bool {
        (&self.user, &self.number) > (&other.user, &other.number)
    }

    /// What follows from both.
    fn joined(&self, other: &JobWish) -> JobWish {
        let (last, before) = if other.beats(self) { (other, self) } else { (self, other) };
        // A stop that does not count takes no arguments away.
        let gives = before.args_by > last.args_by && !before.args.is_empty();
        let args_of = if gives { before } else { last };
        let (args, args_by) = (args_of.args.clone(), args_of.args_by.clone());
        JobWish { args, args_by, ..last.clone() }
    }
}

/// The wishes of all placed jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wishes(Shared<BTreeMap<Name, JobWish>>);

impl Wishes {
    #[must_use]
    pub fn of(&self, job: &Name) -> Option<&JobWish> {
        self.0.get(job)
    }

    #[must_use]
    pub fn is_wanted(&self, job: &Name) -> bool {
        self.of(job).is_some_and(|wish| wish.desired == Desired::Run)
    }

    #[must_use]
    pub fn is_disabled(&self, job: &Name) -> bool {
        self.of(job).is_some_and(|wish| wish.desired == Desired::Disabled)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Name, &JobWish)> {
        self.0.iter()
    }

    /// The master writes one. Without arguments those of before are kept, unless it rests on purpose.
    pub fn write(
        &mut self,
        number: Number,
        job: &Name,
        asked: AskedBy,
        desired: Desired,
        args: Option<Vec<String>>,
    ) {
        let before = self.0.get(job);
        let user = match asked {
            AskedBy::User => Some(number.clone()),
            AskedBy::Rule => before.and_then(|it| it.user.clone()),
        };
        let kept = || before.map(|it| (it.args.clone(), it.args_by.clone())).unwrap_or_default();
        let (args, args_by) = match (args, asked, desired) {
            (Some(args), _, _) => (args, Some(number.clone())),
            (None, AskedBy::User, Desired::Rest | Desired::Disabled) => {
                (Vec::new(), Some(number.clone()))
            }
            (None, AskedBy::User, Desired::Run) | (None, AskedBy::Rule, _) => kept(),
        };
        // What a rule does follows from what the user has said, and leaves what belongs to that.
        let later = match asked {
            AskedBy::User => LaterFields::default(),
            AskedBy::Rule => before.map(|it| it.later.clone()).unwrap_or_default(),
        };
        let wish = JobWish { user, number, desired, args, args_by, waits_for: None, later };
        self.0.edit().insert(job.clone(), wish);
    }

    /// It waits for this node, or for none any more. What is not wanted waits for nothing.
    pub fn wait_for(&mut self, number: Number, job: &Name, node: Option<Name>) {
        if !self.is_wanted(job) {
            return;
        }
        if let Some(wish) = self.0.edit().get_mut(job) {
            (wish.number, wish.waits_for) = (number, node);
        }
    }

    /// What another node has. `true`: something is new here.
    pub fn merge(&mut self, other: &Wishes) -> bool {
        if self.0.is(&other.0) {
            return false;
        }
        let news = |(job, wish): (&Name, &JobWish)| {
            let joined = match self.of(job) {
                Some(mine) if mine == wish => return None,
                Some(mine) => Some(mine.joined(wish)).filter(|joined| joined != mine)?,
                None => wish.clone(),
            };
            Some((job.clone(), joined))
        };
        let new: Vec<_> = other.iter().filter_map(news).collect();
        if new.is_empty() {
            return false;
        }
        self.0.edit().extend(new);
        self.0.share(&other.0);
        true
    }

    /// Where both are equal they become one.
    pub(super) fn share(&mut self, with: &Wishes) {
        self.0.share(&with.0);
    }

    /// Jobs that nobody knows any more are forgotten.
    pub fn retain(&mut self, is_known: impl Fn(&Name) -> bool) {
        if !self.0.keys().all(&is_known) {
            self.0.edit().retain(|job, _| is_known(job));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Term;
    use serde_json::{from_value, json, to_value};

    fn number(term: u64, master: &str, counter: u64) -> Number {
        let master = Name::new(master).expect("a name");
        Number { term: Term { number: term, master }, counter }
    }

    fn job() -> Name {
        Name::new("web").expect("a name")
    }

    fn args(text: &str) -> Option<Vec<String>> {
        Some(text.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn the_later_record_of_one_side_wins() {
        let mut one = Wishes::default();
        one.write(number(1, "a", 1), &job(), AskedBy::User, Desired::Run, args("-v"));
        let before = one.clone();
        one.write(number(1, "a", 2), &job(), AskedBy::Rule, Desired::Rest, None);
        let mut other = before;
        assert!(other.merge(&one));
        assert_eq!(other, one);
        assert!(!other.merge(&one), "nothing is new");
    }

    #[test]
    fn what_a_user_wanted_beats_what_the_other_side_did_by_itself() {
        let mut one = Wishes::default();
        one.write(number(1, "a", 1), &job(), AskedBy::User, Desired::Run, args("-v"));
        let mut other = one.clone();
        one.write(number(2, "a", 1), &job(), AskedBy::User, Desired::Rest, None);
        for counter in 1..9 {
            other.write(number(7, "b", counter), &job(), AskedBy::Rule, Desired::Run, None);
        }
        let mut merged = other.clone();
        merged.merge(&one);
        one.merge(&other);
        assert_eq!(merged, one, "whoever hears whom first");
        assert_eq!(one.of(&job()).map(|it| it.desired), Some(Desired::Rest));
    }

    #[test]
    fn arguments_of_the_one_side_outlive_a_start_on_the_other() {
        let mut one = Wishes::default();
        one.write(number(1, "a", 1), &job(), AskedBy::User, Desired::Run, None);
        let mut other = one.clone();
        one.write(number(1, "a", 2), &job(), AskedBy::User, Desired::Run, args("-v"));
        other.write(number(2, "b", 1), &job(), AskedBy::User, Desired::Run, None);
        let mut merged = other.clone();
        merged.merge(&one);
        let before = one.clone();
        one.merge(&other);
        assert_eq!(merged, one, "whoever hears whom first");
        let wish = one.of(&job()).expect("a wish");
        assert_eq!((&wish.number, wish.args.join(" ").as_str()), (&number(2, "b", 1), "-v"));
        // A stop on purpose takes them away on both sides.
        other.write(number(2, "b", 2), &job(), AskedBy::User, Desired::Rest, None);
        other.write(number(2, "b", 3), &job(), AskedBy::User, Desired::Run, None);
        let mut merged = before;
        merged.merge(&other);
        assert_eq!(merged, other);
    }

    #[test]
    fn a_stop_on_the_side_that_does_not_count_takes_no_arguments_away() {
        let mut one = Wishes::default();
        one.write(number(1, "a", 1), &job(), AskedBy::User, Desired::Run, args("-v"));
        let mut other = one.clone();
        one.write(number(1, "a", 2), &job(), AskedBy::User, Desired::Rest, None);
        other.write(number(2, "b", 1), &job(), AskedBy::User, Desired::Run, None);
        let mut merged = other.clone();
        merged.merge(&one);
        one.merge(&other);
        assert_eq!((&merged, &one), (&other, &other), "whoever hears whom first");
    }

    /// A node of this version stands between two of a later one.
    #[test]
    fn what_a_later_version_has_added_is_handed_on_as_it_came() {
        let mut plain = Wishes::default();
        plain.write(number(1, "a", 1), &job(), AskedBy::User, Desired::Run, args("-v"));
        let mut text = to_value(&plain).expect("JSON");
        text["web"]["colour"] = json!({ "red": 3 });
        let later: Wishes = from_value(text.clone()).expect("wishes");
        let mut here = Wishes::default();
        assert!(here.merge(&later));
        assert_eq!(to_value(&here).expect("JSON"), text);
        assert!(!here.merge(&plain) && !plain.merge(&here), "it is the same record");
        // What the fleet does by itself follows from what the user has said.
        here.write(number(1, "a", 2), &job(), AskedBy::Rule, Desired::Run, None);
        here.wait_for(number(1, "a", 3), &job(), Name::new("b").ok());
        assert_eq!(to_value(&here).expect("JSON")["web"]["colour"], text["web"]["colour"]);
        // What a user says here is of this version.
        here.write(number(1, "a", 4), &job(), AskedBy::User, Desired::Run, None);
        assert_eq!(to_value(&here).expect("JSON")["web"].get("colour"), None);
    }

    #[test]
    fn arguments_stay_until_it_is_stopped_on_purpose() {
        let mut wishes = Wishes::default();
        let kept =
            |wishes: &Wishes| wishes.of(&job()).map(|it| it.args.join(" ")).unwrap_or_default();
        wishes.write(number(1, "a", 1), &job(), AskedBy::User, Desired::Run, args("-v"));
        wishes.write(number(1, "a", 2), &job(), AskedBy::Rule, Desired::Run, None);
        wishes.wait_for(number(1, "a", 3), &job(), Name::new("b").ok());
        assert_eq!(kept(&wishes), "-v");
        wishes.write(number(2, "b", 1), &job(), AskedBy::User, Desired::Run, None);
        assert_eq!(kept(&wishes), "-v");
        wishes.write(number(2, "b", 2), &job(), AskedBy::User, Desired::Rest, None);
        assert_eq!(kept(&wishes), "");
    }
}
