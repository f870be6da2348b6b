//! An agent against a keeper that is played by the test: killed at every step of its loop, and
//! followed by one that goes on.

use mainstay_agent::{Agent, Crash, End, Handle, Link, Options, Point, PrepareListeners, boot};
use mainstay_config::Context;
use mainstay_core::{
    event::{Event, Kind},
    exit::{Asked, Exit},
    job::Phase,
    name::Name,
    node::Request,
    plan::ApiPlan,
    signal::Signal,
    task::TaskOutcome,
};
use mainstay_import::PlanSource;
use mainstay_wire::{
    api::{Gone, JobStatus, ReloadError, Selection},
    format::Format,
    frame::{self, FrameDecoder},
    link::{ExitRecord, HeldJob, LiveProcess, ToAgent, ToKeeper, TreeKind, Welcome},
    run_dir::Dirs,
    task::{TaskDone, TaskKey},
};
use std::{
    collections::BTreeMap,
    convert::Infallible,
    fs,
    io::{Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    thread::{self, JoinHandle},
    time::Duration,
};

const CONFIG: &str = r#"
[jobs.web]
exec = "web"

[jobs.flaky]
exec = "flaky"
restart = { on = "failure", delay = "0s" }

[jobs.hooked]
exec = "hooked"
stop = { signal = "SIGINT", exec = "drain" }

[jobs.old]
exec = "old"
"#;

/// What the configuration says later: `old` is gone, `fresh` is new.
fn later() -> String {
    CONFIG.replace("old", "fresh")
}

/// What a keeper holds over the deaths of agents.
#[derive(Default)]
struct World {
    run_dir: PathBuf,
    agent_restarts: u64,
    jobs: BTreeMap<Name, (u64, Option<u64>)>,
    records: Vec<ExitRecord>,
    next_record: u64,
    signals: Vec<(u64, Signal)>,
    next_token: u64,
    /// Every spawn, in order; a second one of the same incarnation would be a second process.
    spawned: Vec<(Name, u64)>,
    tasks: Vec<TaskKey>,
    heard: Vec<&'static str>,
    link: Option<UnixStream>,
    serving: Option<JoinHandle<()>>,
}

impl World {
    fn say(&mut self, message: &ToAgent) {
        if let Some(link) = &mut self.link {
            // A dead agent hears nothing; the next one is told.
            let _ = link.write_all(&frame::encode(message).expect("short"));
        }
    }

    fn hear(&mut self, message: ToKeeper) {
        match message {
            ToKeeper::Hello { .. } => self.welcome(),
            ToKeeper::Spawn(spawn) => self.spawn(spawn.job.clone(), spawn.incarnation),
            ToKeeper::Stop { job, incarnation, signal, .. } => {
                self.end(&job, incarnation, Exit::Signal { signal, oom: false }, Asked::Stop);
            }
            ToKeeper::Kill { job, incarnation } => {
                let exit = Exit::Signal { signal: Signal::KILL, oom: false };
                self.end(&job, incarnation, exit, Asked::Kill);
            }
            ToKeeper::RunTask(task) => {
                self.tasks.push(task.id.clone());
                let exit = Exit::Code { code: 0 };
                let outcome = TaskOutcome { exit, output: String::new(), truncated: false };
                self.say(&ToAgent::TaskDone(TaskDone { id: task.id, outcome }));
            }
            ToKeeper::TaskTaken { .. } => {}
            ToKeeper::Ack { record } => self.records.retain(|kept| kept.record != record),
            ToKeeper::Taken { token } => self.signals.retain(|(kept, _)| *kept != token),
            ToKeeper::Ready { .. } => self.heard.push("ready"),
            ToKeeper::Forget { job } => {
                let live = self.jobs.remove(&job).and_then(|(_, live)| live);
                assert_eq!(live, None, "{job} is forgotten and runs");
            }
            ToKeeper::UpdateSettings { .. } | ToKeeper::Rest { .. } => {}
            other => panic!("not expected: {other:?}"),
        }
    }

    fn welcome(&mut self) {
        let jobs = self.jobs.iter().map(|(job, (highest, live))| HeldJob {
            job: job.clone(),
            highest: *highest,
            live: live.map(|incarnation| LiveProcess {
                incarnation,
                pid: 100,
                tree: TreeKind::Group,
                unenforced: Vec::new(),
                spawned: true,
                notified: Default::default(),
                settings: None,
            }),
            open: live.is_some(),
        });
        let welcome = Welcome {
            format: Format::OURS,
            run: "0123456789abcdef".into(),
            run_dir: self.run_dir.clone(),
            state_dir: PathBuf::new(),
            agent_restarts: self.agent_restarts,
            upgraded: Vec::new(),
            jobs: jobs.collect(),
            records: self.records.clone(),
            signals: self.signals.clone(),
            asked: Vec::new(),
        };
        self.say(&ToAgent::Welcome(Box::new(welcome)));
    }

    fn spawn(&mut self, job: Name, incarnation: u64) {
        let (highest, live) = self.jobs.entry(job.clone()).or_default();
        if incarnation <= *highest {
            return;
        }
        assert!(live.is_none(), "{job} has a live incarnation already");
        (*highest, *live) = (incarnation, Some(incarnation));
        self.spawned.push((job.clone(), incarnation));
        let (tree, unenforced) = (TreeKind::Group, Vec::new());
        self.say(&ToAgent::Spawned { job, incarnation, pid: 100, tree, unenforced });
    }

    fn end(&mut self, job: &Name, incarnation: u64, exit: Exit, asked: Asked) {
        let Some((_, live)) = self.jobs.get_mut(job) else { return };
        if *live != Some(incarnation) {
            return;
        }
        *live = None;
        self.next_record += 1;
        let record = ExitRecord {
            record: self.next_record,
            job: job.clone(),
            incarnation,
            exit,
            asked,
            fenced: false,
            ended: 0,
            cpu_user_us: 0,
            cpu_system_us: 0,
            max_rss_kib: 0,
        };
        self.records.push(record.clone());
        self.say(&ToAgent::Exited(record));
    }

    fn signal(&mut self, signal: Signal) {
        self.next_token += 1;
        self.signals.push((self.next_token, signal));
        self.say(&ToAgent::Signalled { token: self.next_token, signal });
    }
}

#[derive(Clone, Default)]
struct Keeper(Arc<Mutex<World>>);

impl Keeper {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("the keeper lives")
    }

    /// A link to a new agent, served by a thread until the agent is gone.
    fn link(&self) -> OwnedFd {
        self.hear_out();
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        let keeper = self.clone();
        let link = ours.try_clone().expect("a descriptor");
        let serving = thread::spawn(move || keeper.serve(ours));
        let mut world = self.world();
        (world.link, world.serving) = (Some(link), Some(serving));
        theirs.into()
    }

    /// Takes in all that an agent has said before it went away.
    fn hear_out(&self) {
        let serving = self.world().serving.take();
        if let Some(serving) = serving {
            serving.join().expect("the keeper lives");
        }
    }

    fn serve(&self, mut link: UnixStream) {
        let mut decoder = FrameDecoder::default();
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = link.read(&mut bytes) {
            decoder.push(&bytes[..length]);
            while let Ok(Some(message)) = decoder.next() {
                self.world().hear(message);
            }
        }
    }
}

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir =
            std::env::temp_dir().join(format!("mainstay-agent-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("temp dir");
        fs::write(dir.join("mainstay.toml"), CONFIG).expect("a configuration");
        Dir(dir)
    }

    fn options(&self) -> Options {
        Options {
            dirs: Dirs { run: self.0.clone(), state: self.0.join("state") },
            source: PlanSource::Config(Some(self.0.join("mainstay.toml"))),
            context: Context::default,
        }
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A client that follows the events over the deaths of agents.
#[derive(Default)]
struct Client {
    seen: Vec<Event>,
}

impl Client {
    fn read(&mut self, handle: &Handle) {
        let cursor = self.seen.last().map_or(0, |event| event.seq);
        let batch = handle.events().after(cursor, usize::MAX);
        assert!(!batch.gap, "what was seen is always known to the next agent");
        self.seen.extend(batch.events.iter().map(|event| Event::clone(event)));
    }

    /// What happened, without what the death of an agent adds.
    fn story(&self) -> Vec<String> {
        let line = |event: &Event| format!("{} {:?}", event.source.as_str(), event.kind);
        let mut lines: Vec<String> = self
            .seen
            .iter()
            .filter(|event| !matches!(event.kind, Kind::AgentRestarted { .. }))
            .map(line)
            .collect();
        // Jobs are independent: their order among each other is not part of the story.
        lines.sort();
        lines
    }
}

struct Told {
    story: Vec<String>,
    spawned: Vec<(Name, u64)>,
    code: i32,
    crashed: bool,
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// The plans of these tests open none.
struct NoListeners;

impl PrepareListeners for NoListeners {
    type Error = Infallible;

    async fn prepare(&self, _: &ApiPlan) -> Result<(), Infallible> {
        Ok(())
    }

    fn give_up(&self) {}
}

async fn one(handle: &Handle, job: &str) -> Result<Option<JobStatus>, Gone> {
    Ok(handle.jobs(Selection::Named(job.to_owned())).await?.pop())
}

/// Waits until a job is as wanted; false if the agent is gone.
async fn until(handle: &Handle, job: &str, wanted: impl Fn(Phase, u64) -> bool) -> bool {
    let mut changes = handle.events().subscribe();
    loop {
        changes.mark_unchanged();
        match one(handle, job).await {
            Ok(Some(job)) if wanted(job.state, job.incarnation) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
        if changes.changed().await.is_err() {
            return false;
        }
    }
}

/// Waits until a job is no longer part of the plan; false if the agent is gone.
async fn gone(handle: &Handle, job: &str) -> bool {
    let mut changes = handle.events().subscribe();
    loop {
        changes.mark_unchanged();
        match one(handle, job).await {
            Ok(None) => return true,
            Ok(Some(_)) if changes.changed().await.is_ok() => {}
            Ok(Some(_)) | Err(_) => return false,
        }
    }
}

/// The life of a node: a failure, a stop with a hook, a reload, a signal that ends everything.
async fn live(keeper: &Keeper, dir: &Dir, handle: &Handle) -> bool {
    if !until(handle, "flaky", |phase, _| phase == Phase::Running).await {
        return false;
    }
    let exit = Exit::Code { code: 3 };
    keeper.world().end(&name("flaky"), 1, exit, Asked::None);
    if !until(handle, "flaky", |phase, run| phase == Phase::Running && run == 2).await {
        return false;
    }
    if !changes_environment(dir, handle).await {
        return false;
    }
    let stop = Request::Stop { job: name("hooked") };
    if handle.request(stop).await.is_err() {
        return false;
    }
    if !until(handle, "hooked", |phase, _| phase == Phase::Stopped).await {
        return false;
    }
    if matches!(one(handle, "fresh").await, Ok(None)) {
        fs::write(dir.0.join("mainstay.toml"), later()).expect("a configuration");
        match handle.reload(&NoListeners, Duration::ZERO).await {
            Ok(_) | Err(ReloadError::Refused(_)) => {}
            Err(_) => return false,
        }
    }
    if !until(handle, "fresh", |phase, _| phase == Phase::Running).await
        || !gone(handle, "old").await
    {
        return false;
    }
    if keeper.world().next_token == 0 {
        keeper.world().signal(Signal::TERM);
    }
    // The rest happens by itself.
    std::future::pending().await
}

/// What a user was told is taken, every later agent has.
async fn changes_environment(dir: &Dir, handle: &Handle) -> bool {
    let told = dir.0.join("told");
    if told.exists() {
        return match handle.environ().await {
            Ok(environ) => {
                assert_eq!(environ.iter().collect::<Vec<_>>(), [("A", Some("1")), ("B", None)]);
                true
            }
            Err(_) => false,
        };
    }
    let changes = [("A".to_owned(), Some("1".to_owned())), ("B".to_owned(), None)].into();
    let taken = handle.request(Request::Environ { changes }).await;
    if taken.is_ok() {
        fs::write(told, "").expect("our own directory");
    }
    taken.is_ok()
}

async fn begin(keeper: &Keeper, dir: &Dir, crash: Crash) -> Option<(Agent, Handle)> {
    keeper.world().run_dir.clone_from(&dir.0);
    let link = Link::new(keeper.link()).expect("a socket");
    boot(link, &dir.options(), crash).await.ok()
}

async fn tell(name: &str, crash: Option<(Point, u64)>) -> Told {
    let (keeper, dir, mut client) = (Keeper::default(), Dir::new(name), Client::default());
    let mut plan = crash.map(|(point, count)| Crash::gently_at(point, count));
    let mut crashed = false;
    loop {
        let crash = plan.take().unwrap_or_default();
        let Some((mut agent, handle)) = begin(&keeper, &dir, crash).await else {
            crashed = true;
            keeper.world().agent_restarts += 1;
            continue;
        };
        let end = tokio::select! {
            end = agent.run() => end,
            true = live(&keeper, &dir, &handle) => unreachable!("it never returns true"),
        };
        client.read(&handle);
        match end {
            End::Crashed(_) => crashed = true,
            End::Over { code } => {
                drop(agent);
                keeper.hear_out();
                let world = keeper.world();
                assert!(world.signals.is_empty() && world.records.is_empty(), "all acknowledged");
                assert!(world.jobs.values().all(|(_, live)| live.is_none()), "nothing lives");
                assert!(!world.jobs.contains_key("old"), "the keeper was told to forget it");
                let (story, spawned) = (client.story(), world.spawned.clone());
                for (at, event) in client.seen.iter().enumerate() {
                    assert_eq!(event.seq, at as u64 + 1, "numbered without a hole");
                }
                return Told { story, spawned, code, crashed };
            }
            End::Link(error) => panic!("{error}"),
        }
        keeper.world().agent_restarts += 1;
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let limited = async { tokio::time::timeout(Duration::from_secs(20), future).await };
    runtime.expect("a runtime").block_on(limited).expect("in time")
}

#[test]
fn an_undisturbed_life_reads_as_expected() {
    let told = block_on(tell("whole", None));
    assert_eq!(told.code, 0);
    let spawned: Vec<String> =
        told.spawned.iter().map(|(job, run)| format!("{job}-{run}")).collect();
    assert_eq!(spawned, ["web-1", "flaky-1", "hooked-1", "old-1", "flaky-2", "fresh-1"]);
    let failures = told.story.iter().filter(|line| line.contains("ExitFailed")).count();
    assert!(failures >= 1, "{:#?}", told.story);
}

#[test]
fn an_agent_killed_at_any_step_loses_and_repeats_nothing() {
    let whole = block_on(tell("reference", None));
    for point in Point::ALL {
        for count in 1.. {
            let case = format!("{}-{count}", point.name());
            let told = block_on(tell(&case, Some((point, count))));
            assert_eq!(told.story, whole.story, "killed at {case}");
            assert_eq!(told.spawned, whole.spawned, "killed at {case}");
            assert_eq!(told.code, whole.code, "killed at {case}");
            if !told.crashed {
                assert!(count > 8, "{case}: the life is longer than that");
                break;
            }
        }
    }
}

#[test]
fn an_agent_whose_keeper_hangs_up_says_so() {
    block_on(async {
        let (keeper, dir) = (Keeper::default(), Dir::new("gone"));
        let (mut agent, _handle) = begin(&keeper, &dir, Crash::default()).await.expect("it begins");
        let link = keeper.world().link.take().expect("a link");
        link.shutdown(std::net::Shutdown::Both).expect("hung up");
        let end = agent.run().await;
        assert!(matches!(end, End::Link(mainstay_agent::LinkError::Closed)), "{end:?}");
    });
}

#[test]
fn an_edited_file_changes_nothing_for_the_next_agent() {
    block_on(async {
        let (keeper, dir) = (Keeper::default(), Dir::new("edited"));
        drop(begin(&keeper, &dir, Crash::default()).await.expect("it begins"));
        fs::write(dir.0.join("mainstay.toml"), "nonsense").expect("edited");
        keeper.world().agent_restarts += 1;
        let (mut agent, handle) = begin(&keeper, &dir, Crash::default()).await.expect("it goes on");
        tokio::select! {
            end = agent.run() => panic!("{end:?}"),
            there = until(&handle, "web", |phase, run| phase == Phase::Running && run == 1) => {
                assert!(there);
            }
        }
    });
}

#[test]
fn a_plan_that_cannot_be_written_is_in_the_journal_until_it_can() {
    block_on(async {
        let (keeper, dir) = (Keeper::default(), Dir::new("unwritten"));
        let obstacle = dir.0.join("plan.json");
        fs::create_dir_all(obstacle.join("full")).expect("in the way");
        let (mut agent, handle) = begin(&keeper, &dir, Crash::default()).await.expect("it begins");
        tokio::select! {
            end = agent.run() => panic!("{end:?}"),
            stopped = async {
                let stop = Request::Stop { job: name("web") };
                until(&handle, "web", |phase, _| phase == Phase::Running).await
                    && handle.request(stop).await.is_ok()
                    && until(&handle, "web", |phase, _| phase == Phase::Stopped).await
            } => assert!(stopped),
        }
        let mut client = Client::default();
        client.read(&handle);
        drop(agent);

        fs::write(dir.0.join("mainstay.toml"), "nonsense").expect("edited");
        keeper.world().agent_restarts += 1;
        let (mut agent, handle) = begin(&keeper, &dir, Crash::default()).await.expect("it goes on");
        client.read(&handle);
        assert!(client.seen.iter().zip(1..).all(|(event, seq)| event.seq == seq));
        let web = one(&handle, "web");
        tokio::select! {
            end = agent.run() => panic!("{end:?}"),
            web = web => {
                let web = web.expect("an answer").expect("a job");
                assert_eq!((web.state, web.incarnation), (Phase::Stopped, 1));
            }
        }

        fs::remove_dir_all(&obstacle).expect("out of the way");
        let written = async {
            while !obstacle.is_file() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            end = agent.run() => panic!("{end:?}"),
            () = written => {}
        }
    });
}

#[test]
fn an_unknown_user_is_an_end_like_any_other() {
    block_on(async {
        let (keeper, dir) = (Keeper::default(), Dir::new("user"));
        let text = "[jobs.web]\nexec = 'web'\nuser = 'no-such-user'\nrestart = 'never'\n\
                    [jobs.other]\nexec = 'other'\n";
        fs::write(dir.0.join("mainstay.toml"), text).expect("a configuration");
        let (mut agent, handle) = begin(&keeper, &dir, Crash::default()).await.expect("it begins");
        tokio::select! {
            end = agent.run() => panic!("{end:?}"),
            there = until(&handle, "web", |phase, _| matches!(phase, Phase::Exited | Phase::Fatal)) => {
                assert!(there);
            }
        }
        let told = handle.events().after(0, usize::MAX).events;
        let text = told.iter().map(|event| format!("{:?}", event.kind)).collect::<String>();
        assert!(text.contains("unknown user 'no-such-user'"), "{text}");
    });
}
