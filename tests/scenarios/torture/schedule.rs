//! What is done to a node, and when: all of it follows from the seed.

use super::Scale;
use mainstay_tests::Random;
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub(super) enum Deed {
    KillAgent,
    /// To a copy of the binary, or to the one that runs.
    Upgrade {
        copy: Option<usize>,
    },
}

#[derive(Debug)]
pub(super) struct Schedule {
    deeds: Vec<(Duration, Deed)>,
    copies: usize,
}

/// Copies of the binary that are upgraded to in turn.
const COPIES: usize = 2;

impl Schedule {
    pub(super) fn new(scale: Scale) -> Schedule {
        let mut random = Random::new(scale.seed);
        let upgrade = |number: u64| Deed::Upgrade {
            copy: (number % 2 == 1).then_some(usize::try_from(number / 2).unwrap_or(0) % COPIES),
        };
        let mut deeds: Vec<Deed> = (0..scale.kills)
            .map(|_| Deed::KillAgent)
            .chain((0..scale.upgrades).map(upgrade))
            .collect();
        random.shuffle(&mut deeds);
        // Often an agent has time to get ready, at times it has not. The keeper does not take it
        // for a loop: that would be more than 30 within 10 s.
        let pause = |random: &mut Random| {
            let most = *random.pick(&[60, 600, 1200]);
            Duration::from_millis(random.within(0..most))
        };
        let deeds = deeds.into_iter().map(|deed| (pause(&mut random), deed)).collect();
        Schedule { deeds, copies: COPIES }
    }

    pub(super) fn deeds(&self) -> &[(Duration, Deed)] {
        &self.deeds
    }

    pub(super) fn copies(&self) -> usize {
        self.copies
    }
}
