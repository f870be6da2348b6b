//! The command's client of a node, here or elsewhere.
//!
//! The keeper holds the listening socket, so a request made while the agent is being restarted
//! waits in line. What an agent has taken and not answered is asked again only if that is harmless.

mod exchange;
mod explain;
mod remote;

use crate::{args::NodeArgs, dirs, failure::Failure, keeper, term::print_json};
use exchange::{Exchange, Question, Way};
use mainstay_net::{
    http::{HttpError, Method},
    percent::segment,
};
use remote::Remote;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{
    borrow::Cow,
    io::{self, BufReader},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

pub(crate) use exchange::Body;

const SOCKET: &str = "mainstay.sock";
/// An agent that restarts is back by then.
const RESTART: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);
/// For an answer that needs no waiting.
pub(crate) const PROMPT: Duration = Duration::from_secs(5);
const OK: u16 = 200;
const UNAUTHORIZED: u16 = 401;
const UNAVAILABLE: u16 = 503;
const LONGEST_TEXT: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Client {
    asked: AskedNode,
    /// The node of its fleet that is meant, if it is another one.
    on: Option<String>,
}

/// The node that is asked.
#[derive(Debug)]
enum AskedNode {
    /// The one that lives in this run directory.
    Local(PathBuf),
    Remote(Box<Remote>),
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// What the agent has sent, as a type of the API.
pub(crate) fn read<T: DeserializeOwned>(body: &Value) -> Result<T, Failure> {
    T::deserialize(body).map_err(|error| {
        Failure::of("the agent is of another version and answers in another form", error)
    })
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
        // Another node of the fleet has said it.
        let node = self.body["node"].as_str().filter(|node| !said.contains(node));
        match (self.status, node) {
            (_, Some(node)) => format!("{said} (on {node})"),
            (UNAUTHORIZED, None) => format!(
                "{said} (--token-file or MAINSTAY_TOKEN_FILE names the file with it, --cert and \
                 --key a certificate)"
            ),
            (_, None) => said,
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

impl Client {
    /// The node that is meant.
    pub(crate) fn of(args: &NodeArgs) -> Result<Client, Failure> {
        // What was typed counts more than what is in the environment.
        let remote = match args.dir.run_dir.is_some() || args.dir.config.is_some() {
            true => None,
            false => Remote::of(&args.remote)?,
        };
        let asked = match remote {
            Some(remote) => AskedNode::Remote(Box::new(remote)),
            None => AskedNode::Local(dirs::run_dir(&args.dir)?),
        };
        Ok(Client { asked, on: args.remote.on.clone() })
    }

    /// The node that lives in this run directory.
    pub(crate) fn local(run_dir: PathBuf) -> Client {
        Client { asked: AskedNode::Local(run_dir), on: None }
    }

    /// `None`: it is elsewhere.
    pub(crate) fn run_dir(&self) -> Option<&Path> {
        match (&self.asked, &self.on) {
            (AskedNode::Local(run_dir), None) => Some(run_dir),
            (AskedNode::Local(_), Some(_)) | (AskedNode::Remote(_), _) => None,
        }
    }

    /// Is there a node? It may be that no agent answers at the moment.
    pub(crate) fn is_there(&self) -> bool {
        match (&self.asked, &self.on) {
            (_, Some(_)) => self.get("/v1/environ").is_ok_and(|it| it.status != UNAVAILABLE),
            (AskedNode::Local(run_dir), None) => keeper::is_there(run_dir),
            (AskedNode::Remote(remote), None) => exchange::can_connect(remote, PROMPT),
        }
    }

    /// The path by which the node that is meant is asked.
    fn routed<'a>(&self, path: &'a str) -> Cow<'a, str> {
        match (&self.on, path.strip_prefix("/v1/")) {
            (Some(node), Some(rest)) => format!("/v1/nodes/{}/{rest}", segment(node)).into(),
            (None, _) | (_, None) => path.into(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.get_within(path, PROMPT)
    }

    pub(crate) fn get_within(&self, path: &str, patience: Duration) -> Result<Answer, Failure> {
        self.ask(&Question::new(Method::GET, &self.routed(path)), patience, |_| true)
    }

    pub(crate) fn post(
        &self,
        path: &str,
        body: &Value,
        patience: Duration,
    ) -> Result<Answer, Failure> {
        let path = self.routed(path);
        let question = Question::new(Method::POST, &path).with(body);
        self.ask(&question, patience, HttpError::is_unsent)
    }

    /// May be asked twice: what is set again is the same.
    pub(crate) fn put(
        &self,
        path: &str,
        body: &Value,
        patience: Duration,
    ) -> Result<Answer, Failure> {
        let path = self.routed(path);
        self.ask(&Question::new(Method::PUT, &path).with(body), patience, |_| true)
    }

    /// As [`Client::post`], for what may be asked twice.
    pub(crate) fn post_again(
        &self,
        path: &str,
        body: &Value,
        patience: Duration,
    ) -> Result<Answer, Failure> {
        let path = self.routed(path);
        self.ask(&Question::new(Method::POST, &path).with(body), patience, |_| true)
    }

    /// A stream of server-sent events from the one after `last_event` on, or of lines.
    pub(crate) fn stream(
        &self,
        path: &str,
        last_event: Option<&str>,
    ) -> Result<BufReader<Body>, Failure> {
        let path = self.routed(path);
        let question = Question::new(Method::GET, &path).after(last_event);
        self.persist(
            || {
                let exchange = Exchange::begin(&self.way(), &question, PROMPT)?;
                match exchange.status() {
                    OK => Ok(Ok(BufReader::with_capacity(16 << 10, exchange.into_body()))),
                    _ => answered(exchange).map(|answer| Err(Failure::failed(answer.detail()))),
                }
            },
            |_| true,
        )?
    }

    fn way(&self) -> Way<'_> {
        match &self.asked {
            AskedNode::Local(run_dir) => Way::Socket { dir: run_dir, name: SOCKET },
            AskedNode::Remote(remote) => Way::Remote(remote),
        }
    }

    fn ask(
        &self,
        question: &Question<'_>,
        patience: Duration,
        harmless: impl Fn(&HttpError) -> bool,
    ) -> Result<Answer, Failure> {
        let way = self.way();
        self.persist(|| answered(Exchange::begin(&way, question, patience)?), harmless)
    }

    /// Tries again, for as long as an agent may take to come back, what may be tried again.
    fn persist<T>(
        &self,
        attempt: impl Fn() -> Result<T, HttpError>,
        harmless: impl Fn(&HttpError) -> bool,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + RESTART;
        loop {
            let error = match attempt() {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            if harmless(&error) && may_pass(&error) && Instant::now() < deadline {
                thread::sleep(PAUSE);
                continue;
            }
            return Err(match &self.asked {
                AskedNode::Local(run_dir) => explain::local(run_dir, &error),
                AskedNode::Remote(remote) => explain::remote(&remote.url, &error),
            });
        }
    }
}

/// Of the kind that a restarting agent causes.
fn may_pass(error: &HttpError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, UnexpectedEof};
    matches!(
        error.io_kind(),
        Some(BrokenPipe | ConnectionRefused | ConnectionReset | UnexpectedEof)
    )
}

fn answered(exchange: Exchange) -> Result<Answer, HttpError> {
    let status = exchange.status();
    let body = serde_json::from_slice(&exchange.whole()?).unwrap_or(Value::Null);
    Ok(Answer { status, body })
}

/// One question to a socket that is no node's own, and its answer as text.
pub(crate) fn once(
    socket: &Path,
    method: Method,
    path: &str,
    body: Option<&Value>,
    patience: Duration,
) -> Result<(u16, String), HttpError> {
    let dir = socket.parent().unwrap_or(Path::new("."));
    let name = socket.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut question = Question::new(method, path);
    if let Some(body) = body {
        question = question.with(body);
    }
    let exchange = Exchange::begin(&Way::Socket { dir, name }, &question, patience)?;
    let status = exchange.status();
    let text = exchange.beginning(LONGEST_TEXT)?;
    Ok((status, String::from_utf8_lossy(&text).into_owned()))
}
