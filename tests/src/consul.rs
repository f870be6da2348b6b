//! A real Consul agent that is its own cluster, on loopback, gone with the test.
//!
//! It forgets everything when it is killed (`-dev`). What is asked here goes over a client of our
//! own making that shares nothing with the one under test.

use crate::{Scratch, needs, signal, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    time::Duration,
};

#[derive(Debug)]
pub struct Consul {
    child: Option<Child>,
    scratch: Scratch,
    ports: Ports,
    token: Option<String>,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    http: u16,
    https: u16,
    server: u16,
    serf: u16,
}

impl Default for Consul {
    fn default() -> Consul {
        Consul::new()
    }
}

impl Consul {
    /// One that anybody may ask.
    #[must_use]
    pub fn new() -> Consul {
        Consul::with(&json!({}), None)
    }

    /// One with more configuration, and the token with which a test may ask it anything.
    ///
    /// # Panics
    /// When it does not come up.
    #[must_use]
    pub fn with(config: &Value, token: Option<&str>) -> Consul {
        needs("consul");
        let scratch = Scratch::new();
        fs::write(scratch.path().join("more.json"), config.to_string())
            .expect("a scratch directory can be written");
        let token = token.map(str::to_owned);
        let mut consul = Consul { child: None, scratch, ports: Ports::free(), token };
        // A port may be taken between being found free and being used.
        for _ in 0..5 {
            if consul.try_start() {
                return consul;
            }
            consul.ports = Ports::free();
        }
        panic!("consul does not start: {}", consul.log());
    }

    /// `host:port` for HTTP.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports.http)
    }

    /// `localhost:port` for HTTPS, where the configuration has certificates.
    #[must_use]
    pub fn https_address(&self) -> String {
        format!("localhost:{}", self.ports.https)
    }

    fn try_start(&mut self) -> bool {
        let Ports { http, https, server, serf } = self.ports;
        let log = File::create(self.scratch.path().join("log")).expect("a file of our own");
        // Dies with the thread of the test, should that not come to its end.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "consul", "agent", "-dev", "-node", "here"])
            .args(["-bind", "127.0.0.1", "-client", "127.0.0.1", "-log-level", "warn"])
            .args(["-dns-port", "-1", "-grpc-port", "-1", "-serf-wan-port", "-1"])
            .args(["-http-port", &http.to_string(), "-https-port", &self.https(https)])
            .args(["-server-port", &server.to_string(), "-serf-lan-port", &serf.to_string()])
            .arg("-config-file")
            .arg(self.scratch.path().join("more.json"))
            .env("GOMAXPROCS", "2")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            .spawn()
            .expect("setpriv and consul are there");
        self.child = Some(child);
        until("consul leads its cluster of one, or has ended", || {
            let child = self.child.as_mut().expect("started");
            match child.try_wait().expect("our own child") {
                Some(_) => Some(false),
                None => self.leads().then_some(true),
            }
        })
    }

    /// Only where there are certificates.
    fn https(&self, port: u16) -> String {
        let more = fs::read_to_string(self.scratch.path().join("more.json")).unwrap_or_default();
        if more.contains("cert_file") { port.to_string() } else { "-1".to_owned() }
    }

    /// It leads, and its own node is in the catalogue: services can follow.
    fn leads(&self) -> bool {
        let answer = self.ask("GET", "/v1/catalog/nodes", "");
        matches!(answer, Some((200, body)) if body.contains("here"))
    }

    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default()
    }

    /// # Panics
    /// When it is not running.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("running").id()
    }

    /// Kills it: it forgets everything.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again where it was.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn again(&mut self) {
        assert!(self.child.is_none(), "kill it first");
        assert!(self.try_start(), "consul does not start again: {}", self.log());
    }

    /// It goes on listening and answers nothing.
    ///
    /// # Panics
    /// When it does not stop.
    pub fn freeze(&self) {
        signal(self.pid(), Signal::STOP);
        let tasks = format!("/proc/{}/task", self.pid());
        // A thread that runs stops a moment after the signal was sent.
        until("every thread of consul is stopped", || {
            let all = fs::read_dir(&tasks).ok()?;
            let mut stats = all.map(|task| fs::read_to_string(task.ok()?.path().join("stat")).ok());
            stats.all(|stat| stat.is_none_or(|stat| stat.contains(") T "))).then_some(())
        });
    }

    pub fn thaw(&self) {
        signal(self.pid(), Signal::CONT);
    }

    /// The answer to a question.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path, "").expect("consul answers");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// # Panics
    /// When it is refused.
    pub fn put(&self, path: &str, body: &Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = self.ask("PUT", path, &body).expect("consul answers");
        assert_eq!(status, 200, "{path}: {answer}");
    }

    /// Registers a service behind the back of whoever is under test, passing without a check.
    pub fn register(&self, id: &str, service: &str, port: u16, tags: &[&str]) {
        let entry = json!({ "ID": id, "Name": service, "Port": port, "Tags": tags });
        self.put("/v1/agent/service/register", &entry);
    }

    pub fn deregister(&self, id: &str) {
        self.put(&format!("/v1/agent/service/deregister/{id}"), &Value::Null);
    }

    /// The standing of a service in the eyes of everybody, and what was noted at the agent: a
    /// change of the note alone takes minutes to spread.
    #[must_use]
    pub fn standing(&self, service: &str, id: &str) -> Option<(String, String)> {
        let checks = self.get(&format!("/v1/health/checks/{service}"));
        let check = checks.as_array()?.iter().find(|check| check["ServiceID"] == id)?;
        let noted = &self.get("/v1/agent/checks")[format!("service:{id}")]["Output"];
        Some((check["Status"].as_str()?.to_owned(), noted.as_str()?.to_owned()))
    }

    /// Ids of the passing instances of a service.
    #[must_use]
    pub fn passing(&self, service: &str) -> Vec<String> {
        let found = self.get(&format!("/v1/health/service/{service}?passing=1"));
        let ids = found.as_array().expect("a list").iter();
        let mut ids: Vec<String> =
            ids.filter_map(|one| Some(one["Service"]["ID"].as_str()?.to_owned())).collect();
        ids.sort();
        ids
    }

    /// Connections that others hold open to it.
    #[must_use]
    pub fn connections(&self) -> usize {
        const ESTABLISHED: &str = "01";
        let port = format!(":{:04X}", self.ports.http);
        let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
        table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|fields| fields.len() > 3 && fields[2].ends_with(&port))
            .filter(|fields| fields[3] == ESTABLISHED)
            .count()
    }

    /// Status and body; `None` when nobody answers.
    #[must_use]
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(self.address()).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
        let token = self.token.as_deref();
        let token = token.map(|token| format!("X-Consul-Token: {token}\r\n")).unwrap_or_default();
        // HTTP/1.0: the answer ends with the connection, and comes in one piece.
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\n{token}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split_whitespace().nth(1)?.parse().ok()?;
        Some((status, body.to_owned()))
    }
}

impl Drop for Consul {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Ports {
    /// Free a moment ago.
    fn free() -> Ports {
        let held: Vec<TcpListener> = (0..4)
            .map(|_| TcpListener::bind("127.0.0.1:0").expect("loopback has free ports"))
            .collect();
        let port = |at: usize| held[at].local_addr().expect("bound").port();
        Ports { http: port(0), https: port(1), server: port(2), serf: port(3) }
    }
}
