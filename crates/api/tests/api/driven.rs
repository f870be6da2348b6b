//! A node whose agent is real and whose keeper is played by the test.

use crate::described::Described;
use mainstay_agent::{Crash, Link, Options, Renderer, boot};
use mainstay_config::Context;
use mainstay_core::{
    exit::{Asked, Exit},
    signal::Signal,
};
use mainstay_import::PlanSource;
use mainstay_wire::{
    format::Format,
    frame::{self, FrameDecoder},
    link::{ExitRecord, Figures, Stray, ToAgent, ToKeeper, TreeKind, Welcome},
    run_dir::Dirs,
};
use serde_json::Value;
use std::{
    fs,
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};
use tokio::{
    net::UnixListener,
    sync::{mpsc, watch},
};

pub(crate) const CONFIG: &str = r#"
[jobs.web]
exec = "web"

[jobs.broken]
exec = "broken"

[jobs.stubborn]
exec = "stubborn"
"#;
pub(crate) const RUN: &str = "0123456789abcdef";

/// `broken` never starts, `stubborn` never stops, anything else does as it is told.
fn play_keeper(mut link: UnixStream, dir: PathBuf) {
    let mut decoder = FrameDecoder::default();
    let mut bytes = [0; 4096];
    let mut records = 0;
    while let Ok(length @ 1..) = link.read(&mut bytes) {
        decoder.push(&bytes[..length]);
        while let Ok(Some(message)) = decoder.next() {
            if let Some(answer) = answer(message, &dir, &mut records) {
                let _ = link.write_all(&frame::encode(&answer).expect("short"));
            }
        }
    }
}

fn answer(message: ToKeeper, dir: &Path, records: &mut u64) -> Option<ToAgent> {
    let mut ended = |job, incarnation, exit, asked| {
        *records += 1;
        Some(ToAgent::Exited(ExitRecord {
            record: *records,
            job,
            incarnation,
            exit,
            asked,
            fenced: false,
            ended: 0,
            cpu_user_us: 0,
            cpu_system_us: 0,
            max_rss_kib: 0,
        }))
    };
    match message {
        ToKeeper::Hello { .. } => Some(ToAgent::Welcome(Box::new(Welcome {
            format: Format::OURS,
            run: RUN.into(),
            run_dir: dir.to_owned(),
            state_dir: dir.join("state"),
            agent_restarts: 0,
            upgraded: Vec::new(),
            jobs: Vec::new(),
            records: Vec::new(),
            signals: Vec::new(),
            asked: Vec::new(),
            told: None,
        }))),
        ToKeeper::Spawn(spawn) if spawn.job.as_str() == "broken" => {
            let exit = Exit::Error { error: "cannot execute 'broken'".into(), errno: 2 };
            ended(spawn.job, spawn.incarnation, exit, Asked::None)
        }
        ToKeeper::Spawn(spawn) => Some(ToAgent::Spawned {
            job: spawn.job,
            incarnation: spawn.incarnation,
            pid: 42,
            tree: TreeKind::Group,
            unenforced: vec!["memory".into()],
        }),
        ToKeeper::Stop { job, incarnation, signal, .. } if job.as_str() != "stubborn" => {
            ended(job, incarnation, Exit::Signal { signal, oom: false }, Asked::Stop)
        }
        ToKeeper::Kill { job, incarnation } => {
            let exit = Exit::Signal { signal: Signal::KILL, oom: false };
            ended(job, incarnation, exit, Asked::Kill)
        }
        ToKeeper::Inspect { id } => Some(ToAgent::Figures {
            id,
            figures: Figures {
                strays: vec![Stray { pid: 7, command: "lost".into() }],
                ..Figures::default()
            },
        }),
        ToKeeper::Upgrade { id, .. } => {
            Some(ToAgent::UpgradeFailed { id, error: "no such file".into() })
        }
        _ => None,
    }
}

/// A node that serves its API until the test is over.
pub(crate) struct Node(pub(crate) PathBuf);

impl Node {
    pub(crate) fn start() -> Node {
        Node::with(|_| CONFIG.to_owned())
    }

    /// `config` gets the directory that it will be in.
    pub(crate) fn with(config: impl FnOnce(&Path) -> String) -> Node {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir =
            std::env::temp_dir().join(format!("mainstay-api-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("state")).expect("temp dir");
        fs::write(dir.join("mainstay.toml"), config(&dir)).expect("a configuration");
        let listener =
            std::os::unix::net::UnixListener::bind(dir.join("mainstay.sock")).expect("a socket");
        listener.set_nonblocking(true).expect("a socket");
        let run_dir = dir.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(serve(run_dir, listener));
        });
        Node(dir)
    }

    pub(crate) fn ask(&self, request: &str) -> (u16, String) {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status.expect("a status"), body.to_owned())
    }

    pub(crate) fn connect(&self) -> Described<UnixStream> {
        let stream = UnixStream::connect(self.0.join("mainstay.sock")).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
        Described::new(stream)
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        let (status, body) = self.ask(&format!("GET {path} HTTP/1.0\r\n\r\n"));
        (status, serde_json::from_str(&body).unwrap_or_default())
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, Value) {
        let length = body.len();
        let (status, body) =
            self.ask(&format!("POST {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}"));
        (status, serde_json::from_str(&body).unwrap_or_default())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The program itself, which was built beside this test.
fn renderer() -> Renderer {
    let own = std::env::current_exe().expect("a test knows where it is");
    let program = own.ancestors().nth(2).expect("target/PROFILE/deps/TEST").join("mainstay");
    Renderer::Process { program }
}

async fn serve(run_dir: PathBuf, listener: std::os::unix::net::UnixListener) {
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    let dir = run_dir.clone();
    thread::spawn(move || play_keeper(ours, dir));
    let config = Some(run_dir.join("mainstay.toml"));
    let dirs = Dirs { state: run_dir.join("state"), run: run_dir };
    let (source, renderer) = (PlanSource::Config(config), renderer());
    let options = Options { dirs, source, context: Context::default, renderer };
    let link = Link::new(theirs.into()).expect("a link");
    let (mut agent, handle) = boot(link, &options, Crash::default()).await.expect("it begins");
    let listener = UnixListener::from_std(listener).expect("a listener");
    let (ending, flag) = watch::channel(false);
    let (opening, mut opened) = mpsc::channel(1);
    let api = tokio::spawn(mainstay_api::serve(listener, handle, opening, flag));
    opened.recv().await;
    agent.begin().expect("it begins");
    agent.run().await;
    let _ = ending.send(true);
    let _ = api.await;
}
