//! The smallest web server: it answers everyone, one after the other, and counts them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::failure::{Doing, Result};

const YES: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    told: Arc<Told>,
}

#[derive(Debug, Default)]
struct Told {
    answered: AtomicU64,
    over: AtomicBool,
}

impl Server {
    /// Says yes to everyone.
    pub(crate) fn start() -> Result<Server> {
        Server::answering(|_| YES.to_vec())
    }

    /// Gives each request, head and body, its answer.
    pub(crate) fn answering(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Result<Server> {
        let listener = TcpListener::bind("127.0.0.1:0").doing("open a port")?;
        let address = listener.local_addr().doing("learn my own port")?;
        let told = Arc::new(Told::default());
        let shared = told.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                if shared.over.load(Ordering::Relaxed) {
                    return;
                }
                let answered =
                    request(&mut stream).and_then(|asked| stream.write_all(&answer(&asked)));
                if answered.is_ok() {
                    shared.answered.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Ok(Server { address, told })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn answered(&self) -> u64 {
        self.told.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    /// One more connection lets it see that it is over.
    fn drop(&mut self) {
        self.told.over.store(true, Ordering::Relaxed);
        let _gone_already = TcpStream::connect(self.address);
    }
}

/// Read to its end: what is left unread could cost its sender the answer.
fn request(stream: &mut TcpStream) -> std::io::Result<String> {
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut read = Vec::new();
    let mut part = [0; 4096];
    loop {
        let count = stream.read(&mut part)?;
        read.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&read);
        if count == 0 || is_whole(&text) {
            return Ok(text.into_owned());
        }
    }
}

fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    body.len() >= length.unwrap_or(0)
}
