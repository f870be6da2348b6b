//! An agent against a keeper that is played by the test: killed at every step of its loop, and
//! followed by one that goes on.

mod keeper;

use keeper::Keeper;
use mainstay_agent::{
    Agent, Crash, End, Handle, Link, Options, Point, PrepareListeners, Renderer, boot,
};
use mainstay_config::Context;
use mainstay_core::{
    event::{Event, Kind},
    exit::{Asked, Exit},
    job::Phase,
    name::Name,
    node::{Refusal, Request},
    plan::ApiPlan,
    signal::Signal,
    task::{Bytes, TaskSpec},
};
use mainstay_import::PlanSource;
use mainstay_wire::{
    api::{Gone, JobStatus, ReloadError, Selection},
    run_dir::Dirs,
};
use std::{convert::Infallible, fs, path::PathBuf, time::Duration};

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
            renderer: Renderer::of_this_program(),
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
    if !runs_a_task(handle).await {
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

/// A task of the node itself, asked for until one agent has journaled it; whichever hears of its
/// end tells it.
async fn runs_a_task(handle: &Handle) -> bool {
    let spec = TaskSpec {
        exec: vec!["audit".to_owned()],
        input: Bytes(b"now".to_vec()),
        ..TaskSpec::default()
    };
    let (purpose, timeout) = ("audit".to_owned(), Duration::from_secs(60));
    let request = Request::RunTask { purpose, timeout, task: Box::new(spec) };
    let mut changes = handle.events().subscribe();
    let mut asked = false;
    loop {
        changes.mark_unchanged();
        let events = handle.events().after(0, usize::MAX).events;
        if events
            .iter()
            .any(|event| matches!(&event.kind, Kind::TaskEnded { task, .. } if task == "audit"))
        {
            return true;
        }
        if !std::mem::replace(&mut asked, true) {
            match handle.request(request.clone()).await {
                Ok(Ok(_) | Err(Refusal::TaskUnderWay)) => continue,
                Ok(Err(refusal)) => panic!("{refusal}"),
                Err(Gone) => return false,
            }
        }
        if changes.changed().await.is_err() {
            return false;
        }
    }
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
    let (mut agent, handle) = boot(link, &dir.options(), crash).await.ok()?;
    agent.begin().ok()?;
    Some((agent, handle))
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
            End::Over(over) => {
                let code = over.code;
                drop(agent);
                keeper.drain();
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
    let task = told.story.iter().find(|line| line.contains("TaskEnded")).expect("the node's task");
    assert!(task.contains("audit") && task.contains("[110, 111, 119]"), "{task}");
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
