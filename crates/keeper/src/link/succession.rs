//! All agents of a run, one after the other: when a dead one is replaced.

use mainstay_sys::reap::ExitStatus;
use std::{collections::VecDeque, time::Duration};

/// What follows when an agent has died.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterDeath {
    /// It refused to begin: the run ends with its code.
    End(i32),
    Restart {
        after: Duration,
    },
}

/// All agents of a run, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Succession {
    pub(crate) restarts: u64,
    ever_ready: bool,
    failures: u32,
    /// When agents were replaced at once, lately (CLOCK_BOOTTIME).
    at_once: VecDeque<u64>,
}

impl Succession {
    const FIRST_DELAY: Duration = Duration::from_millis(100);
    const LONGEST_DELAY: Duration = Duration::from_secs(10);
    /// So many replacements at once within so long are normal life; more is a loop.
    const AT_ONCE: usize = 30;
    const WITHIN: u64 = 10_000_000_000;
    const USAGE: i32 = 2;
    const CONFIGURATION: i32 = 78;

    pub(crate) fn resume(restarts: u64) -> Succession {
        Succession { restarts, ever_ready: true, ..Succession::default() }
    }

    pub(crate) fn became_ready(&mut self) {
        self.ever_ready = true;
    }

    pub(crate) fn died(&mut self, was_ready: bool, how: ExitStatus, now: u64) -> AfterDeath {
        if let (false, ExitStatus::Code(code @ (Succession::USAGE | Succession::CONFIGURATION))) =
            (self.ever_ready, how)
        {
            return AfterDeath::End(code);
        }
        self.restarts += 1;
        self.at_once.retain(|at| now.saturating_sub(*at) < Succession::WITHIN);
        if was_ready && self.at_once.len() < Succession::AT_ONCE {
            self.failures = 0;
            self.at_once.push_back(now);
            return AfterDeath::Restart { after: Duration::ZERO };
        }
        let delay = Succession::FIRST_DELAY.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        AfterDeath::Restart { after: delay.min(Succession::LONGEST_DELAY) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILLED: ExitStatus = ExitStatus::Signal(9);

    #[test]
    fn an_agent_that_was_ready_is_replaced_at_once_until_it_is_a_loop() {
        let mut succession = Succession::default();
        succession.became_ready();
        for _ in 0..Succession::AT_ONCE {
            assert_eq!(
                succession.died(true, KILLED, 5),
                AfterDeath::Restart { after: Duration::ZERO }
            );
        }
        assert_eq!(
            succession.died(true, KILLED, 6),
            AfterDeath::Restart { after: Duration::from_millis(100) }
        );
        let later = 6 + Succession::WITHIN;
        assert_eq!(
            succession.died(true, KILLED, later),
            AfterDeath::Restart { after: Duration::ZERO }
        );
    }

    #[test]
    fn an_agent_that_never_gets_ready_is_backed_off() {
        let mut succession = Succession::default();
        let delays: Vec<u128> = (0..9)
            .map(|_| match succession.died(false, ExitStatus::Code(1), 0) {
                AfterDeath::Restart { after } => after.as_millis(),
                AfterDeath::End(_) => panic!("not a refusal"),
            })
            .collect();
        assert_eq!(delays, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    }

    #[test]
    fn a_refusal_ends_the_run_only_before_any_agent_was_ready() {
        let mut succession = Succession::default();
        assert_eq!(succession.died(false, ExitStatus::Code(78), 0), AfterDeath::End(78));
        assert_eq!(succession.died(false, ExitStatus::Code(2), 0), AfterDeath::End(2));
        succession.became_ready();
        assert!(matches!(
            succession.died(false, ExitStatus::Code(78), 0),
            AfterDeath::Restart { .. }
        ));
    }
}
