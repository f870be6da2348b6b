//! Peers of the fleet, who pass on what they were asked: the mesh has accepted them and knows who
//! they are.

use super::REMOTE_LIMITS;
use crate::{
    RouterState,
    passing::{PassedOn, lost},
    problem::Problem,
    routes::v1::environ,
};
use axum::{Extension, Router};
use hyper_util::service::TowerToHyperService;
use mainstay_core::{fleet::PeerState, name::Name};
use mainstay_net::{
    BoxedStream,
    listen::{Stop, serve_stream},
};
use std::sync::Arc;
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};

/// Served at a time.
const MOST: usize = 256;

pub(super) async fn serve(state: &RouterState, routes: Router, mut ending: watch::Receiver<bool>) {
    let Some(states) = state.handle.peer_states() else { return };
    let routes = environ::from_afar(routes).layer(Extension(PassedOn));
    let places = Arc::new(Semaphore::new(MOST));
    let mut serving = JoinSet::new();
    loop {
        let (from, stream) = tokio::select! {
            next = state.handle.next_peer() => match next {
                Some(next) => next,
                None => break,
            },
            _ = serving.join_next(), if !serving.is_empty() => continue,
            _ = ending.wait_for(|over| *over) => break,
        };
        let place = places.clone().try_acquire_owned();
        let refused = refusal(&from, states.borrow().get(&from).copied()).or_else(|| {
            let full = |_| Problem::unavailable("too many requests of other nodes are under way");
            place.as_ref().err().map(full)
        });
        let is_let_in = refused.is_none();
        let routes = match refused {
            None => routes.clone(),
            Some(problem) => refusing(problem),
        };
        let (mut states, ending) = (states.clone(), ending.clone());
        serving.spawn(async move {
            let _place = place;
            tokio::select! {
                () = converse(stream, routes, ending) => {}
                () = lost(&mut states, &from), if is_let_in => {}
            }
        });
    }
    serving.join_all().await;
}

async fn converse(stream: BoxedStream, routes: Router, ending: watch::Receiver<bool>) {
    let service = TowerToHyperService::new(routes);
    serve_stream(stream, service, REMOTE_LIMITS, Stop { ending, closing: None }).await;
}

/// Nothing is taken from whoever is isolated, or does not belong here.
fn refusal(from: &Name, state: Option<PeerState>) -> Option<Problem> {
    match state {
        Some(PeerState::Isolated) => Some(Problem::forbidden(format!("{from} is isolated here"))),
        None => Some(Problem::forbidden(format!("{from} is no node of this fleet"))),
        Some(PeerState::Unknown | PeerState::Checking | PeerState::Running | PeerState::Silent) => {
            None
        }
    }
}

fn refusing(problem: Problem) -> Router {
    let (status, detail) = problem.into_parts();
    Router::new().fallback(async move || Problem::new(status, detail))
}
