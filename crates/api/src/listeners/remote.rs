//! Clients over TCP: let in through the listener that the plan in force wants.
//!
//! A listener that cannot be opened is told once and tried again; every job goes on meanwhile. The
//! handshake of a client is its own affair: nobody waits for it but itself.

use super::{
    connection::{self, HEADER, Stop, Visitor},
    connections::Connections,
    tcp::ApiListener,
    wait_out,
    write_timeout::WriteTimeout,
};
use crate::{AppState, problem::Problem};
use axum::Router;
use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_rustls::server::TlsStream;

const RETRY: Duration = Duration::from_secs(1);
/// A client that takes nothing for so long is gone or means harm.
const PATIENCE: Duration = Duration::from_secs(30);
/// The first byte of a TLS connection.
const HANDSHAKE: u8 = 22;

pub(crate) async fn serve(
    state: &AppState,
    routes: Router,
    mut ending: watch::Receiver<bool>,
    most: usize,
) {
    let mut plan = state.handle.api();
    plan.mark_changed();
    let mut connections = Connections::new(most);
    let mut trouble: Option<String> = None;
    let mut retry_at = Instant::now();
    loop {
        let listener = state.listeners.used();
        let accepted = tokio::select! {
            accepted = accept(listener.as_deref()) => Some(accepted),
            _ = connections.tasks.join_next(), if !connections.tasks.is_empty() => continue,
            _ = ending.wait_for(|over| *over) => break,
            changed = plan.changed() => if changed.is_ok() { None } else { break },
            () = sleep_until(retry_at), if trouble.is_some() => None,
        };
        match (accepted, &listener) {
            (Some(Ok(stream)), Some(listener)) => {
                let listener = listener.clone();
                let (routes, run) = (routes.clone(), ending.clone());
                connections.add(|spoken| enter(stream, listener, routes, run, spoken));
            }
            (Some(Err(error)), _) => wait_out(&error).await,
            (Some(Ok(_)), None) | (None, _) => {
                let wanted = plan.borrow_and_update().clone();
                let followed = state.listeners.follow(&wanted).await;
                tell(followed.as_ref().err(), &mut trouble);
                if let (Ok(()), Some(address)) = (&followed, wanted.listen)
                    && is_new(listener.as_deref(), state)
                {
                    tracing::info!("the API listens on {address}");
                }
                retry_at = Instant::now() + RETRY;
            }
        }
    }
    connections.leave().await;
}

fn is_new(before: Option<&ApiListener>, state: &AppState) -> bool {
    state.listeners.used().map(|listener| listener.address)
        != before.map(|listener| listener.address)
}

/// The same trouble is told once, and its end.
fn tell(error: Option<&String>, trouble: &mut Option<String>) {
    if let Some(error) = error
        && trouble.as_ref() != Some(error)
    {
        tracing::error!("the API does not listen as [api] says: {error}; it is tried again");
    }
    *trouble = error.cloned();
}

async fn accept(listener: Option<&ApiListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => listener.listener.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

async fn enter(
    stream: TcpStream,
    listener: Arc<ApiListener>,
    routes: Router,
    run: watch::Receiver<bool>,
    spoken: Arc<AtomicBool>,
) {
    let _ = stream.set_nodelay(true);
    let stop = Stop { run, listener: Some(listener.closed.subscribe()) };
    let guard = listener.guard.clone();
    // The listener itself is not held: its address is free once it is closed.
    drop(listener);
    if guard.tls().is_none() {
        let visitor = Visitor::Remote { guard, certified: false };
        let stream = WriteTimeout::new(stream, PATIENCE);
        return connection::serve(stream, visitor, routes, stop, spoken).await;
    }
    let Ok(Ok(stream)) = timeout(HEADER, shake_hands(stream, &guard)).await else { return };
    let certified = stream.get_ref().1.peer_certificates().is_some();
    let visitor = Visitor::Remote { guard, certified };
    connection::serve(WriteTimeout::new(stream, PATIENCE), visitor, routes, stop, spoken).await;
}

async fn shake_hands(
    mut stream: TcpStream,
    guard: &super::guard::Guard,
) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0; 1];
    let plain = stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE;
    match guard.tls() {
        Some(_) if plain => {
            let problem = Problem::bad_request("this port speaks TLS: use https://");
            stream.write_all(&problem.plain()).await?;
            stream.shutdown().await?;
            Err(io::ErrorKind::InvalidData.into())
        }
        Some(tls) => tls.accept(stream).await,
        None => Err(io::ErrorKind::Unsupported.into()),
    }
}
