//! Names of hosts: numbers and `/etc/hosts` at once, then the name servers of `/etc/resolv.conf`.
//!
//! Every look-up is a question of its own that nobody else waits for: no threads, no places that
//! could be taken. It ends with whoever asked, or when each server had its attempts (5 s twice,
//! unless `resolv.conf` says otherwise). Other sources that `nsswitch.conf` may name are not asked.
//!
//! ```text
//!  number, localhost ─► /etc/hosts ─► name, name.SEARCH … ─► server 1, 2, 3 ─► again
//!                                       └─ no such name: the next one  └─ silent: the next one
//! ```

mod hosts;
mod message;
mod query;
mod resolv_conf;

use query::{Found, query};
use resolv_conf::ResolvConf;
use std::{
    fs::File,
    io::{self, Read},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::Path,
};

const HOSTS: &str = "/etc/hosts";
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Of a longer file the beginning counts.
const LONGEST: u64 = 1 << 20;

/// # Errors
/// When nobody knows the name, or nobody answers.
pub(crate) async fn look_up(host: &str) -> io::Result<Vec<IpAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![address]);
    }
    // Known without asking: a container may have nobody to ask.
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    let known = hosts::find(&read(Path::new(HOSTS)), host);
    if !known.is_empty() {
        return Ok(known);
    }
    let conf = ResolvConf::parse(&read(Path::new(RESOLV_CONF)));
    // On the heap for as long as it takes: else every task that may ever connect had room for it.
    Box::pin(ask(host, &conf)).await
}

async fn ask(host: &str, conf: &ResolvConf) -> io::Result<Vec<IpAddr>> {
    for name in conf.candidates(host) {
        match query(&name, conf).await? {
            Found::Addresses(addresses) => return Ok(addresses),
            Found::NoSuchName => {}
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "no name server knows an address of it"))
}

/// What cannot be read says nothing.
fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    let _ = File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{net::SocketAddr, time::Duration};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, UdpSocket},
        time::Instant,
    };

    /// Answers like a name server that knows `web.example`; long answers only over TCP.
    async fn server(truncates: bool) -> SocketAddr {
        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = tcp.local_addr().expect("an address");
        let udp = UdpSocket::bind(address).await.expect("the same port");
        tokio::spawn(async move {
            let mut question = [0; 512];
            while let Ok((length, from)) = udp.recv_from(&mut question).await {
                let mut answer = answer(&question[..length]);
                if truncates {
                    answer[2] |= 2;
                    answer.truncate(length);
                    answer[7] = 0;
                }
                let _ = udp.send_to(&answer, from).await;
            }
        });
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = tcp.accept().await {
                let length = stream.read_u16().await.expect("a length");
                let mut question = vec![0; length.into()];
                stream.read_exact(&mut question).await.expect("a question");
                let answer = answer(&question);
                let length = u16::try_from(answer.len()).expect("short");
                stream.write_u16(length).await.expect("sent");
                stream.write_all(&answer).await.expect("sent");
            }
        });
        address
    }

    fn answer(question: &[u8]) -> Vec<u8> {
        let mut answer = question.to_vec();
        answer[2] |= 0x80;
        let known = question.windows(13).any(|it| it == b"\x03web\x07example\0");
        let wants_v4 = question[question.len() - 3] == 1;
        match (known, wants_v4) {
            (true, true) => {
                answer[7] = 1;
                answer.extend(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x05");
            }
            (true, false) => {}
            (false, _) => answer[3] = 3,
        }
        answer
    }

    fn conf(servers: Vec<SocketAddr>) -> ResolvConf {
        let mut conf = ResolvConf::parse("search example\noptions timeout:1 attempts:1");
        conf.servers = servers;
        conf
    }

    #[tokio::test]
    async fn a_name_is_completed_and_found_and_one_that_nobody_knows_is_not() {
        for truncates in [false, true] {
            let conf = conf(vec![server(truncates).await]);
            let found = vec![IpAddr::from([127, 0, 0, 5])];
            assert_eq!(ask("web", &conf).await.expect("known"), found);
            assert_eq!(ask("web.example.", &conf).await.expect("known"), found);
            let unknown = ask("nobody.example", &conf).await.expect_err("unknown");
            assert_eq!(unknown.kind(), io::ErrorKind::NotFound);
        }
    }

    #[tokio::test]
    async fn silent_servers_cost_their_time_and_hold_up_nobody_else() {
        let silent = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let silent = silent.local_addr().map(|at| (silent, at)).expect("an address");
        let dead: Vec<_> = (0..100)
            .map(|number| {
                let conf = conf(vec![silent.1]);
                tokio::spawn(async move { ask(&format!("dead{number}.example"), &conf).await })
            })
            .collect();
        let begun = Instant::now();
        ask("web.example", &conf(vec![server(false).await])).await.expect("known");
        assert!(begun.elapsed() < Duration::from_millis(900));
        for name in dead {
            let error = name.await.expect("it ends").expect_err("nobody answers");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        }
        // The second one is asked when the first is silent.
        let both = conf(vec![silent.1, server(false).await]);
        ask("web.example", &both).await.expect("known to the second");
    }
}
