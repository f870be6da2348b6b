//! A real Consul agent on loopback that is its own cluster and keeps nothing, and the barest client
//! of it: requests over connections that stay open, and nothing else.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid};
use serde_json::Value;

use crate::failure::{Doing, Failure, Result};
use crate::peer::Place;
use crate::process::{Instant, tree};

const PROGRAM: &str = "consul";
const LIMIT: Duration = Duration::from_secs(30);
/// Between two looks while something is waited for.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// It ends with whatever else the harness has started, or when it is dropped.
#[derive(Debug)]
pub(crate) struct Consul {
    pid: Pid,
    address: String,
}

impl Consul {
    /// Its version, where it is installed.
    pub(crate) fn version() -> Option<String> {
        let output = Command::new(PROGRAM).arg("version").output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        text.lines().next()?.strip_prefix("Consul v").map(str::to_owned)
    }

    pub(crate) fn start(place: &Place) -> Result<Consul> {
        let held: Vec<TcpListener> = (0..3)
            .map(|_| TcpListener::bind("127.0.0.1:0").doing("find a free port"))
            .collect::<Result<_>>()?;
        let ports = held
            .iter()
            .map(|held| held.local_addr().map(|it| it.port()).doing("find a free port"))
            .collect::<Result<Vec<u16>>>()?;
        drop(held);
        let log = File::create(place.run.join("consul.log")).doing("keep what consul says")?;
        let child = tree::marked(PROGRAM, &place.run)
            .args(["agent", "-dev", "-node", "bench", "-log-level", "warn"])
            .args(["-bind", "127.0.0.1", "-client", "127.0.0.1"])
            .args(["-dns-port", "-1", "-grpc-port", "-1", "-serf-wan-port", "-1"])
            .args(["-http-port", &ports[0].to_string(), "-server-port", &ports[1].to_string()])
            .args(["-serf-lan-port", &ports[2].to_string()])
            .stdin(Stdio::null())
            .stdout(log.try_clone().doing("keep what consul says")?)
            .stderr(log)
            .spawn()
            .doing("start consul")?;
        let address = format!("127.0.0.1:{}", ports[0]);
        let consul = Consul { pid: Pid::from_child(&child), address };
        let begun = Instant::now();
        while !consul.leads() {
            if Instant::now().seconds_since(begun) > LIMIT.as_secs_f64() || !tree::alive(consul.pid)
            {
                return Err(Failure::new("consul does not lead its cluster of one"));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(consul)
    }

    /// Its own node is in the catalogue: services can follow.
    fn leads(&self) -> bool {
        let nodes =
            self.connect().and_then(|mut client| client.ask("GET", "/v1/catalog/nodes", ""));
        nodes.is_ok_and(|nodes| nodes.contains("bench"))
    }

    /// What a configuration says to use it.
    pub(crate) fn table(&self) -> String {
        format!("\n[discovery]\nengine = \"consul\"\naddress = \"{}\"\n", self.address)
    }

    pub(crate) fn connect(&self) -> Result<Client> {
        Client::connect(&self.address)
    }

    /// It goes on listening and answers nothing.
    pub(crate) fn freeze(&self) {
        tree::kill(self.pid, Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        tree::kill(self.pid, Signal::CONT);
    }

    /// Waits until so many services pass in the catalogue; when that was first seen.
    ///
    /// A look costs Consul some of the time that is measured, so there are few: each comes half way
    /// to when, at the pace so far, it would be done.
    pub(crate) fn wait_for_passing(&self, wanted: usize) -> Result<Instant> {
        let mut client = self.connect()?;
        let begun = Instant::now();
        let first = client.passing()?;
        loop {
            let passing = client.passing()?;
            let now = Instant::now();
            if passing == wanted {
                return Ok(now);
            }
            let taken = now.seconds_since(begun);
            if taken > LIMIT.as_secs_f64() {
                return Err(Failure::new(format!("{passing} of {wanted} services pass in consul")));
            }
            let (done, left) = (passing.abs_diff(first), wanted.abs_diff(passing));
            let half = taken * left as f64 / done.max(1) as f64 / 2.0;
            let half = Duration::try_from_secs_f64(half).unwrap_or(LONGEST_PAUSE);
            std::thread::sleep(half.clamp(PAUSE, LONGEST_PAUSE));
        }
    }
}

impl Drop for Consul {
    fn drop(&mut self) {
        if tree::descendants(getpid()).contains(&self.pid) {
            tree::kill(self.pid, Signal::KILL);
            self.thaw();
        }
    }
}

/// One connection that stays open.
#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn connect(address: &str) -> Result<Client> {
        let doing = "connect to consul";
        let stream = TcpStream::connect(address).doing(doing)?;
        stream.set_nodelay(true).doing(doing)?;
        stream.set_read_timeout(Some(LIMIT)).doing(doing)?;
        Ok(Client { stream: BufReader::new(stream) })
    }

    /// The body of a good answer.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<String> {
        let doing = "ask consul";
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: consul\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).doing(doing)?;
        let status = self.line()?;
        let mut length = Some(0);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().ok(),
                Some(("transfer-encoding", _)) => length = None,
                Some(_) => {}
                None => break,
            }
        }
        let answer = match length {
            Some(length) => self.bytes(length)?,
            None => self.chunks()?,
        };
        let answer = String::from_utf8_lossy(&answer).into_owned();
        match status.contains(" 200 ") {
            true => Ok(answer),
            false => Err(Failure::new(format!("{method} {path}: {status}: {answer}"))),
        }
    }

    pub(crate) fn put(&mut self, path: &str, body: &str) -> Result<()> {
        self.ask("PUT", path, body).map(drop)
    }

    /// How many services pass in the catalogue.
    fn passing(&mut self) -> Result<usize> {
        let answer = self.ask("GET", "/v1/health/state/passing", "")?;
        let checks: Vec<Value> = serde_json::from_str(&answer)
            .map_err(|error| Failure::new(format!("consul's answer is no list: {error}")))?;
        Ok(checks.iter().filter(|check| check["ServiceID"] != "").count())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line).doing("read what consul answers")? {
            0 => Err(Failure::new("consul has closed the connection")),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).doing("read what consul answers")?;
        Ok(bytes)
    }

    fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let line = self.line()?;
            let length = usize::from_str_radix(&line, 16)
                .map_err(|_| Failure::new(format!("consul answers a chunk of {line:?} bytes")))?;
            all.extend(self.bytes(length)?);
            self.line()?;
            if length == 0 {
                return Ok(all);
            }
        }
    }
}
