//! One name, put to the servers one after the other: both families at once, over one socket.

use super::{
    message::{Family, Reply, question, reply},
    resolv_conf::ResolvConf,
};
use ring::rand::{SecureRandom, SystemRandom};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    time::timeout,
};

/// Longer answers come over TCP.
const DATAGRAM: usize = 4096;

#[derive(Debug)]
pub(super) enum Found {
    Addresses(Vec<IpAddr>),
    NoSuchName,
}

/// # Errors
/// When no server has answered: nobody knows whether there is such a name.
pub(super) async fn query(name: &str, conf: &ResolvConf) -> io::Result<Found> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for server in (0..conf.attempts).flat_map(|_| &conf.servers) {
        let asked = timeout(conf.timeout, ask(name, *server)).await;
        match asked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(found) => return Ok(found),
            Err(error) => failure = error,
        }
    }
    let kind = failure.kind();
    Err(io::Error::new(kind, format!("no name server answers for '{name}': {failure}")))
}

async fn ask(name: &str, server: SocketAddr) -> io::Result<Found> {
    let families = [Family::V4, Family::V6];
    let mut questions = Vec::new();
    for family in families {
        let Some(question) = question(random()?, name, family) else {
            return Ok(Found::NoSuchName);
        };
        questions.push(question);
    }
    let here: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((here, 0)).await?;
    socket.connect(server).await?;
    for question in &questions {
        socket.send(question).await?;
    }
    let mut replies = [None, None];
    let mut datagram = [0; DATAGRAM];
    while replies.iter().any(Option::is_none) {
        let length = socket.recv(&mut datagram).await?;
        for (question, said) in questions.iter().zip(&mut replies) {
            if said.is_none() {
                *said = reply(&datagram[..length], question);
            }
        }
    }
    drop(socket);
    let mut found = Vec::new();
    let mut failed = false;
    for (question, said) in questions.iter().zip(replies) {
        let said = match said {
            Some(Reply::Truncated) => ask_at_length(question, server).await?,
            Some(said) => said,
            None => Reply::Failed,
        };
        match said {
            Reply::Addresses(addresses) => found.extend(addresses),
            Reply::NoSuchName => {}
            Reply::Failed | Reply::Truncated => failed = true,
        }
    }
    match (found.is_empty(), failed) {
        (false, _) => Ok(Found::Addresses(found)),
        (true, true) => Err(io::Error::other("the name server failed")),
        (true, false) => Ok(Found::NoSuchName),
    }
}

async fn ask_at_length(question: &[u8], server: SocketAddr) -> io::Result<Reply> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), question].concat()).await?;
    let mut answer = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut answer).await?;
    Ok(reply(&answer, question).unwrap_or(Reply::Failed))
}

/// Not to be guessed by whoever would like to answer instead.
fn random() -> io::Result<u16> {
    let mut bytes = [0; 2];
    let drawn = SystemRandom::new().fill(&mut bytes);
    drawn.map_err(|_| io::Error::other("there is no randomness"))?;
    Ok(u16::from_ne_bytes(bytes))
}
