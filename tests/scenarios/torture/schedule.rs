//! What is done to a node, and when: all of it follows from the seed.

use super::{Scale, machine::Fault};
use mainstay_tests::Random;
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    KillAgent,
    /// To a copy of the binary, or to the one that runs.
    Upgrade {
        copy: Option<usize>,
    },
    /// The machine has this fault for so long; in the middle of it the agent is killed, or not.
    Fault {
        fault: Fault,
        lasts: Duration,
        kill: bool,
    },
}

#[derive(Debug)]
pub(super) struct Schedule {
    actions: Vec<(Duration, Action)>,
    copies: usize,
}

/// Copies of the binary that are upgraded to in turn.
const COPIES: usize = 2;

impl Schedule {
    /// Each of the faults comes as often as the others.
    pub(super) fn new(scale: Scale, faults: &[Fault]) -> Schedule {
        let mut random = Random::new(scale.seed);
        let upgrade = |number: u64| Action::Upgrade {
            copy: (scale.faults == 0 && number % 2 == 1)
                .then_some(usize::try_from(number / 2).unwrap_or(0) % COPIES),
        };
        let mut actions: Vec<Action> = (0..scale.kills)
            .map(|_| Action::KillAgent)
            .chain((0..scale.upgrades).map(upgrade))
            .collect();
        for fault in faults.iter().cycle().take(usize::try_from(scale.faults).unwrap_or(0)) {
            let lasts = Duration::from_millis(random.within(200..3000));
            // Nobody reads a journal but the next agent.
            let kill = random.within(0..2) == 0 || *fault == Fault::DamagedJournal;
            actions.push(Action::Fault { fault: *fault, lasts, kill });
        }
        random.shuffle(&mut actions);
        // Often an agent has time to get ready, at times it has not. The keeper does not take it
        // for a loop: that would be more than 30 within 10 s.
        let pause = |random: &mut Random| {
            let most = *random.pick(&[60, 600, 1200]);
            Duration::from_millis(random.within(0..most))
        };
        let actions = actions.into_iter().map(|action| (pause(&mut random), action)).collect();
        Schedule { actions, copies: COPIES }
    }

    pub(super) fn actions(&self) -> &[(Duration, Action)] {
        &self.actions
    }

    /// How many agents are killed, in a fault or out of it.
    pub(super) fn kills(&self) -> usize {
        let kills = |action: &Action| match action {
            Action::KillAgent => true,
            Action::Upgrade { .. } => false,
            Action::Fault { kill, .. } => *kill,
        };
        self.actions.iter().filter(|(_, action)| kills(action)).count()
    }

    pub(super) fn copies(&self) -> usize {
        self.copies
    }
}
