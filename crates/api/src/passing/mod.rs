//! Passing on: what is asked here and is for another node of the fleet goes there over the mesh, one
//! hop, and its answer comes back as it is given.
//!
//! | what | its limit |
//! |---|---|
//! | a body | that of every request |
//! | requests that are passed on at a time | [`MOST`] |
//! | the head of an answer | the time that the request asks to be waited for, and [`BEYOND`] |
//! | the rest of an answer | until its node is lost or isolated, or its client leaves |

pub(crate) mod fleet_events;

use crate::{RouterState, problem::Problem};
use axum::{
    body::Body,
    extract::FromRequestParts,
    http::{HeaderName, HeaderValue, request::Parts},
    response::Response,
};
use bytes::Bytes;
use futures_util::stream;
use mainstay_core::{fleet::PeerState, name::Name};
use mainstay_net::http::{Answer, Connection, HeaderMap, HttpError, Method, header, request};
use mainstay_wire::api::PATIENCE;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{collections::BTreeMap, convert::Infallible, io, sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::timeout,
};

/// Passed on at a time.
const MOST: usize = 256;
/// An answer is there so long after the time that the request itself asks for.
const BEYOND: Duration = Duration::from_secs(10);
/// The longest answer that is read here, and not only given back.
const LONGEST: usize = 8 << 20;
/// Names the node that has answered.
const NODE: &str = "mainstay-node";
const LAST_EVENT_ID: &str = "last-event-id";
/// What goes with a request, and what comes with an answer.
const WITH_REQUEST: [&str; 3] = ["content-type", "accept", LAST_EVENT_ID];
const WITH_ANSWER: [&str; 2] = ["content-type", "cache-control"];

/// The other nodes, as this one sees them.
type PeerStates = watch::Receiver<BTreeMap<Name, PeerState>>;

/// The places of what is passed on.
#[derive(Debug, Clone)]
pub(crate) struct Passing(Arc<Semaphore>);

impl Default for Passing {
    fn default() -> Passing {
        Passing(Arc::new(Semaphore::new(MOST)))
    }
}

/// The request came from another node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassedOn;

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hop {
    /// A client.
    First,
    /// Another node, which had it from a client: it goes no further.
    Last,
}

impl<S: Sync> FromRequestParts<S> for Hop {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Hop, Infallible> {
        Ok(match parts.extensions.get::<PassedOn>() {
            Some(PassedOn) => Hop::Last,
            None => Hop::First,
        })
    }
}

/// What another node is asked.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    method: Method,
    /// Path and query.
    target: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Question {
    pub(crate) fn get(target: String) -> Question {
        Question { method: Method::GET, target, headers: HeaderMap::new(), body: Bytes::new() }
    }

    pub(crate) fn post(target: String, body: &impl Serialize) -> Question {
        let body = serde_json::to_vec(body).unwrap_or_default().into();
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, json)]);
        Question { method: Method::POST, target, headers, body }
    }

    /// As a client has asked it.
    pub(crate) fn of(method: Method, target: String, all: &HeaderMap, body: Bytes) -> Question {
        Question { method, target, headers: some(all, &WITH_REQUEST), body }
    }

    pub(crate) fn with_headers(self, all: &HeaderMap) -> Question {
        Question { headers: some(all, &WITH_REQUEST), ..self }
    }

    /// From the event behind this one on.
    pub(crate) fn after(mut self, id: Option<&str>) -> Question {
        if let Some(id) = id.and_then(|id| HeaderValue::from_str(id).ok()) {
            self.headers.insert(LAST_EVENT_ID, id);
        }
        self
    }

    /// How long its answer may take.
    fn patience(&self) -> Duration {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let wait = query.split('&').find_map(|pair| pair.strip_prefix("wait="));
        let wait = wait.and_then(|text| mainstay_config::duration(text).ok());
        wait.unwrap_or(PATIENCE).saturating_add(BEYOND)
    }
}

fn some(all: &HeaderMap, names: &[&'static str]) -> HeaderMap {
    let name = |name: &&'static str| HeaderName::from_static(name);
    names.iter().filter_map(|it| Some((name(it), all.get(*it)?.clone()))).collect()
}

/// The answer of another node; its body is still to come.
pub(crate) struct PassedAnswer {
    answer: Answer,
    node: Name,
    states: PeerStates,
    _place: OwnedSemaphorePermit,
}

/// Asks another node.
pub(crate) async fn pass_on(
    state: &RouterState,
    hop: Hop,
    node: &Name,
    question: Question,
) -> Result<PassedAnswer, Problem> {
    if hop == Hop::Last {
        return Err(Problem::passed_on_already(node));
    }
    let mut states = state.handle.peer_states().ok_or_else(Problem::no_fleet)?;
    may_be_asked(node, states.borrow().get(node).copied())?;
    let full = |_| Problem::unavailable("too many requests are being passed on to other nodes");
    let place = state.passing.0.clone().try_acquire_owned().map_err(full)?;
    let limit = question.patience();
    let asked = timeout(limit, ask(state, node, question));
    let answer = tokio::select! {
        answer = asked => match answer {
            Ok(answer) => answer.map_err(|error| Problem::unreachable(node, &error.to_string()))?,
            Err(_) => {
                return Err(Problem::overdue(format!("{node} has not answered within {limit:?}")));
            }
        },
        () = lost(&mut states, node) => {
            return Err(Problem::unreachable(node, "it was lost before it had answered"));
        }
    };
    Ok(PassedAnswer { answer, node: node.clone(), states, _place: place })
}

async fn ask(state: &RouterState, node: &Name, question: Question) -> Result<Answer, HttpError> {
    let address = || node.to_string();
    let failed = |source| HttpError::Connect { address: address(), source };
    let stream = state.handle.connect(node).await.map_err(failed)?;
    let connection = Connection::open(stream, node.as_str()).await?;
    let Question { method, target, mut headers, body } = question;
    let target = target.parse().map_err(|error| failed(io::Error::other(error)))?;
    headers.insert(header::HOST, HeaderValue::from_static("mainstay"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    connection.send(request(method, target, headers, body)).await
}

/// Whether there is any use in asking a node.
fn may_be_asked(node: &Name, state: Option<PeerState>) -> Result<(), Problem> {
    match state {
        Some(PeerState::Running) => Ok(()),
        Some(PeerState::Isolated) => Err(Problem::isolated(node)),
        Some(state @ (PeerState::Unknown | PeerState::Checking | PeerState::Silent)) => {
            Err(Problem::unreachable(node, &format!("it is {}", word(state))))
        }
        None => Err(Problem::not_found(format!("no node '{node}' is known in the fleet"))),
    }
}

fn word(state: PeerState) -> &'static str {
    match state {
        PeerState::Unknown => "UNKNOWN",
        PeerState::Checking => "CHECKING",
        PeerState::Running => "RUNNING",
        PeerState::Silent => "SILENT",
        PeerState::Isolated => "ISOLATED",
    }
}

/// Returns when a node is not there any more.
pub(crate) async fn lost(states: &mut PeerStates, node: &Name) {
    let is_lost = |states: &BTreeMap<Name, PeerState>| match states.get(node) {
        None | Some(PeerState::Silent | PeerState::Isolated) => true,
        Some(PeerState::Unknown | PeerState::Checking | PeerState::Running) => false,
    };
    // It ends with the agent at the latest.
    let _ = states.wait_for(is_lost).await;
}

impl PassedAnswer {
    pub(crate) fn node(&self) -> &Name {
        &self.node
    }

    /// The next piece of its body.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        tokio::select! {
            piece = self.answer.next() => piece.map_err(io::Error::other),
            () = lost(&mut self.states, &self.node) => {
                Err(io::Error::other(format!("{} is lost", self.node)))
            }
        }
    }

    /// All of its body.
    async fn whole(&mut self) -> Result<Vec<u8>, Problem> {
        let mut bytes = Vec::new();
        loop {
            match self.next().await {
                Ok(Some(piece)) => bytes.extend_from_slice(&piece),
                Ok(None) => return Ok(bytes),
                Err(error) => return Err(Problem::unreachable(&self.node, &error.to_string())),
            }
            if bytes.len() > LONGEST {
                return Err(Problem::unreachable(&self.node, "its answer is too long"));
            }
        }
    }

    /// What it says, or why it does not.
    pub(crate) async fn read<T: DeserializeOwned>(mut self) -> Result<T, Problem> {
        let bytes = self.whole().await?;
        if !self.answer.status.is_success() {
            return Err(Problem::of_node(&self.node, self.answer.status, &bytes));
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            Problem::broken(format!("the answer of {} is not understood: {error}", self.node))
        })
    }

    /// As it comes; a problem says whose it is.
    pub(crate) async fn into_response(mut self) -> Result<Response, Problem> {
        let status = self.answer.status;
        if !status.is_success() {
            let bytes = self.whole().await?;
            if serde_json::from_slice::<Value>(&bytes).is_ok_and(|it| it["detail"].is_string()) {
                return Err(Problem::of_node(&self.node, status, &bytes));
            }
        }
        let mut headers = some(&self.answer.headers, &WITH_ANSWER);
        if let Ok(node) = HeaderValue::from_str(self.node.as_str()) {
            headers.insert(NODE, node);
        }
        let mut response = Response::new(self.into_body());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// What it says, and goes on to say.
    pub(crate) fn into_body(self) -> Body {
        let next = |mut it: PassedAnswer| async {
            let piece = it.next().await?;
            Ok::<_, io::Error>(piece.map(|piece| (piece, it)))
        };
        Body::from_stream(stream::try_unfold(self, next))
    }
}
