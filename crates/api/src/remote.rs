//! Clients over TCP: let in through the door that the plan in force wants.
//!
//! A door that cannot be opened is told once and tried again; every job goes on meanwhile. The
//! handshake of a client is its own affair: nobody waits for it but itself.

use crate::{
    AppState,
    accept::wait_out,
    connection::{self, Ends, HEADER, Visitor},
    crowd::Crowd,
    door::Door,
    patient::Patient,
    problem::Problem,
};
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
    let mut crowd = Crowd::new(most);
    let mut trouble: Option<String> = None;
    let mut retry_at = Instant::now();
    loop {
        let door = state.doors.used();
        let accepted = tokio::select! {
            accepted = accept(door.as_deref()) => Some(accepted),
            _ = crowd.tasks.join_next(), if !crowd.tasks.is_empty() => continue,
            _ = ending.wait_for(|over| *over) => break,
            changed = plan.changed() => if changed.is_ok() { None } else { break },
            () = sleep_until(retry_at), if trouble.is_some() => None,
        };
        match (accepted, &door) {
            (Some(Ok(stream)), Some(door)) => {
                let door = door.clone();
                let (routes, run) = (routes.clone(), ending.clone());
                crowd.add(|spoken| enter(stream, door, routes, run, spoken));
            }
            (Some(Err(error)), _) => wait_out(&error).await,
            (Some(Ok(_)), None) | (None, _) => {
                let wanted = plan.borrow_and_update().clone();
                let followed = state.doors.follow(&wanted).await;
                tell(followed.as_ref().err(), &mut trouble);
                if let (Ok(()), Some(address)) = (&followed, wanted.listen)
                    && door_is_new(door.as_deref(), state)
                {
                    tracing::info!("the API listens on {address}");
                }
                retry_at = Instant::now() + RETRY;
            }
        }
    }
    crowd.leave().await;
}

fn door_is_new(before: Option<&Door>, state: &AppState) -> bool {
    state.doors.used().map(|door| door.address) != before.map(|door| door.address)
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

async fn accept(door: Option<&Door>) -> io::Result<TcpStream> {
    match door {
        Some(door) => door.listener.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

async fn enter(
    stream: TcpStream,
    door: Arc<Door>,
    routes: Router,
    run: watch::Receiver<bool>,
    spoken: Arc<AtomicBool>,
) {
    let _ = stream.set_nodelay(true);
    let ends = Ends { run, door: Some(door.closed.subscribe()) };
    let guard = door.guard.clone();
    // The door itself is not held: its address is free once it is closed.
    drop(door);
    if guard.tls().is_none() {
        let visitor = Visitor::Remote { guard, certified: false };
        let stream = Patient::new(stream, PATIENCE);
        return connection::serve(stream, visitor, routes, ends, spoken).await;
    }
    let Ok(Ok(stream)) = timeout(HEADER, shake_hands(stream, &guard)).await else { return };
    let certified = stream.get_ref().1.peer_certificates().is_some();
    let visitor = Visitor::Remote { guard, certified };
    connection::serve(Patient::new(stream, PATIENCE), visitor, routes, ends, spoken).await;
}

async fn shake_hands(
    mut stream: TcpStream,
    guard: &crate::guard::Guard,
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
