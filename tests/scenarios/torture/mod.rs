//! Many jobs write numbered lines, some of them crash, and meanwhile the agent is killed, the
//! binary is upgraded, every socket is abused and the machine fails. Nothing of it may be seen in
//! the jobs, in their logs or in the events, but what a full disk has cost, to the line.
//!
//! The seed decides what is done and when, so a run that failed can be had again:
//! `scripts/torture --seed N`.

mod abuse;
mod machine;
mod planted;
mod schedule;
mod verdict;

use abuse::Abuse;
use machine::{CHECKED, Machine};
use mainstay_tests::{Node, Random, Scratch, Setup, binary, signal, until, within};
use rustix::process::Signal;
use schedule::{Action, Schedule};
use std::{
    fmt::Write,
    path::PathBuf,
    process::Child,
    thread,
    time::{Duration, Instant},
};
use verdict::{Evidence, Verdict};

/// How much there is of everything.
#[derive(Debug, Clone, Copy)]
struct Scale {
    seed: u64,
    jobs: u64,
    kills: u64,
    upgrades: u64,
    faults: u64,
}

#[test]
fn nothing_is_lost_or_repeated_whatever_is_killed_upgraded_and_abused() {
    let seed = setting("SEED", u64::from(std::process::id()));
    torture(Scale { seed, jobs: 40, kills: 30, upgrades: 4, faults: 0 });
}

#[test]
fn nothing_is_lost_or_repeated_whatever_the_machine_lacks() {
    mainstay_tests::needs_root();
    let seed = setting("SEED", u64::from(std::process::id()));
    torture(Scale { seed, jobs: 20, kills: 6, upgrades: 2, faults: 18 });
}

/// `scripts/torture`
#[test]
#[ignore = "takes minutes: run it with scripts/torture"]
fn the_long_form() {
    torture(Scale {
        seed: setting("SEED", u64::from(std::process::id())),
        jobs: setting("JOBS", 100),
        kills: setting("KILLS", 200),
        upgrades: setting("UPGRADES", 20),
        faults: setting("FAULTS", 0),
    });
}

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(format!("MAINSTAY_TORTURE_{name}")) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")),
        Err(_) => default,
    }
}

/// The run is over so long after it was asked for at most: `stop_timeout` and a second.
const STOPPED: Duration = Duration::from_secs(21);

fn torture(scale: Scale) {
    println!("{scale:?}: the same again with scripts/torture --seed {}", scale.seed);
    let begun = Instant::now();
    let notes = Scratch::new();
    let jobs = jobs(scale);
    let machine = (scale.faults > 0).then(|| Machine::new(notes.path()));
    let faults = machine.as_ref().map(Machine::faults).unwrap_or_default();
    let checked = machine.as_ref().map(|machine| machine.checked_jobs());
    let setup = Setup::config(config(&jobs, notes.path()) + &checked.unwrap_or_default());
    let setup = machine.iter().fold(setup, |setup, machine| machine.under(setup));
    let mut node = setup.start();
    let mut events = node.events();
    let healthy = |event: &serde_json::Value| event["event"] == "healthy";
    for job in &jobs {
        let up = |event: &serde_json::Value| healthy(event) && event["source"] == *job.name;
        while !events.seen().iter().any(up) {
            events.wait("all jobs run", healthy);
        }
    }
    let steady = jobs.iter().filter(|job| !job.crashes);
    let pids: Vec<(String, u32)> =
        steady.map(|job| (job.name.clone(), node.running(&job.name))).collect();
    let abuse = Abuse::start(&node, &jobs, scale.seed);
    let schedule = Schedule::new(scale, &faults);
    let upgrades = carry_out(&schedule, &node, machine.as_ref(), scale.seed);
    let abused = abuse.stop();

    if machine.is_some() {
        CHECKED.iter().for_each(|job| drop(node.until_health(job, "healthy")));
    }

    // What was said before this mark has reached whoever follows the events.
    signal(node.keeper(), Signal::HUP);
    events.wait("the mark", |event| event["event"] == "signal");
    let pids: Vec<(String, u32, Option<u32>)> =
        pids.into_iter().map(|(name, pid)| (name.clone(), pid, node.pid(&name))).collect();
    let dropped = node.status()["keeper"]["forward_dropped"].as_u64().unwrap_or(0);
    // Seen from here also when the node's own view of its disks is gone.
    let logs = std::fs::File::open(node.state_dir().join("logs")).expect("there are logs");
    let asked = Instant::now();
    node.must(&["shutdown"]);
    assert_eq!(node.wait().code(), Some(0));
    assert!(asked.elapsed() < STOPPED, "the end took {:?}", asked.elapsed());
    let verdict = Verdict::find(&Evidence {
        jobs: &jobs,
        events: events.to_end(),
        logs: format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&logs)).into(),
        notes: notes.path(),
        pids: &pids,
        stdout: node.stdout(),
        dropped,
    });
    node.leaves_nothing();
    assert_eq!(verdict.upgrades, upgrades, "each upgrade is told once");
    println!(
        "{} jobs, {} agents killed, {upgrades} upgrades, {} faults, {abused} abused connections: \
         {} events ({} more lost with {} damaged journals), {} exits, {} starts not possible, {} lines (of them {} in archives that a full \
         disk has cleared away), {} more counted as not written, in {:.0?}",
        jobs.len(),
        schedule.kills(),
        scale.faults,
        verdict.events,
        verdict.lost_events,
        verdict.lost_journals,
        verdict.exits,
        verdict.not_started,
        verdict.lines,
        verdict.cleared,
        verdict.counted_gaps,
        begun.elapsed()
    );
}

#[derive(Debug)]
struct Job {
    name: String,
    crashes: bool,
    compress: bool,
    /// A fault may keep it from being started, and clear away its archives.
    under_faults: bool,
}

/// A quarter of them crashes, another quarter has its archives compressed.
fn jobs(scale: Scale) -> Vec<Job> {
    (0..scale.jobs)
        .map(|index| Job {
            name: format!("job{index}"),
            crashes: index % 4 == 0,
            compress: index % 4 == 1,
            under_faults: scale.faults > 0,
        })
        .collect()
}

fn config(jobs: &[Job], notes: &std::path::Path) -> String {
    let mut text = "[node]\nexit = \"never\"\nstop_timeout = \"20s\"\n".to_owned();
    let (writer, notes) = (env!("CARGO_BIN_EXE_mainstay-test-writer"), notes.display());
    for Job { name, crashes, compress, under_faults } in jobs {
        let kind = if *crashes { "crashes" } else { "steady" };
        let delay = if *under_faults { "100ms" } else { "0s" };
        write!(
            text,
            r#"
            [jobs.{name}]
            exec = ["{writer}", "{notes}", "{name}", "100", "{kind}"]
            restart = {{ on = "any", delay = "{delay}", max_delay = "1s" }}
            log = {{ keep = {{ size = "16K", files = 10000, compress = {compress} }} }}
            "#
        )
        .expect("memory");
    }
    text
}

/// Does what the schedule says; how many upgrades there were.
fn carry_out(schedule: &Schedule, node: &Node, machine: Option<&Machine>, seed: u64) -> u64 {
    let copies: Vec<PathBuf> = (0..schedule.copies())
        .map(|number| {
            let copy = node.path().join(format!("mainstay-{number}"));
            std::fs::copy(binary(), &copy).expect("there is room for a copy");
            copy
        })
        .collect();
    let mut random = Random::new(seed);
    let mut under_way: Option<UnderWay> = None;
    let mut upgrades = 0;
    for (pause, action) in schedule.actions() {
        // When it happens is part of what is tried out.
        thread::sleep(*pause);
        match action {
            Action::KillAgent => kill_agent(node, *pause),
            Action::Upgrade { copy } => {
                finish(&mut under_way, node);
                let mut args = vec!["upgrade".to_owned()];
                args.extend(copy.map(|number| copies[number].display().to_string()));
                let words: Vec<&str> = args.iter().map(String::as_str).collect();
                let child = node.command(&words).spawn().expect("the binary can be started");
                under_way = Some(UnderWay { child, args, may_wait: machine.is_some() });
                upgrades += 1;
            }
            Action::Fault { fault, lasts, kill } => {
                finish(&mut under_way, node);
                answers(node);
                println!("{fault} for {lasts:?}{}", if *kill { ", agent killed" } else { "" });
                let trouble = machine.expect("faults need one").begin(*fault, node, &mut random);
                thread::sleep(*lasts / 2);
                match (*kill, node.try_agent()) {
                    (true, Some(agent)) => signal(agent, Signal::KILL),
                    (true, None) => {}
                    // A command that runs outside of what is used up is answered meanwhile.
                    (false, _) => {
                        let asked = node.ask(&["status"]);
                        let (code, stderr) = (asked.status.code(), asked.stderr);
                        let stderr = String::from_utf8_lossy(&stderr);
                        assert!(matches!(code, Some(0 | 3)), "{fault}: status: {code:?}: {stderr}");
                    }
                }
                thread::sleep(*lasts / 2);
                trouble.judge(node);
                drop(trouble);
                answers(node);
            }
        }
    }
    finish(&mut under_way, node);
    answers(node);
    upgrades
}

fn kill_agent(node: &Node, pause: Duration) {
    if node.try_agent().is_none() {
        // The keeper holds the next one back. It gets its time, too.
        let _ = node.agent();
        thread::sleep(pause);
    }
    signal(node.agent(), Signal::KILL);
}

fn answers(node: &Node) {
    within(Duration::from_secs(60), "an agent is there again", || {
        node.ask(&["status"]).status.code().filter(|code| *code != 4)
    });
}

/// An upgrade that goes on while agents are killed.
struct UnderWay {
    child: Child,
    args: Vec<String>,
    /// A disk may be too slow for it, which is told, and it is asked for again.
    may_wait: bool,
}

/// It succeeds.
fn finish(upgrade: &mut Option<UnderWay>, node: &Node) {
    let Some(UnderWay { mut child, args, may_wait }) = upgrade.take() else { return };
    let status = until("the upgrade is done", || child.try_wait().expect("our own child"));
    if !status.success() && may_wait {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        within(Duration::from_secs(60), "the upgrade is done", || {
            node.ask(&args).status.success().then_some(())
        });
    } else {
        assert!(status.success(), "the upgrade failed: {status}");
    }
}
