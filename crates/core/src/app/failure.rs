//! What is wrong with an app, in one word.

use super::{App, AppPhase, Member, MemberState, RestReason};
use crate::name::Name;
use serde::{Deserialize, Serialize};

/// Major hides minor.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum AppFailure {
    #[default]
    None,
    /// A job has failed that the app can do without.
    Minor,
    /// A required job has failed, or is not there.
    Major,
}

impl App {
    /// What is wrong with it, given its members as they are now.
    #[must_use]
    pub fn failure<'a>(&self, members: impl IntoIterator<Item = Member<'a>>) -> AppFailure {
        self.failed(members).map(|(_, failure)| failure).max().unwrap_or_default()
    }

    /// The members that something is wrong with.
    pub fn failed<'a>(
        &self,
        members: impl IntoIterator<Item = Member<'a>>,
    ) -> impl Iterator<Item = (&'a Name, AppFailure)> {
        let phase = self.phase();
        let all = members.into_iter();
        let all = all.map(move |it| (it.name, failure(phase, &it, self.reason(it.name))));
        all.filter(|(_, failure)| *failure != AppFailure::None)
    }
}

fn failure(phase: AppPhase, member: &Member<'_>, reason: Option<RestReason>) -> AppFailure {
    let failed = match (member.state, phase) {
        (MemberState::Ended { well }, _) => !well,
        (MemberState::Up | MemberState::UnderWay, _) => false,
        (MemberState::AtRest, AppPhase::Stopped | AppPhase::Backoff | AppPhase::Stopping) => false,
        // One whose sequence is still to come is not missing.
        (MemberState::AtRest, AppPhase::Starting | AppPhase::Running) => {
            member.place.required && reason != Some(RestReason::NotReached)
        }
    };
    match (failed, member.place.required) {
        (false, _) => AppFailure::None,
        (true, false) => AppFailure::Minor,
        (true, true) => AppFailure::Major,
    }
}
