//! The waits that the node asked for: at most one for each token.

use crate::clock;
use mainstay_core::{clock::Mono, node::Token};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::time::sleep;

#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeSet<(Mono, Token)>,
    at: BTreeMap<Token, Mono>,
}

impl Timers {
    pub(crate) fn set(&mut self, token: Token, at: Mono) {
        if let Some(earlier) = self.at.insert(token.clone(), at) {
            self.due.remove(&(earlier, token.clone()));
        }
        self.due.insert((at, token));
    }

    /// Takes out the first one that is due, and says for how long it has been.
    pub(crate) fn take_due(&mut self, now: Mono) -> Option<(Token, Duration)> {
        let (at, _) = self.due.first()?;
        if *at > now {
            return None;
        }
        let (at, token) = self.due.pop_first()?;
        self.at.remove(&token);
        Some((token, now.since(at)))
    }

    /// Returns when one is due; never if there is none. May be dropped at any time.
    pub(crate) async fn due(&self) {
        match self.due.first() {
            Some((at, _)) => sleep(at.since(clock::mono())).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_set_again_is_due_once_and_at_its_new_time() {
        let mut timers = Timers::default();
        timers.set(Token::ShutdownDeadline, Mono(10));
        timers.set(Token::ShutdownDeadline, Mono(20));
        assert_eq!(timers.take_due(Mono(19)), None);
        assert_eq!(
            timers.take_due(Mono(25)),
            Some((Token::ShutdownDeadline, Duration::from_nanos(5)))
        );
        assert_eq!(timers.take_due(Mono(1000)), None);
    }
}
