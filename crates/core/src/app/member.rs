//! What an app knows of its members: facts, whoever has gathered them.

use crate::{
    clock::Mono,
    name::Name,
    plan::{AppPlan, Place},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, fmt, time::Duration};

/// One job of an app.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    pub name: &'a Name,
    pub place: &'a Place,
    pub state: MemberState,
    pub process: MemberProcess,
    /// It is healthy from then on, if it is up: without checks, when it has lived for a while.
    /// `None`: its checks have not passed.
    pub healthy_at: Option<Mono>,
}

/// A job without checks counts as healthy when it has lived for so long.
pub(crate) const LIVES: Duration = Duration::from_millis(500);

/// How far a member is what its app wants of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// It runs, or waits for nothing but its trigger.
    Up,
    /// On its way up or down.
    UnderWay,
    /// Nobody wants it to run.
    AtRest,
    /// It has ended by itself, for good.
    Ended { well: bool },
}

/// The process of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberProcess {
    None,
    /// It is there, and nobody has told it to stop.
    Up,
    /// It is there on behalf of another job's end: it ends by itself.
    HookRun,
    Stopping,
}

/// Why a member rests, where that is the doing of its app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestReason {
    /// The app has not come to its sequence.
    NotReached,
    /// The start of the app was aborted before it came to it.
    StartAborted,
    /// The app was stopped, because a member failed.
    AppFailed,
}

/// The members of an app as they are now.
pub struct Facts<'a> {
    pub members: Vec<Member<'a>>,
    /// Whatever those members need that have a process, near or far: it stops after them. Asked
    /// only when somebody is to stop.
    pub needed: &'a dyn Fn() -> BTreeSet<Name>,
    /// Other apps go in step with it: it comes to its next sequence when it is told so.
    pub in_step: bool,
}

/// How the start of a member goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Done,
    UnderWay,
    Failed,
}

impl Member<'_> {
    /// It holds its sequence up.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.progress() == Progress::UnderWay
    }

    pub(super) fn progress(&self) -> Progress {
        match self.state {
            MemberState::Ended { well: true } => Progress::Done,
            MemberState::Ended { well: false } => Progress::Failed,
            // Somebody else wants it at rest.
            MemberState::AtRest => Progress::Done,
            MemberState::Up if !self.place.wait_exit => Progress::Done,
            MemberState::Up | MemberState::UnderWay => Progress::UnderWay,
        }
    }

    /// A start of the app comes to it.
    pub(super) fn is_to_start(&self) -> bool {
        let at_rest = match self.state {
            MemberState::AtRest | MemberState::Ended { .. } => true,
            MemberState::Up | MemberState::UnderWay => false,
        };
        at_rest && self.place.start_sequence > 0
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.process == MemberProcess::Stopping
    }

    /// Its end is under way.
    pub(super) fn is_ending(&self) -> bool {
        match self.process {
            MemberProcess::None | MemberProcess::Up => false,
            MemberProcess::HookRun | MemberProcess::Stopping => true,
        }
    }

    pub(super) fn has_process(&self) -> bool {
        match self.process {
            MemberProcess::None => false,
            MemberProcess::Up | MemberProcess::HookRun | MemberProcess::Stopping => true,
        }
    }
}

impl<'a> Facts<'a> {
    pub(super) fn member(&self, name: &Name) -> Option<&Member<'a>> {
        self.members.iter().find(|member| member.name == name)
    }

    /// Those that come next, if all of them are to stop: nothing that is there needs them, and
    /// nothing before them in the order of the app is left.
    pub(super) fn next_to_stop(&self, plan: &AppPlan) -> Vec<&Member<'a>> {
        let with = |process: MemberProcess| {
            self.members.iter().filter(move |member| member.process == process)
        };
        if with(MemberProcess::Up).next().is_none() {
            return Vec::new();
        }
        let needed = (self.needed)();
        let free: Vec<&Member<'a>> =
            with(MemberProcess::Up).filter(|it| !needed.contains(it.name)).collect();
        let sequence = |member: &Member<'_>| plan.stop_sequence_of(member.place);
        let going = free.iter().copied().chain(with(MemberProcess::Stopping));
        let first = going.map(sequence).min();
        free.into_iter().filter(|member| Some(sequence(member)) == first).collect()
    }
}

impl fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts")
            .field("members", &self.members)
            .field("in_step", &self.in_step)
            .finish_non_exhaustive()
    }
}
