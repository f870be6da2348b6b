//! The last events of the run, for everybody who wants to read them.
//!
//! Nobody has a queue of their own: a reader holds a cursor and comes back for more, so a slow or
//! vanished one costs nothing. One that fell behind what is kept is told how much it missed.

use mainstay_core::event::Event;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// So many are kept,
pub(crate) const KEPT: usize = 10_000;
/// or as many as take so many bytes.
const KEPT_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub struct EventLog {
    run: String,
    kept: Mutex<Kept>,
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Arc<Event>>,
    /// About as many as they take.
    bytes: usize,
}

/// What a reader gets for its cursor.
#[derive(Debug, Default)]
pub struct Batch {
    pub events: Vec<Arc<Event>>,
    /// The cursor does not fit what is kept: the reader has missed events, or comes from elsewhere.
    pub gap: bool,
}

impl EventLog {
    #[must_use]
    pub fn new(run: String, kept: impl IntoIterator<Item = Event>) -> Arc<EventLog> {
        let log = EventLog { run, kept: Mutex::default(), last: watch::Sender::new(0) };
        log.publish(kept);
        Arc::new(log)
    }

    /// The id of the run whose events these are.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The number of the latest event; 0 before the first.
    #[must_use]
    pub fn last(&self) -> u64 {
        *self.last.borrow()
    }

    /// Changes whenever events were added.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    pub(crate) fn publish(&self, events: impl IntoIterator<Item = Event>) {
        let mut kept = self.lock();
        events.into_iter().for_each(|event| kept.add(event));
        let last = kept.events.back().map_or(0, |event| event.seq);
        drop(kept);
        self.last.send_if_modified(|seen| std::mem::replace(seen, last) != last);
    }

    /// At most `most` events after the one numbered `cursor`.
    #[must_use]
    pub fn after(&self, cursor: u64, most: usize) -> Batch {
        let kept = &self.lock().events;
        let (Some(first), Some(last)) = (kept.front(), kept.back()) else {
            return Batch { events: Vec::new(), gap: cursor > 0 };
        };
        let gap = cursor + 1 < first.seq || cursor > last.seq;
        let from = if gap { 0 } else { kept.partition_point(|event| event.seq <= cursor) };
        Batch { events: kept.iter().skip(from).take(most).cloned().collect(), gap }
    }

    pub(crate) fn all(&self) -> Vec<Arc<Event>> {
        self.lock().events.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn add(&mut self, event: Event) {
        self.bytes += event.kind.size();
        self.events.push_back(Arc::new(event));
        while self.events.len() > KEPT || (self.bytes > KEPT_BYTES && self.events.len() > 1) {
            let gone = self.events.pop_front().map_or(0, |event| event.kind.size());
            self.bytes = self.bytes.saturating_sub(gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_core::event::{Kind, Source};

    fn event(seq: u64) -> Event {
        Event { seq, time: 0, source: Source::NODE, kind: Kind::Startup }
    }

    fn seqs(batch: &Batch) -> Vec<u64> {
        batch.events.iter().map(|event| event.seq).collect()
    }

    #[test]
    fn a_cursor_gets_what_follows_it() {
        let log = EventLog::new("r".into(), (1..=5).map(event));
        let batch = log.after(2, 2);
        assert_eq!((seqs(&batch), batch.gap), (vec![3, 4], false));
        let batch = log.after(5, 10);
        assert_eq!((seqs(&batch), batch.gap), (vec![], false));
        assert!(!log.after(0, 1).gap);
    }

    #[test]
    fn a_cursor_behind_or_ahead_of_what_is_kept_is_told_of_a_gap() {
        let log = EventLog::new("r".into(), (1..=KEPT as u64 + 10).map(event));
        let batch = log.after(3, 1);
        assert_eq!((seqs(&batch), batch.gap), (vec![11], true));
        assert!(!log.after(10, 1).gap);
        let batch = log.after(u64::MAX - 1, 1);
        assert_eq!((seqs(&batch), batch.gap), (vec![11], true));
        assert_eq!(log.all().len(), KEPT);
    }

    #[test]
    fn long_events_are_kept_as_far_as_their_size_goes_and_a_gap_is_told() {
        let long = |seq| {
            let (name, passing, output) = ("c".to_owned(), false, "x".repeat(4096));
            Event { kind: Kind::Check { name, passing, output }, ..event(seq) }
        };
        let log = EventLog::new("r".into(), (1..=5000).map(long));
        let kept = log.all();
        assert!(kept.iter().map(|it| it.kind.size()).sum::<usize>() <= KEPT_BYTES);
        assert!(kept.len() > 1900, "{}", kept.len());
        assert_eq!(kept.last().map(|it| it.seq), Some(5000));
        assert!(log.after(1, 1).gap && !log.after(4999, 1).gap);
    }

    #[test]
    fn subscribers_hear_of_new_events_only() {
        let log = EventLog::new("r".into(), []);
        let mut changes = log.subscribe();
        changes.mark_unchanged();
        log.publish([]);
        assert!(!changes.has_changed().expect("log lives"));
        log.publish([event(1)]);
        assert!(changes.has_changed().expect("log lives"));
    }
}
