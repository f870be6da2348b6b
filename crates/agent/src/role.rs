//! The process `mainstay __agent`: from the inherited descriptors to an exit code.

use crate::{
    agent::{Agent, End, Over},
    boot::{BootError, boot},
    crash::Crash,
    handle::Handle,
    inputs::link::{Link, LinkError},
    reload::options::Options,
    trace,
};
use mainstay_config::Context;
use mainstay_import::PlanSource;
use mainstay_rollout::renderer::Renderer;
use mainstay_sys::{
    cgroup, clock, fd, latency, memory, proc,
    sweep::{DeadRun, Leader},
};
use mainstay_wire::{
    link::{API_FD, LINK_FD, ToKeeper},
    run_dir::{self, Dirs, NamedRun},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{PidfdFlags, getppid, pidfd_open},
};
use std::{
    convert::Infallible,
    io, mem,
    os::{fd::OwnedFd, unix::net},
    path::Path,
    time::Duration,
};
use tokio::{
    net::UnixListener,
    runtime,
    sync::{mpsc, watch},
    time::{Instant, sleep_until, timeout},
};

const CONFIG: i32 = 78;
const FAILED: i32 = 1;
/// Clients get so long to read the last events.
const FAREWELL: Duration = Duration::from_millis(300);
/// Service discovery gets so long to forget jobs that ended by themselves.
const WITHDRAWAL: Duration = Duration::from_secs(1);
/// Those who followed the events of a dead agent get so long to come back to this one, should it
/// find nothing left to do.
const COME_BACK: Duration = Duration::from_millis(300);
/// The keeper gets so long to end the run after it was told to.
const END_OF_RUN: Duration = Duration::from_secs(10);

/// The first job starts so much later at most, whatever listeners have to wait for.
const OPENING: Duration = Duration::from_millis(500);

/// Held by whoever is to open a listener: dropped once it is open, or has been refused once.
type Opening = mpsc::Sender<Infallible>;

/// Runs the agent. `serve` is the API: it gets the listening socket, whom to ask, what it holds until
/// each of its listeners has been tried, and a flag that becomes true when the run is over; it returns
/// when its clients have been served.
pub fn role<F, S>(dirs: Dirs, source: PlanSource, context: fn() -> Context, serve: F) -> i32
where
    F: FnOnce(UnixListener, Handle, Opening, watch::Receiver<bool>) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    memory::be_frugal();
    latency::ask_for_short_slices();
    latency::go_first();
    trace::init();
    let renderer = Renderer::of_this_program();
    let options = &Options { dirs, source, context, renderer };
    let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed("cannot start the runtime", &error),
    };
    // Before any job takes the processes that they count as.
    let missing = mainstay_pool::start();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        tracing::warn!("no thread can be had for: {missing}; it is tried again when it is needed");
    }
    runtime.block_on(live(options, serve))
}

async fn live<F, S>(options: &Options, serve: F) -> i32
where
    F: FnOnce(UnixListener, Handle, Opening, watch::Receiver<bool>) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    let keeper = match getppid().map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
        Some(Ok(pidfd)) => Some(pidfd),
        Some(Err(_)) | None => None,
    };
    let began = clock::boottime();
    let (link, listener) = match inherited() {
        Ok(both) => both,
        Err(error) => return failed("the agent is started by the keeper only", &error),
    };
    let (mut agent, handle) = match boot(link, options, Crash::from_env()).await {
        Ok(both) => both,
        Err(BootError::Config(invalid)) => {
            eprintln!("mainstay: {}", invalid.0.trim_end());
            return CONFIG;
        }
        Err(BootError::Link(error)) => return lost(options, keeper.as_ref(), began, &error),
        Err(error) => return failed("cannot begin", &error),
    };
    let begun = Instant::now();
    let (ending, flag) = watch::channel(false);
    let user_metrics = handle.user_metrics().clone();
    let (opening, mut opened) = mpsc::channel(1);
    let api = tokio::spawn(serve(listener, handle, opening, flag));
    if agent.begins_run() {
        // What jobs are promised is open before the first of them starts.
        let _ = timeout(OPENING, opened.recv()).await;
    }
    let end = match agent.begin() {
        Ok(()) => agent.run().await,
        Err(end) => end,
    };
    user_metrics.flush();
    match end {
        End::Over(over) => {
            if agent.is_successor() {
                sleep_until(begun + COME_BACK).await;
            }
            let _ = ending.send(true);
            let _ = timeout(FAREWELL, api).await;
            let _ = timeout(WITHDRAWAL, agent.withdrawn()).await;
            agent.left_fleet().await;
            say_over(agent, over).await
        }
        End::Link(error) => lost(options, keeper.as_ref(), agent.last_awake(), &error),
        End::Crashed(crashed) => failed("ended", &crashed),
    }
}

fn inherited() -> io::Result<(Link, UnixListener)> {
    let link = fd::take(LINK_FD)?;
    // To the keeper a closed link is a broken agent. It stays open until this process has ended,
    // so that what is told is its exit code.
    mem::forget(link.try_clone()?);
    let link = Link::new(link)?;
    let listener = net::UnixListener::from(fd::take(API_FD)?);
    listener.set_nonblocking(true)?;
    Ok((link, UnixListener::from_std(listener)?))
}

async fn say_over(agent: Agent, Over { code, again }: Over) -> i32 {
    let mut link = agent.into_link();
    link.push(&ToKeeper::Exit { code, again }).expect("a number fits a frame");
    let closed = async {
        if let Err(error) = link.drain().await {
            return error;
        }
        loop {
            if let Err(error) = link.receive().await {
                return error;
            }
        }
    };
    match timeout(END_OF_RUN, closed).await {
        Ok(LinkError::Closed) => 0,
        Ok(error) => failed("the end of the run was not confirmed", &error),
        Err(_) => {
            tracing::error!("the keeper was told to end the run and did not");
            FAILED
        }
    }
}

/// The link is gone. If that is because the keeper is dead, nobody else is left to end its jobs.
/// `alive_at`: when it was certainly alive.
fn lost(options: &Options, keeper: Option<&OwnedFd>, alive_at: u64, error: &LinkError) -> i32 {
    let dead = match error {
        LinkError::Closed => keeper.is_none_or(is_dead),
        // One that dies with something unread resets the link.
        LinkError::Io(_) => keeper.is_some_and(is_dead),
        LinkError::Frame(_) => false,
    };
    if dead {
        tracing::error!("the keeper is dead: killing what it left");
        if let Some(run) = dead_run(&options.dirs.run, alive_at) {
            run.kill_and_leave();
        }
        return FAILED;
    }
    failed("the link is of no use", error)
}

/// What the run directory tells of the run whose keeper is dead.
fn dead_run(run_dir: &Path, alive_at: u64) -> Option<DeadRun> {
    let NamedRun { run, boot, cgroup } = NamedRun::read(run_dir)?;
    let leaders = run_dir::leaders(run_dir).into_iter();
    let leaders = leaders.map(|(pid, begun_by)| Leader { pid, begun_by }).collect();
    // We are one of it.
    let boot = boot.unwrap_or_else(proc::boot_id);
    let cgroup = cgroup.or_else(|| cgroup::find(&run));
    Some(DeadRun { run, boot, cgroup, leaders, alive_at })
}

/// Its sockets close a moment before it counts as dead.
fn is_dead(keeper: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(keeper, PollFlags::IN)];
    let patience = Timespec { tv_sec: 1, tv_nsec: 0 };
    matches!(poll(&mut watched, Some(&patience)), Ok(1))
}

fn failed(what: &str, error: &dyn std::error::Error) -> i32 {
    let mut text = format!("{what}: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    tracing::error!("{text}");
    FAILED
}
