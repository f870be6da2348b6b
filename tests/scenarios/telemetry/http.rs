//! The smallest client: one request, one answer, over TCP or a unix socket.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

pub(super) fn try_get(port: u16, path: &str) -> Option<Answer> {
    tcp(port, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).ok()
}

pub(super) fn tcp(port: u16, request: &str) -> io::Result<Answer> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    exchange(stream, request)
}

pub(super) fn unix(socket: &Path, method: &str, path: &str, body: &str) -> io::Result<Answer> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
    exchange(stream, &format!("{head}Content-Length: {length}\r\n\r\n{body}"))
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<Answer> {
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let code = code.ok_or(io::ErrorKind::InvalidData)?;
    Ok(Answer { code, head: head.to_owned(), body: body.to_owned() })
}
