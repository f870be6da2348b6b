//! `GET /v1/events`: what happens, as server-sent events.
//!
//! The id of an event is `run:seq`. A client that comes back with `Last-Event-ID` gets what follows
//! it, nothing twice and nothing left out; if that cannot be had any more, the event `gap` says so
//! and what is kept follows. `?since=SEQ` begins after that event, which must have happened;
//! without it a stream begins now. `?follow=false` ends with the latest event.

use crate::{
    AppState,
    extract::Query,
    problem::Problem,
    sse::{EncodedEvents, Subscription},
};
use axum::{
    body::Body,
    extract::State,
    http::{
        HeaderMap,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{sync::watch, time::sleep};

/// A stream on which nothing happens shows that it is alive.
const ALIVE: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    since: Option<u64>,
    follow: Option<bool>,
}

pub(crate) async fn stream(
    State(state): State<AppState>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let events = state.events;
    let (cursor, greeting) = begin(&events, query.since, &headers)?;
    let (subscription, told) = events.subscribe();
    let reader = EventReader {
        events,
        _subscription: subscription,
        told,
        ending: state.ending,
        follow: query.follow.unwrap_or(true),
        greeting: Some(greeting.into()),
        cursor,
    };
    let body = Body::from_stream(stream::unfold(reader, EventReader::next));
    let kind = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
    Ok((kind, body).into_response())
}

/// Where to begin, and what tells the client where that is, so that it can come back even before
/// the first event.
fn begin(
    events: &EncodedEvents,
    since: Option<u64>,
    headers: &HeaderMap,
) -> Result<(u64, String), Problem> {
    let log = events.log();
    let cursor = match (headers.get("last-event-id"), since) {
        (Some(id), _) => {
            let (run, seq) = seen(id.to_str().unwrap_or_default())?;
            if run != log.run() {
                // It comes from another run of the node, and has missed all of this one.
                return Ok((0, events.gap(0)));
            }
            seq
        }
        (None, Some(since)) if since > log.last() => {
            let last = log.last();
            let detail = format!("there is no event {since} yet: the latest is {last}");
            return Err(Problem::bad_request(detail));
        }
        (None, Some(since)) => since,
        (None, None) => log.last(),
    };
    Ok((cursor, format!("id: {}:{cursor}\n: from here\n\n", log.run())))
}

fn seen(id: &str) -> Result<(&str, u64), Problem> {
    id.split_once(':')
        .and_then(|(run, seq)| Some((run, seq.parse().ok()?)))
        .ok_or_else(|| Problem::bad_request("Last-Event-ID is not the id of an event, run:seq"))
}

struct EventReader {
    events: Arc<EncodedEvents>,
    _subscription: Subscription,
    told: watch::Receiver<u64>,
    ending: watch::Receiver<bool>,
    cursor: u64,
    follow: bool,
    greeting: Option<Bytes>,
}

impl EventReader {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, EventReader)> {
        if let Some(greeting) = self.greeting.take() {
            return Some((Ok(greeting), self));
        }
        loop {
            self.told.mark_unchanged();
            // Looked at before the log: once the run is over, nothing is added to it.
            let over = *self.ending.borrow() || !self.follow;
            if let Some(chunk) = self.events.after(self.cursor) {
                self.cursor = chunk.to;
                return Some((Ok(chunk.bytes), self));
            }
            if over {
                return None;
            }
            let quiet = tokio::select! {
                told = self.told.changed() => told.map(|()| false).ok()?,
                _ = self.ending.wait_for(|over| *over) => false,
                () = sleep(ALIVE) => true,
            };
            if quiet {
                return Some((Ok(Bytes::from_static(b":\n\n")), self));
            }
        }
    }
}
