//! A restart in waves: so many members at a time, each as it should be before the next ones.
//!
//! The members go by their start_sequence, lowest first, and no wave has members of two of them. A
//! wave is over when each of its members is healthy (without checks: has lived for a while), or has
//! ended as expected (`wait_exit`: only that). One that fails stops the restart where it is: those that are
//! still to come go on as they were.

use super::{App, AppCtx, AppOrder, Facts, Member, MemberState, member::Progress};
use crate::{clock::Mono, name::Name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Wave {
    /// So many at a time.
    size: u32,
    /// Those that are being restarted.
    members: BTreeSet<Name>,
    /// Those that are to come, in their order.
    left: Vec<Name>,
}

/// What follows from how the members are now.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WaveStep {
    /// They are not there yet, or not before then.
    Wait {
        until: Option<Mono>,
    },
    /// These are next.
    Restart(BTreeSet<Name>),
    /// This one has failed: the restart stops.
    Failed(Name),
    Over,
}

impl Wave {
    /// All that start with the app.
    pub(super) fn new(size: u32, facts: &Facts<'_>) -> Wave {
        let mut left: Vec<&Member<'_>> =
            facts.members.iter().filter(|it| it.place.start_sequence > 0).collect();
        left.sort_by_key(|it| it.place.start_sequence);
        let left = left.into_iter().map(|it| it.name.clone()).collect();
        Wave { size: size.max(1), members: BTreeSet::new(), left }
    }

    /// The next ones, if those before are as they should be.
    fn step(&mut self, now: Mono, facts: &Facts<'_>) -> WaveStep {
        let (mut waits, mut until) = (false, None);
        for member in self.members.iter().filter_map(|job| facts.member(job)) {
            match (member.progress(), member.state, member.healthy_at) {
                (Progress::Failed, ..) => return WaveStep::Failed(member.name.clone()),
                (Progress::Done, MemberState::Up, Some(at)) if at > now => {
                    until = until.max(Some(at))
                }
                (Progress::UnderWay, ..) | (Progress::Done, MemberState::Up, None) => waits = true,
                (
                    Progress::Done,
                    MemberState::Up
                    | MemberState::UnderWay
                    | MemberState::AtRest
                    | MemberState::Ended { .. },
                    _,
                ) => {}
            }
        }
        if waits || until.is_some() {
            return WaveStep::Wait { until };
        }
        self.left.retain(|job| facts.member(job).is_some());
        let sequence = |job: &Name| facts.member(job).map(|it| it.place.start_sequence);
        let Some(first) = self.left.first().map(sequence) else { return WaveStep::Over };
        let most = usize::try_from(self.size).unwrap_or(usize::MAX);
        let count = self.left.iter().take(most).take_while(|job| sequence(job) == first).count();
        self.members = self.left.drain(..count).collect();
        WaveStep::Restart(self.members.clone())
    }
}

impl App {
    /// It is up, and restarted in waves.
    #[must_use]
    pub fn is_in_waves(&self) -> bool {
        self.wave.is_some()
    }

    /// The next members are restarted, if those before are as they should be.
    pub(super) fn go_on_with_waves(&mut self, ctx: &mut AppCtx<'_>) {
        let Some(mut wave) = Option::clone(&self.wave) else { return };
        match wave.step(ctx.now, ctx.facts) {
            WaveStep::Wait { until } => {
                ctx.orders.extend(until.map(|at| AppOrder::Wake { at }));
            }
            WaveStep::Restart(members) => {
                *self.wave.edit() = Some(wave);
                for job in members {
                    self.give(&job, None);
                    ctx.orders.push(AppOrder::Restart { job });
                }
            }
            WaveStep::Failed(job) => {
                self.drop_waves();
                ctx.orders.push(AppOrder::StopWaves { job });
            }
            WaveStep::Over => self.drop_waves(),
        }
    }

    pub(super) fn drop_waves(&mut self) {
        if self.wave.is_some() {
            *self.wave.edit() = None;
        }
    }
}
