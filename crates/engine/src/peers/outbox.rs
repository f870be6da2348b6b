//! What waits to go over one connection: never more than a few facts and so many messages.

use super::frame::FrameBytes;
use std::collections::VecDeque;

/// Beyond that the oldest goes: orders are given again.
const MESSAGES: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    facts: Option<FrameBytes>,
    pull: Option<FrameBytes>,
    messages: VecDeque<FrameBytes>,
    /// Nothing is to follow.
    ends: bool,
}

/// What the writer of a connection does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextWrite {
    Frame(FrameBytes),
    /// All is written, and nothing is to follow.
    End,
    Wait,
}

impl Outbox {
    /// All of them at once, in place of those that still wait.
    pub(crate) fn set_facts(&mut self, frame: FrameBytes) {
        self.facts = Some(frame);
    }

    pub(crate) fn set_pull(&mut self, frame: FrameBytes) {
        self.pull = Some(frame);
    }

    pub(crate) fn add(&mut self, frame: FrameBytes) {
        if self.messages.len() == MESSAGES {
            self.messages.pop_front();
        }
        self.messages.push_back(frame);
    }

    /// After what still waits nothing is to follow.
    pub(crate) fn end(&mut self) {
        self.ends = true;
    }

    /// What is said comes before what is sent.
    pub(crate) fn next(&mut self) -> NextWrite {
        let frame =
            self.facts.take().or_else(|| self.pull.take()).or_else(|| self.messages.pop_front());
        match (frame, self.ends) {
            (Some(frame), _) => NextWrite::Frame(frame),
            (None, true) => NextWrite::End,
            (None, false) => NextWrite::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(byte: u8) -> FrameBytes {
        vec![byte].into()
    }

    fn drain(outbox: &mut Outbox) -> Vec<u8> {
        let next = || match outbox.next() {
            NextWrite::Frame(frame) => Some(frame[0]),
            NextWrite::End | NextWrite::Wait => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn only_the_last_facts_wait_and_they_go_before_messages() {
        let mut outbox = Outbox::default();
        outbox.add(frame(9));
        outbox.set_facts(frame(1));
        outbox.set_facts(frame(2));
        outbox.set_pull(frame(3));
        outbox.end();
        assert_eq!(drain(&mut outbox), [2, 3, 9]);
        assert_eq!(outbox.next(), NextWrite::End);
    }

    #[test]
    fn messages_do_not_grow_without_end() {
        let mut outbox = Outbox::default();
        (0..3000).for_each(|_| outbox.add(frame(0)));
        assert_eq!(drain(&mut outbox).len(), MESSAGES);
        assert_eq!(outbox.next(), NextWrite::Wait);
    }
}
