//! `GET /v1/events`: what happens, as server-sent events.
//!
//! The id of an event is `run:seq`. A client that comes back with `Last-Event-ID` gets what follows
//! it, nothing twice and nothing left out; if that cannot be had any more, the event `gap` says so
//! and what is kept follows. `?since=SEQ` begins after that event, without it a stream begins now;
//! `?follow=false` ends with the latest event.

use crate::{Reach, body::Asked, problem::Problem};
use axum::{
    extract::State,
    http::HeaderMap,
    response::{
        IntoResponse, Response,
        sse::{self, KeepAlive, Sse},
    },
};
use futures_util::stream;
use mainstay_agent::{Ring, view::EventView};
use mainstay_core::event::Event;
use serde::Deserialize;
use serde_json::json;
use std::{collections::VecDeque, convert::Infallible, sync::Arc};
use tokio::sync::watch;

/// A reader holds at most so many at a time.
const AT_ONCE: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    since: Option<u64>,
    follow: Option<bool>,
}

pub(crate) async fn stream(
    State(reach): State<Reach>,
    Asked(query): Asked<Query>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let ring = reach.asker.events().clone();
    let start = match headers.get("last-event-id") {
        Some(id) => Start::after_id(id.to_str().unwrap_or_default(), ring.run())?,
        None => Start { cursor: query.since.unwrap_or_else(|| ring.last()), elsewhere: false },
    };
    let reader = Reader {
        changes: ring.subscribe(),
        ending: reach.ending,
        follow: query.follow.unwrap_or(true),
        ready: VecDeque::from_iter(start.greeting(&ring)),
        cursor: if start.elsewhere { 0 } else { start.cursor },
        ring,
    };
    let events = stream::unfold(reader, Reader::next);
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

struct Start {
    cursor: u64,
    /// The client comes from another run of the node.
    elsewhere: bool,
}

impl Start {
    fn after_id(id: &str, run: &str) -> Result<Start, Problem> {
        let (of_run, seq) = id
            .split_once(':')
            .and_then(|(of_run, seq)| Some((of_run, seq.parse().ok()?)))
            .ok_or_else(|| {
                Problem::bad_request("Last-Event-ID is not the id of an event, run:seq")
            })?;
        Ok(Start { cursor: seq, elsewhere: of_run != run })
    }

    /// Tells the client where it is, so that it can come back even before the first event.
    fn greeting(&self, ring: &Ring) -> Option<sse::Event> {
        match self.elsewhere {
            true => Some(gap(ring, 0)),
            false => Some(sse::Event::default().id(id(ring, self.cursor)).comment("from here")),
        }
    }
}

struct Reader {
    ring: Arc<Ring>,
    changes: watch::Receiver<u64>,
    ending: watch::Receiver<bool>,
    cursor: u64,
    follow: bool,
    ready: VecDeque<sse::Event>,
}

impl Reader {
    async fn next(mut self) -> Option<(Result<sse::Event, Infallible>, Reader)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some((Ok(event), self));
            }
            self.changes.mark_unchanged();
            // Looked at before the ring: once the run is over, nothing is added to it.
            let over = *self.ending.borrow() || !self.follow;
            if self.read() {
                continue;
            }
            if over {
                return None;
            }
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                _ = self.ending.wait_for(|over| *over) => {}
            }
        }
    }

    /// Takes the next events from the ring; false when there are none.
    fn read(&mut self) -> bool {
        let batch = self.ring.after(self.cursor, AT_ONCE);
        if batch.gap {
            let before = batch.events.first().map_or(0, |event| event.seq - 1);
            self.cursor = before;
            self.ready.push_back(gap(&self.ring, before));
        }
        for event in batch.events {
            self.cursor = event.seq;
            self.ready.push_back(one(&self.ring, &event));
        }
        !self.ready.is_empty()
    }
}

fn id(ring: &Ring, seq: u64) -> String {
    format!("{}:{seq}", ring.run())
}

fn one(ring: &Ring, event: &Event) -> sse::Event {
    let view = serde_json::to_value(EventView::from(event)).unwrap_or_default();
    let name = view["event"].as_str().unwrap_or("event").to_owned();
    sse::Event::default().id(id(ring, event.seq)).event(name).data(view.to_string())
}

/// Events were missed; what is kept begins after the one numbered `before`.
fn gap(ring: &Ring, before: u64) -> sse::Event {
    let data = json!({ "event": "gap", "source": "global", "detail": { "before": before } });
    sse::Event::default().id(id(ring, before)).event("gap").data(data.to_string())
}
