//! The addresses of nodes and seeds: names are looked up, again and again, and never waited for.

use crate::config::Roster;
use mainstay_core::name::Name;
use std::{
    io,
    net::{SocketAddr, UdpSocket},
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// One name server that is silent does not hold up the others.
const LOOK_UP: Duration = Duration::from_secs(5);
/// Names may get other addresses.
const AGAIN: Duration = Duration::from_secs(30);
/// Some name is not known yet.
const SOON: Duration = Duration::from_secs(2);

/// What is written down, but for this node.
fn written<'a>(roster: &'a Roster, me: &'a Name) -> impl Iterator<Item = &'a String> {
    let others = roster.nodes.iter().filter(move |(node, _)| node != me).map(|(_, at)| at);
    others.chain(&roster.join)
}

/// As far as they are known; some may not be.
async fn look_up(roster: &Roster, me: &Name) -> (Vec<SocketAddr>, bool) {
    let (mut known, mut all) = (Vec::new(), true);
    for text in written(roster, me) {
        match text.parse() {
            Ok(address) => known.push(address),
            Err(_) => match timeout(LOOK_UP, mainstay_net::addresses_of(text)).await {
                // Of several the first: the others are ways to the same node.
                Ok(Ok(found)) => known.extend(found.first()),
                Ok(Err(_)) | Err(_) => all = false,
            },
        }
    }
    (known, all)
}

/// Tells the addresses whenever they have been looked up.
pub(crate) async fn follow(roster: Roster, me: Name, tell: impl Fn(Vec<SocketAddr>)) {
    let numbers: Vec<SocketAddr> = written(&roster, &me).filter_map(|it| it.parse().ok()).collect();
    let fixed = numbers.len() == written(&roster, &me).count();
    tell(numbers);
    if fixed {
        return;
    }
    loop {
        let (known, all) = look_up(&roster, &me).await;
        tell(known);
        sleep(if all { AGAIN } else { SOON }).await;
    }
}

/// Where the others reach this node: as they have it written down, else where it listens, else the
/// address by which it reaches them.
pub(crate) async fn own(listen: SocketAddr, roster: &Roster, me: &Name) -> io::Result<SocketAddr> {
    let written = roster.nodes.iter().find(|(node, _)| node == me).map(|(_, at)| at);
    if let Some(at) = written.and_then(|at| at.parse().ok()) {
        return Ok(at);
    }
    if !listen.ip().is_unspecified() {
        return Ok(listen);
    }
    if let Some(at) = written
        && let Ok(Ok(found)) = timeout(LOOK_UP, mainstay_net::addresses_of(at)).await
        && let Some(at) = found.first()
    {
        return Ok(*at);
    }
    let (others, _) = look_up(roster, me).await;
    let other = others.first().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::AddrNotAvailable,
            "nobody knows where to reach this node: name an address in [fleet] listen, or this node in nodes",
        )
    })?;
    let socket = UdpSocket::bind(SocketAddr::new(listen.ip(), 0))?;
    socket.connect(other)?;
    Ok(SocketAddr::new(socket.local_addr()?.ip(), listen.port()))
}
