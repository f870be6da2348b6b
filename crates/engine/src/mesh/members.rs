//! The numbers of members: each run gets one when it is first heard of, and no other run ever does.

use super::identity::MeshId;
use mainstay_core::{
    fleet::{FleetMember, MemberId, RunId},
    name::Name,
};
use std::{collections::BTreeMap, net::SocketAddr};

/// Runs that are gone and may come back: the earliest are forgotten.
const REMEMBERED: usize = 4096;

/// A member, and where it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    pub member: FleetMember,
    pub at: SocketAddr,
}

#[derive(Debug, Default)]
pub(crate) struct Members {
    given: u64,
    ids: BTreeMap<(Name, RunId), MemberId>,
    now: Vec<Reached>,
}

impl Members {
    /// `Some`: they are others than before.
    pub(crate) fn update<'a>(
        &mut self,
        members: impl Iterator<Item = &'a MeshId>,
    ) -> Option<Vec<Reached>> {
        let mut now: Vec<Reached> = members
            .map(|it| {
                let id = self.id(&it.node, &it.run);
                let member = FleetMember { node: it.node.clone(), run: it.run.clone(), id };
                Reached { member, at: it.at }
            })
            .collect();
        now.sort_by_key(|it| it.member.id);
        if now == self.now {
            return None;
        }
        self.now.clone_from(&now);
        self.forget();
        Some(now)
    }

    fn id(&mut self, node: &Name, run: &RunId) -> MemberId {
        let given = &mut self.given;
        *self.ids.entry((node.clone(), run.clone())).or_insert_with(|| {
            *given += 1;
            MemberId(*given)
        })
    }

    fn forget(&mut self) {
        let Some(oldest) = self.given.checked_sub(REMEMBERED as u64) else { return };
        let now = &self.now;
        self.ids.retain(|_, id| id.0 > oldest || now.iter().any(|it| it.member.id == *id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(node: &str, run: &str) -> MeshId {
        MeshId {
            node: Name::new(node).expect("a name"),
            run: RunId::new(run),
            at: ([127, 0, 0, 1], 1).into(),
            generation: 0,
        }
    }

    #[test]
    fn a_number_is_given_once_and_a_run_that_comes_back_has_its_own() {
        let mut members = Members::default();
        let numbers = |update: Option<Vec<Reached>>| {
            let members = update.expect("something is new");
            members.iter().map(|it| (it.member.run.to_string(), it.member.id.0)).collect::<Vec<_>>()
        };
        let (one, other) = (id("a", "first"), id("a", "second"));
        assert_eq!(numbers(members.update([&one].into_iter())), [("first".into(), 1)]);
        assert_eq!(members.update([&one].into_iter()), None);
        let both = numbers(members.update([&other, &one].into_iter()));
        assert_eq!(both, [("first".into(), 1), ("second".into(), 2)], "the earlier one first");
        assert_eq!(numbers(members.update([&other].into_iter())), [("second".into(), 2)]);
        assert_eq!(numbers(members.update([&one].into_iter())), [("first".into(), 1)]);
    }
}
