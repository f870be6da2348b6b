//! Clients over TCP: let in through the listener that the plan in force wants.
//!
//! A listener that cannot be opened is told once and tried again; every job goes on meanwhile. All
//! that were ever opened share one count of connections.

use super::{
    Opening, REMOTE_LIMITS,
    session::{Admission, Session},
    tcp::{ApiListener, ListenError},
};
use crate::{RouterState, problem::Problem};
use axum::Router;
use mainstay_net::listen::{Caller, Connections, Endpoint, Full, Secured, Stop};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until},
};

const RETRY: Duration = Duration::from_secs(1);

pub(crate) async fn serve(
    state: &RouterState,
    routes: Router,
    (opening, mut ending): (Opening, watch::Receiver<bool>),
    most: usize,
) {
    let mut plan = state.handle.api();
    let connections = Connections::new(most, Full::SilentGoes);
    let mut serving: JoinSet<()> = JoinSet::new();
    let mut used: Option<Arc<ApiListener>> = None;
    let mut trouble: Option<String> = None;
    let mut opening = Some(opening);
    loop {
        let wanted = plan.borrow_and_update().clone();
        let followed = state.listeners.follow(&wanted).await;
        tell(followed.err(), &mut trouble);
        drop(opening.take());
        let before = std::mem::replace(&mut used, state.listeners.used());
        if let Some(listener) = used.as_ref().filter(|now| !is_same(before.as_ref(), now)) {
            if before.is_none_or(|before| before.address != listener.address) {
                tracing::info!("the API listens on {}", listener.address);
            }
            serving.spawn(clients(listener, &connections, &routes, &ending));
        }
        let retry_at = Instant::now() + RETRY;
        loop {
            tokio::select! {
                _ = serving.join_next(), if !serving.is_empty() => continue,
                changed = plan.changed() => if changed.is_ok() { break },
                () = sleep_until(retry_at), if trouble.is_some() => break,
                _ = ending.wait_for(|over| *over) => {}
            }
            // The run is over, or the agent is.
            serving.join_all().await;
            return;
        }
    }
}

fn is_same(before: Option<&Arc<ApiListener>>, now: &Arc<ApiListener>) -> bool {
    before.is_some_and(|before| Arc::ptr_eq(before, now))
}

/// Those who come in through one listener.
fn clients(
    listener: &ApiListener,
    connections: &Connections,
    routes: &Router,
    ending: &watch::Receiver<bool>,
) -> impl Future<Output = ()> + Send + 'static {
    let plain = || Problem::bad_request("this port speaks TLS: use https://").plain();
    let endpoint = Endpoint {
        listener: listener.listener.clone(),
        tls: listener
            .guard
            .tls()
            .map(|tls| Secured { tls: tls.clone(), plain_answer: plain().into() }),
        limits: REMOTE_LIMITS,
        connections: connections.clone(),
        answers_backlog: false,
    };
    // The listener itself is not held: its address is free once it is closed.
    let stop = Stop { ending: ending.clone(), closing: Some(listener.closed.subscribe()) };
    let (guard, routes) = (listener.guard.clone(), routes.clone());
    let session = move |caller: Caller| {
        Session::new(Admission::Guarded(guard.clone()), caller, routes.clone())
    };
    endpoint.serve(session, stop)
}

/// The same trouble is told once, and its end.
fn tell(error: Option<ListenError>, trouble: &mut Option<String>) {
    let error = error.map(|error| error.to_string());
    if let Some(error) = &error
        && trouble.as_ref() != Some(error)
    {
        tracing::error!("the API does not listen as [api] says: {error}; it is tried again");
    }
    *trouble = error;
}
