//! A small HTTP client for the agent's socket, here or elsewhere.
//!
//! HTTP/1.0 on purpose: an answer ends with its connection, and no part of a stream is wrapped.
//! The keeper holds the listening socket, so a request made while the agent is being restarted
//! waits in line. What an agent has taken and not answered is asked again only if that is harmless.

mod remote;
mod stream;

use crate::{
    args::NodeArgs,
    dirs,
    failure::{FAILED, Failure, NO_AGENT},
    keeper, socket,
    term::print_json,
};
use remote::Remote;
use serde_json::Value;
use std::{
    fmt::Write as _,
    io::{self, BufReader, Read, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};
use stream::Stream;

const SOCKET: &str = "mainstay.sock";
/// An agent that restarts is back by then.
const RESTART: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);
/// For an answer that needs no waiting.
pub(crate) const PROMPT: Duration = Duration::from_secs(5);
const LONGEST_HEAD: usize = 16 << 10;
const UNAUTHORIZED: u16 = 401;
const LONGEST_TEXT: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) enum Client {
    /// The node that lives in this run directory.
    Local(PathBuf),
    Remote(Box<Remote>),
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What the problem document says.
    pub(crate) fn detail(&self) -> String {
        let said = self.body["detail"].as_str();
        let said =
            said.map_or_else(|| format!("the agent answered {}", self.status), str::to_owned);
        match self.status {
            UNAUTHORIZED => format!(
                "{said} (--token-file or MAINSTAY_TOKEN_FILE names the file with it, --cert and \
                 --key a certificate)"
            ),
            _ => said,
        }
    }

    /// A problem is an answer as well for those who read JSON.
    pub(crate) fn or_told(self, json: bool) -> Result<Value, Failure> {
        if json && !self.is_ok() {
            print_json(&self.body)?;
        }
        self.into_result()
    }

    pub(crate) fn into_result(self) -> Result<Value, Failure> {
        match self.is_ok() {
            true => Ok(self.body),
            false => Err(Failure::failed(self.detail())),
        }
    }
}

/// How far a request got before it failed.
enum Broken {
    /// No agent has seen it.
    Unsent(io::Error),
    /// An agent may have taken it.
    Sent(io::Error),
}

impl Client {
    /// The node that is meant.
    pub(crate) fn of(args: &NodeArgs) -> Result<Client, Failure> {
        let remote = match args.dir.run_dir {
            // What was typed counts more than what is in the environment.
            Some(_) => None,
            None => Remote::of(&args.remote)?,
        };
        match remote {
            Some(remote) => Ok(Client::Remote(Box::new(remote))),
            None => Ok(Client::Local(dirs::run_dir(args.dir.run_dir.as_deref())?)),
        }
    }

    /// `None`: it is elsewhere.
    pub(crate) fn run_dir(&self) -> Option<&Path> {
        match self {
            Client::Local(run_dir) => Some(run_dir),
            Client::Remote(_) => None,
        }
    }

    /// Is there a node? It may be that no agent answers at the moment.
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Client::Local(run_dir) => keeper::is_there(run_dir),
            Client::Remote(remote) => remote.connect(PROMPT).is_ok(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.persist(|| self.exchange("GET", path, "", None, PROMPT), |_| true)
    }

    pub(crate) fn post(
        &self,
        path: &str,
        body: &Value,
        patience: Duration,
    ) -> Result<Answer, Failure> {
        let body = body.to_string();
        self.persist(
            || self.exchange("POST", path, "", Some(&body), patience),
            |broken| matches!(broken, Broken::Unsent(_)),
        )
    }

    /// May be asked twice: what is set again is the same.
    pub(crate) fn put(
        &self,
        path: &str,
        body: &Value,
        patience: Duration,
    ) -> Result<Answer, Failure> {
        let body = body.to_string();
        self.persist(|| self.exchange("PUT", path, "", Some(&body), patience), |_| true)
    }

    /// As [`Client::post`], for what may be asked twice.
    pub(crate) fn post_again(
        &self,
        path: &str,
        body: &Value,
        patience: Duration,
    ) -> Result<Answer, Failure> {
        let body = body.to_string();
        self.persist(|| self.exchange("POST", path, "", Some(&body), patience), |_| true)
    }

    /// A stream of server-sent events, or of lines.
    pub(crate) fn stream(&self, path: &str, headers: &str) -> Result<BufReader<Stream>, Failure> {
        self.persist(
            || {
                let (stream, head) = self.open("GET", path, headers, None, PROMPT)?;
                stream.wait_for_ever().map_err(Broken::Sent)?;
                match head.status {
                    200 => Ok(Ok(BufReader::with_capacity(16 << 10, stream))),
                    _ => finish(stream, &head).map(|answer| Err(Failure::failed(answer.detail()))),
                }
            },
            |_| true,
        )?
    }

    /// Tries again, for as long as an agent may take to come back, what may be tried again.
    fn persist<T>(
        &self,
        attempt: impl Fn() -> Result<T, Broken>,
        harmless: impl Fn(&Broken) -> bool,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + RESTART;
        loop {
            let broken = match attempt() {
                Ok(done) => return Ok(done),
                Err(broken) => broken,
            };
            if harmless(&broken) && broken.may_pass() && Instant::now() < deadline {
                thread::sleep(PAUSE);
                continue;
            }
            return Err(self.explain(&broken));
        }
    }

    fn explain(&self, broken: &Broken) -> Failure {
        match self {
            Client::Local(run_dir) => explain_local(run_dir, broken),
            Client::Remote(remote) => explain_remote(remote, broken),
        }
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: Option<&str>,
        patience: Duration,
    ) -> Result<Answer, Broken> {
        let (stream, head) = self.open(method, path, headers, body, patience)?;
        finish(stream, &head)
    }

    fn open(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: Option<&str>,
        patience: Duration,
    ) -> Result<(Stream, Head), Broken> {
        let (stream, host, own) = match self {
            Client::Local(run_dir) => {
                let stream = socket::connect(run_dir, SOCKET, patience).map(Stream::Unix);
                (stream, "mainstay", String::new())
            }
            Client::Remote(remote) => {
                (remote.connect(patience), remote.authority.as_str(), remote.headers())
            }
        };
        let mut stream = stream.map_err(Broken::Unsent)?;
        let mut request = format!("{method} {path} HTTP/1.0\r\nHost: {host}\r\n{own}{headers}");
        if let Some(body) = body {
            // Writing into a String cannot fail.
            let _ = write!(
                request,
                "Content-Type: application/json\r\nContent-Length: {}\r\n",
                body.len()
            );
        }
        request.push_str("\r\n");
        request.push_str(body.unwrap_or_default());
        // A request cut short is one that no agent acts on.
        stream.write_all(request.as_bytes()).map_err(Broken::Unsent)?;
        let head = Head::read(&mut stream).map_err(Broken::Sent)?;
        Ok((stream, head))
    }
}

fn explain_local(run_dir: &Path, broken: &Broken) -> Failure {
    let path = run_dir.join(SOCKET);
    let path = path.display();
    let (Broken::Unsent(error) | Broken::Sent(error)) = broken;
    let why = if slow(error) { "it does not react in time".to_owned() } else { error.to_string() };
    match (error.kind(), broken) {
        (io::ErrorKind::NotFound, _) => Failure::new(
            NO_AGENT,
            format!(
                "no node runs in {}: there is no {SOCKET}. Start one with `mainstay run`, or \
                 name its directory with --run-dir or MAINSTAY_RUN_DIR",
                run_dir.display()
            ),
        ),
        (io::ErrorKind::PermissionDenied, _) => Failure::new(
            NO_AGENT,
            format!("cannot connect to {path}: {why}; try as the user who runs the node"),
        ),
        _ if !keeper::is_there(run_dir) => Failure::new(
            NO_AGENT,
            format!("no agent answers at {path} ({why}); is `mainstay run` still running?"),
        ),
        (_, Broken::Sent(_)) if !slow(error) => Failure::new(
            FAILED,
            format!(
                "the agent ended before it answered ({why}) and is being restarted; every job \
                 goes on. It may have taken the request: look at `mainstay status`"
            ),
        ),
        _ => Failure::new(
            NO_AGENT,
            format!(
                "no agent answers at {path} ({why}): the keeper lives, so the agent is stuck or \
                 being restarted, and every job goes on. Try again; `mainstay logs mainstay` \
                 may say why"
            ),
        ),
    }
}

fn explain_remote(remote: &Remote, broken: &Broken) -> Failure {
    let url = &remote.url;
    let (Broken::Unsent(error) | Broken::Sent(error)) = broken;
    let why = if slow(error) { "it does not react in time".to_owned() } else { error.to_string() };
    match broken {
        _ if why.contains("UnknownIssuer") => Failure::failed(format!(
            "{url} shows a certificate of an authority that is not trusted here: name it with --ca \
             or MAINSTAY_CA"
        )),
        _ if why.contains("CaUsedAsEndEntity") => Failure::failed(format!(
            "{url} shows the certificate of an authority as its own: give that node one with \
             basicConstraints CA:FALSE"
        )),
        _ if why.contains("invalid peer certificate") => {
            Failure::failed(format!("{url} cannot prove who it is: {why}; see its [api] tls.cert"))
        }
        _ if why.contains("CertificateRequired") => Failure::failed(format!(
            "{url} lets in by client certificate only: name yours with --cert and --key"
        )),
        Broken::Sent(_) if !slow(error) => Failure::failed(format!(
            "{url} ended the connection before it answered ({why}); it may have taken the request: \
             look at `mainstay status`"
        )),
        Broken::Unsent(_) | Broken::Sent(_) => {
            Failure::new(NO_AGENT, format!("no node answers at {url}: {why}"))
        }
    }
}

/// One question to a socket that is no node's own, and its answer as text.
pub(crate) fn once(
    socket: &Path,
    method: &str,
    path: &str,
    body: Option<&str>,
    patience: Duration,
) -> io::Result<(u16, String)> {
    let dir = socket.parent().unwrap_or(Path::new("."));
    let name = socket.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut stream = socket::connect(dir, name, patience)?;
    let body = body.unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: mainstay\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let head = Head::read(&mut stream)?;
    let mut text = Vec::new();
    stream.take(LONGEST_TEXT).read_to_end(&mut text)?;
    Ok((head.status, String::from_utf8_lossy(&text).into_owned()))
}

impl Broken {
    /// Of the kind that a restarting agent causes.
    fn may_pass(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, UnexpectedEof};
        let (Broken::Unsent(error) | Broken::Sent(error)) = self;
        matches!(error.kind(), BrokenPipe | ConnectionRefused | ConnectionReset | UnexpectedEof)
    }
}

fn slow(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The head of an answer.
struct Head {
    status: u16,
    length: Option<usize>,
}

impl Head {
    /// Byte by byte: a head is short, and nothing of what follows it may be taken.
    fn read(stream: &mut impl Read) -> io::Result<Head> {
        let mut bytes = Vec::new();
        let mut byte = [0; 1];
        while !bytes.ends_with(b"\r\n\r\n") {
            if bytes.len() == LONGEST_HEAD {
                return Err(io::Error::other("the answer begins with an endless head"));
            }
            match stream.read(&mut byte)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => bytes.push(byte[0]),
            }
        }
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut response = httparse::Response::new(&mut headers);
        response.parse(&bytes).map_err(io::Error::other)?;
        let length = response
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case("content-length"))
            .and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok());
        Ok(Head { status: response.code.unwrap_or(0), length })
    }
}

fn finish(stream: Stream, head: &Head) -> Result<Answer, Broken> {
    let mut body = Vec::new();
    let length = head.length.map_or(u64::MAX, |length| length as u64);
    stream.take(length).read_to_end(&mut body).map_err(Broken::Sent)?;
    if head.length.is_some_and(|length| body.len() < length) {
        return Err(Broken::Sent(io::ErrorKind::UnexpectedEof.into()));
    }
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Answer { status: head.status, body })
}
