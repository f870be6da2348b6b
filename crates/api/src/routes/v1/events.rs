//! `GET /v1/events`: what happens, as server-sent events.
//!
//! The id of an event is `run:seq`. A client that comes back with `Last-Event-ID` gets what follows
//! it, nothing twice and nothing left out; if that cannot be had any more, the event `gap` says so
//! and what is kept follows. `?since=SEQ` begins after that event, which must have happened;
//! without it a stream begins now. `?follow=false` ends with the latest event. `?job=NAME` is what is
//! about a job, of the node where it runs; `?fleet=1` is what all nodes of the fleet have to say.

use crate::{
    RouterState,
    extract::{Query, flag},
    passing::{
        Hop, Question,
        fleet_events::{self, Beginning},
        pass_on,
    },
    problem::Problem,
    sse::{Chunk, EncodedEvents, Subscription},
    wait::{Scope, Subject},
};
use axum::{
    body::Body,
    extract::State,
    http::{
        HeaderMap, HeaderName, HeaderValue,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use mainstay_net::percent::segment;
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
    /// Only what is about this job.
    job: Option<String>,
    /// Of all nodes of the fleet.
    #[serde(default, deserialize_with = "flag")]
    fleet: bool,
    /// Of this node alone, wherever the job runs.
    #[serde(default, deserialize_with = "flag")]
    here: bool,
}

impl EventsQuery {
    fn follows(&self) -> bool {
        self.follow.unwrap_or(true)
    }

    /// As another node is asked.
    fn passed_on(&self) -> String {
        let since = self.since.map_or(String::new(), |since| format!("&since={since}"));
        let job = self.job.as_ref().map_or(String::new(), |job| format!("&job={}", segment(job)));
        format!("/v1/events?here=true&follow={}{since}{job}", self.follows())
    }
}

pub(crate) async fn stream(
    State(state): State<RouterState>,
    hop: Hop,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if query.fleet {
        let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
        let beginning = match (last, query.since) {
            (Some(id), _) => Beginning::After(id.to_owned()),
            (None, None) => Beginning::Now,
            (None, Some(0)) => Beginning::Kept,
            (None, Some(_)) => {
                let why = "each node counts its own: since can only be 0 with fleet";
                return Err(Problem::bad_request(why));
            }
        };
        return fleet_events::stream(&state, hop, beginning, query.follows(), query.job.as_deref());
    }
    if let Some(job) = query.job.as_deref().filter(|_| !query.here) {
        let subject = Subject::of_job(&state, job, Scope::Home).await?;
        if let Some(node) = subject.only_node()? {
            let question = Question::get(query.passed_on()).with_headers(&headers);
            return pass_on(&state, hop, node, question).await?.into_response().await;
        }
    }
    let reader = EventReader::new(&state, &query, &headers)?;
    let body = Body::from_stream(stream::unfold(reader, EventReader::next));
    Ok((kind(), body).into_response())
}

/// What this node has to say, for a stream of all nodes.
pub(crate) fn own_events(
    state: &RouterState,
    since: Option<u64>,
    after: Option<&str>,
    follow: bool,
    job: Option<String>,
) -> Result<Body, Problem> {
    let query = EventsQuery { since, follow: Some(follow), job, fleet: false, here: true };
    let id = after.and_then(|id| HeaderValue::from_str(id).ok());
    let id = id.map(|id| (HeaderName::from_static("last-event-id"), id));
    let reader = EventReader::new(state, &query, &id.into_iter().collect())?;
    Ok(Body::from_stream(stream::unfold(reader, EventReader::next)))
}

/// The headers of a stream of events.
pub(crate) fn kind() -> [(HeaderName, &'static str); 2] {
    [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")]
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
    /// Only what is about it.
    job: Option<String>,
    _subscription: Subscription,
    told: watch::Receiver<u64>,
    ending: watch::Receiver<bool>,
    cursor: u64,
    follow: bool,
    greeting: Option<Bytes>,
}

impl EventReader {
    fn new(
        state: &RouterState,
        query: &EventsQuery,
        headers: &HeaderMap,
    ) -> Result<EventReader, Problem> {
        let events = state.events.clone();
        let (cursor, greeting) = begin(&events, query.since, headers)?;
        let (subscription, told) = events.subscribe();
        Ok(EventReader {
            events,
            job: query.job.clone(),
            _subscription: subscription,
            told,
            ending: state.ending.clone(),
            follow: query.follows(),
            greeting: Some(greeting.into()),
            cursor,
        })
    }

    fn chunk(&self) -> Option<Chunk> {
        match &self.job {
            None => self.events.after(self.cursor),
            Some(job) => self.events.about(job, self.cursor),
        }
    }

    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, EventReader)> {
        if let Some(greeting) = self.greeting.take() {
            return Some((Ok(greeting), self));
        }
        loop {
            self.told.mark_unchanged();
            // Looked at before the log: once the run is over, nothing is added to it.
            let over = *self.ending.borrow() || !self.follow;
            if let Some(chunk) = self.chunk() {
                self.cursor = chunk.to;
                if chunk.bytes.is_empty() {
                    continue;
                }
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
