//! Events as they are sent: written once, shared by all who read them.
//!
//! Readers wait for this instead of the event log itself: however fast events come, a thousand readers
//! are not woken for each of them, and the agent goes on in between.

use bytes::Bytes;
use mainstay_agent::EventLog;
use mainstay_core::{event::Event, name::stands_for};
use mainstay_wire::api::{EventGap, EventView};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::sleep};

/// A chunk holds at most so many.
const AT_ONCE: usize = 64;
/// Chunks that are kept: nearly all readers are at the same place.
const KEPT: usize = 16;
/// Readers that are told at once.
const FEW: u32 = 16;
/// Further ones cost the others so much patience each.
const EACH: Duration = Duration::from_micros(100);

#[derive(Debug)]
pub(crate) struct EncodedEvents {
    log: Arc<EventLog>,
    chunks: Mutex<VecDeque<Chunk>>,
    readers: AtomicU32,
    /// The latest event that readers are to know of.
    told: watch::Sender<u64>,
}

/// Events that follow one another.
#[derive(Debug, Clone)]
pub(crate) struct Chunk {
    after: u64,
    /// The last one in it.
    pub(crate) to: u64,
    pub(crate) bytes: Bytes,
}

/// Counts a reader for as long as it is there.
#[derive(Debug)]
pub(crate) struct Subscription(Arc<EncodedEvents>);

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl EncodedEvents {
    pub(crate) fn new(log: Arc<EventLog>) -> Arc<EncodedEvents> {
        let told = watch::Sender::new(log.last());
        Arc::new(EncodedEvents { log, chunks: Mutex::default(), readers: AtomicU32::new(0), told })
    }

    pub(crate) fn log(&self) -> &EventLog {
        &self.log
    }

    pub(crate) fn subscribe(self: &Arc<EncodedEvents>) -> (Subscription, watch::Receiver<u64>) {
        self.readers.fetch_add(1, Ordering::Relaxed);
        (Subscription(self.clone()), self.told.subscribe())
    }

    /// Tells readers of new events, until the run is over.
    pub(crate) async fn tell(&self, mut ending: watch::Receiver<bool>) {
        let mut changes = self.log.subscribe();
        loop {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                _ = ending.wait_for(|over| *over) => return,
            }
            self.told.send_replace(*changes.borrow_and_update());
            let others = self.readers.load(Ordering::Relaxed).saturating_sub(FEW);
            if others > 0 {
                sleep(EACH * others).await;
            }
        }
    }

    /// What follows the event numbered `cursor`; `None`: nothing yet.
    pub(crate) fn after(&self, cursor: u64) -> Option<Chunk> {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunk) = chunks.iter().rev().find(|chunk| chunk.after == cursor) {
            return Some(chunk.clone());
        }
        let batch = self.log.after(cursor, AT_ONCE);
        let mut text = String::new();
        let mut to = cursor;
        if batch.gap {
            to = batch.events.first().map_or(0, |event| event.seq - 1);
            text.push_str(&self.gap(to));
        }
        for event in &batch.events {
            to = event.seq;
            text.push_str(&self.one(event));
        }
        if text.is_empty() {
            return None;
        }
        let chunk = Chunk { after: cursor, to, bytes: text.into() };
        // One with a gap is for one that was slow, and what it says is true only now.
        if !batch.gap {
            if chunks.len() == KEPT {
                chunks.pop_front();
            }
            chunks.push_back(chunk.clone());
        }
        Some(chunk)
    }

    /// Of what follows the event numbered `cursor`, some, and of that what is about a job: it may be
    /// nothing. `None`: nothing follows yet.
    pub(crate) fn about(&self, job: &str, cursor: u64) -> Option<Chunk> {
        let batch = self.log.after(cursor, AT_ONCE);
        let (first, last) = (batch.events.first()?, batch.events.last()?);
        let gap = if batch.gap { self.gap(first.seq - 1) } else { String::new() };
        let about = batch.events.iter().filter(|it| stands_for(job, it.source.as_str()));
        let text = std::iter::once(gap).chain(about.map(|event| self.one(event)));
        let bytes = text.collect::<String>().into();
        Some(Chunk { after: cursor, to: last.seq, bytes })
    }

    fn one(&self, event: &Event) -> String {
        let view = serde_json::to_value(EventView::from(event)).unwrap_or_default();
        let name = view["event"].as_str().unwrap_or("event");
        self.frame(event.seq, name, &view.to_string())
    }

    /// Events were missed; what is kept begins after the one numbered `before`.
    pub(crate) fn gap(&self, before: u64) -> String {
        let data = serde_json::to_string(&EventGap::new(before)).unwrap_or_default();
        self.frame(before, EventGap::NAME, &data)
    }

    /// JSON on one line.
    fn frame(&self, seq: u64, name: &str, data: &str) -> String {
        format!("id: {}:{seq}\nevent: {name}\ndata: {data}\n\n", self.log.run())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_core::event::{Kind, Source};

    fn events(seqs: std::ops::RangeInclusive<u64>) -> Vec<Event> {
        seqs.map(|seq| Event { seq, time: 0, source: Source::NODE, kind: Kind::Startup }).collect()
    }

    #[test]
    fn readers_at_the_same_place_share_what_was_written_once() {
        let encoded = EncodedEvents::new(EventLog::new("r".into(), events(1..=100)));
        let (one, other) = (encoded.after(0).expect("some"), encoded.after(0).expect("some"));
        assert_eq!(one.bytes.as_ptr(), other.bytes.as_ptr(), "the same bytes");
        assert_eq!(one.to, AT_ONCE as u64);
        let rest = encoded.after(one.to).expect("some");
        assert_eq!((rest.to, encoded.after(rest.to).is_none()), (100, true));
        let text = String::from_utf8(rest.bytes.to_vec()).expect("text");
        assert!(text.starts_with("id: r:65\nevent: startup\ndata: {\"seq\":65,"), "{text}");
    }

    #[test]
    fn one_that_fell_behind_is_told_of_a_gap_and_goes_on_with_what_is_kept() {
        let encoded = EncodedEvents::new(EventLog::new("r".into(), events(1..=10_010)));
        let chunk = encoded.after(3).expect("some");
        let text = String::from_utf8(chunk.bytes.to_vec()).expect("text");
        assert!(text.starts_with("id: r:10\nevent: gap\n"), "{text}");
        assert!(text.contains("id: r:11\nevent: startup\n"));
        assert_eq!(encoded.chunks.lock().expect("whole").len(), 0, "nobody else is there");
    }
}
