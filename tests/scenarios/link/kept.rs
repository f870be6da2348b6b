//! A keeper whose agent is this test.

use mainstay_core::task::{Bytes, TaskId, TaskKind, TaskOwner};
use mainstay_core::{
    name::Name,
    plan::{Limits, Log, SignalTarget, Stderr, Stdin},
    signal::Signal,
};
use mainstay_tests::{Command, Scratch, Watched, signal, until};
use mainstay_wire::task::{RunTask, TaskKey};
use mainstay_wire::{
    format::Format,
    frame::{self, FrameDecoder},
    link::{
        Exec, ExitRecord, KeeperRequest, KeeperResponse, LiveSettings, Spawn, ToAgent, ToKeeper,
        Welcome,
    },
};
use std::{
    fs::{self, File},
    io::{Read, Write},
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    time::Duration,
};

#[derive(Debug)]
pub(super) struct Kept {
    scratch: Scratch,
    child: Option<Child>,
    agents: UnixListener,
}

impl Kept {
    pub(super) fn start() -> Kept {
        Kept::start_in(Scratch::new(), &[])
    }

    /// As another user, who has only so many processes as it is allowed.
    pub(super) fn start_as(uid: u32) -> Kept {
        let scratch = Scratch::new();
        scratch.give_to(uid);
        let id = uid.to_string();
        Kept::start_in(scratch, &["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"])
    }

    fn start_in(scratch: Scratch, before: &[&str]) -> Kept {
        let socket = scratch.path().join("agents");
        let agents = UnixListener::bind(&socket).expect("a scratch directory");
        agents.set_nonblocking(true).expect("a socket");
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).expect("our own");
        let log = File::create(scratch.path().join("stderr")).expect("a scratch directory");
        let words: Vec<&str> = before.iter().copied().chain([Kept::binary()]).collect();
        let child = Command::new(words[0])
            .args(&words[1..])
            .arg(scratch.path().join("run"))
            .env("MAINSTAY_TEST_AGENT", &socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the binary was built");
        Kept { scratch, child: Some(child), agents }
    }

    pub(super) fn binary() -> &'static str {
        env!("CARGO_BIN_EXE_mainstay-test-keeper")
    }

    /// The same binary under another name, which decides what it is good for.
    pub(super) fn another_binary(&self, name: &str) -> PathBuf {
        let path = self.scratch.path().join(name);
        fs::copy(Kept::binary(), &path).expect("a scratch directory");
        path
    }

    pub(super) fn path(&self) -> &Path {
        self.scratch.path()
    }

    pub(super) fn watched(&self, job: &str) -> Watched {
        Watched::new(self.path().join("run/jobs").join(job))
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// The next agent that the keeper starts, before it has said anything.
    pub(super) fn next_agent(&self) -> Agent {
        let stream = until("an agent was started", || Some(self.agents.accept().ok()?.0));
        stream.set_nonblocking(false).expect("a socket");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        let peer = rustix::net::sockopt::socket_peercred(&stream).expect("a unix socket");
        let pid = peer.pid.as_raw_nonzero().get().unsigned_abs();
        Agent { stream, decoder: FrameDecoder::default(), pid }
    }

    /// The next agent, after it was welcomed and got ready.
    pub(super) fn agent(&self) -> (Agent, Welcome) {
        let mut agent = self.next_agent();
        let welcome = agent.greet();
        agent.say(&ToKeeper::Ready { stop_timeout_ms: 2000, unjournaled: false });
        (agent, welcome)
    }

    /// Asks at `keeper.sock`.
    pub(super) fn ask(&self, ask: &KeeperRequest) -> KeeperResponse {
        self.ask_frame(&frame::encode(ask).expect("short"))
    }

    /// The same for what may be no request at all; `text` is JSON.
    pub(super) fn ask_raw(&self, text: &str) -> KeeperResponse {
        self.ask_frame(&framed(text))
    }

    fn ask_frame(&self, bytes: &[u8]) -> KeeperResponse {
        let path = self.path().join("run/keeper.sock");
        let mut stream = until("the keeper listens", || UnixStream::connect(&path).ok());
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        stream.write_all(bytes).expect("the keeper reads");
        read(&mut stream, &mut FrameDecoder::default()).expect("an answer")
    }

    pub(super) fn wait(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it runs");
        until("the run ends", || child.try_wait().expect("our own child"))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.path().join("stderr")).unwrap_or_default();
            eprintln!("--- stderr of the keeper\n{log}---");
        }
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// An agent's end of the link.
#[derive(Debug)]
pub(super) struct Agent {
    stream: UnixStream,
    decoder: FrameDecoder,
    pub(super) pid: u32,
}

impl Agent {
    pub(super) fn greet(&mut self) -> Welcome {
        self.say(&ToKeeper::Hello { format: Format::OURS, version: "test".to_owned() });
        match self.receive() {
            ToAgent::Welcome(welcome) => *welcome,
            other => panic!("not a welcome: {other:?}"),
        }
    }

    pub(super) fn say(&mut self, message: &ToKeeper) {
        self.write(&frame::encode(message).expect("it fits"));
    }

    /// Says what may be no message at all; `text` is JSON.
    pub(super) fn write_frame(&mut self, text: &str) {
        self.write(&framed(text));
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the keeper lives");
    }

    pub(super) fn receive(&mut self) -> ToAgent {
        read(&mut self.stream, &mut self.decoder).expect("the keeper says something")
    }

    /// Waits for something; what is said before it is passed over.
    pub(super) fn wait<T>(&mut self, wanted: impl Fn(ToAgent) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(self.receive()) {
                return found;
            }
        }
    }

    pub(super) fn spawned(&mut self) -> u32 {
        self.wait(|message| match message {
            ToAgent::Spawned { pid, .. } => Some(pid),
            _ => None,
        })
    }

    pub(super) fn exited(&mut self) -> ExitRecord {
        self.wait(|message| match message {
            ToAgent::Exited(record) => Some(record),
            _ => None,
        })
    }

    /// All that was said before the keeper has handled everything that was said to it.
    pub(super) fn said(&mut self) -> Vec<ToAgent> {
        self.say(&ToKeeper::Inspect { id: 77 });
        let mut said = Vec::new();
        loop {
            match self.receive() {
                ToAgent::Figures { id: 77, .. } => return said,
                other => said.push(other),
            }
        }
    }

    pub(super) fn die(self) {
        signal(self.pid, rustix::process::Signal::KILL);
    }
}

/// `None` at the end of the stream.
fn read<T: serde::de::DeserializeOwned>(
    stream: &mut UnixStream,
    decoder: &mut FrameDecoder,
) -> Option<T> {
    let mut bytes = [0; 4096];
    loop {
        if let Some(message) = decoder.next().expect("frames") {
            return Some(message);
        }
        match stream.read(&mut bytes) {
            Ok(0) => return None,
            Ok(count) => decoder.push(&bytes[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
            Err(error) => panic!("nothing came: {error}"),
        }
    }
}

fn exec(script: &str) -> Exec {
    Exec { argv: ["sh", "-c", script].map(str::to_owned).to_vec(), ..Exec::default() }
}

pub(super) fn spawn(job: &str, incarnation: u64, script: &str) -> Spawn {
    Spawn {
        job: Name::new(job).expect("a name"),
        incarnation,
        exec: exec(script),
        limits: Limits::default(),
        sockets: Vec::new(),
        notify: false,
        watchdog_us: None,
        ready_fd: None,
        stderr: Stderr::Joined,
        session: true,
        stdin: Stdin::Null,
        tty: false,
        settings: LiveSettings {
            main: false,
            log: Log::default(),
            stop_signal: Signal::TERM,
            stop_to: SignalTarget::Leader,
            stop_timeout_ms: 200,
        },
        fence_at: None,
    }
}

pub(super) fn task(job: &str, timeout: Duration, script: &str) -> RunTask {
    let job = Name::new(job).expect("a name");
    let owner = TaskOwner::Job { job: job.clone(), incarnation: 1, kind: TaskKind::StopExec };
    RunTask {
        id: TaskKey::from(&TaskId { number: 1, owner }),
        job: Some(job),
        ends_with: None,
        exec: exec(script),
        input: Bytes::default(),
        timeout_ms: u64::try_from(timeout.as_millis()).expect("short"),
        forward: None,
    }
}

/// CLOCK_BOOTTIME, so much from now.
pub(super) fn boottime_after(delay: Duration) -> u64 {
    mainstay_sys::clock::boottime() + u64::try_from(delay.as_nanos()).expect("short")
}

fn framed(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("short");
    [&length.to_le_bytes(), text.as_bytes()].concat()
}
