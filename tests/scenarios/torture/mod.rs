//! Many jobs write numbered lines, some of them crash, and meanwhile the agent is killed, the
//! binary is upgraded and every socket is abused. Nothing of it may be seen in the jobs, in their
//! logs or in the events.
//!
//! The seed decides what is done and when, so a run that failed can be had again:
//! `scripts/torture --seed N`.

mod abuse;
mod schedule;
mod verdict;

use abuse::Abuse;
use mainstay_tests::{Node, Setup, binary, signal, until, within};
use rustix::process::Signal;
use schedule::{Deed, Schedule};
use std::{
    fmt::Write,
    path::PathBuf,
    process::Child,
    thread,
    time::{Duration, Instant},
};
use verdict::Verdict;

/// How much there is of everything.
#[derive(Debug, Clone, Copy)]
struct Scale {
    seed: u64,
    jobs: u64,
    kills: u64,
    upgrades: u64,
}

#[test]
fn nothing_is_lost_or_repeated_whatever_is_killed_upgraded_and_abused() {
    let seed = u64::from(std::process::id());
    torture(Scale { seed: setting("SEED", seed), jobs: 40, kills: 30, upgrades: 4 });
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
    });
}

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(format!("MAINSTAY_TORTURE_{name}")) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")),
        Err(_) => default,
    }
}

fn torture(scale: Scale) {
    println!("{scale:?}: the same again with scripts/torture --seed {}", scale.seed);
    let begun = Instant::now();
    let notes = mainstay_tests::Scratch::new();
    let jobs = jobs(scale);
    let mut node = Setup::config(config(&jobs, notes.path())).start();
    let mut events = node.events();
    let mut pids = Vec::new();
    let healthy = |event: &serde_json::Value| event["event"] == "healthy";
    for job in &jobs {
        let up = |event: &serde_json::Value| healthy(event) && event["source"] == *job.name;
        while !events.seen().iter().any(up) {
            events.wait("all jobs run", healthy);
        }
    }
    for job in jobs.iter().filter(|job| !job.crashes) {
        pids.push((job.name.clone(), node.running(&job.name)));
    }
    let abuse = Abuse::start(&node, &jobs, scale.seed);
    let upgrades = carry_out(&Schedule::new(scale), &node);
    let abused = abuse.stop();

    // What was said before this mark has reached whoever follows the events.
    signal(node.keeper(), Signal::HUP);
    events.wait("the mark", |event| event["event"] == "signal");
    for (name, pid) in &pids {
        assert_eq!(node.pid(name), Some(*pid), "{name} was disturbed");
    }
    let dropped = node.status()["keeper"]["forward_dropped"].as_u64();
    node.must(&["shutdown"]);
    assert_eq!(node.wait().code(), Some(0));
    let verdict = Verdict::find(&jobs, events.to_end(), &node, notes.path());
    assert_eq!(node.processes(), [0; 0], "something is left");
    verdict.check_forwarded(&jobs, &node, dropped.unwrap_or(0));
    assert_eq!(verdict.upgrades, upgrades, "each upgrade is told once");
    println!(
        "{} jobs, {} agents killed, {} upgrades, {abused} abused connections: {} events, \
         {} exits, {} lines, in {:.0?}",
        jobs.len(),
        scale.kills,
        upgrades,
        verdict.events,
        verdict.exits,
        verdict.lines,
        begun.elapsed()
    );
}

#[derive(Debug)]
struct Job {
    name: String,
    crashes: bool,
    compress: bool,
}

/// A quarter of them crashes, another quarter has its archives compressed.
fn jobs(scale: Scale) -> Vec<Job> {
    (0..scale.jobs)
        .map(|index| Job {
            name: format!("job{index}"),
            crashes: index % 4 == 0,
            compress: index % 4 == 1,
        })
        .collect()
}

fn config(jobs: &[Job], notes: &std::path::Path) -> String {
    let mut text = "[node]\nexit = \"never\"\nstop_timeout = \"20s\"\n".to_owned();
    let (writer, notes) = (env!("CARGO_BIN_EXE_mainstay-test-writer"), notes.display());
    for Job { name, crashes, compress } in jobs {
        let kind = if *crashes { "crashes" } else { "steady" };
        write!(
            text,
            r#"
            [jobs.{name}]
            exec = ["{writer}", "{notes}", "{name}", "100", "{kind}"]
            restart = {{ on = "any", delay = "0s" }}
            log = {{ keep = {{ size = "16K", files = 10000, compress = {compress} }} }}
            "#
        )
        .expect("memory");
    }
    text
}

/// Does what the schedule says; how many upgrades there were.
fn carry_out(schedule: &Schedule, node: &Node) -> u64 {
    let copies: Vec<PathBuf> = (0..schedule.copies())
        .map(|number| {
            let copy = node.path().join(format!("mainstay-{number}"));
            std::fs::copy(binary(), &copy).expect("there is room for a copy");
            copy
        })
        .collect();
    let mut under_way: Option<Child> = None;
    let mut upgrades = 0;
    for (pause, deed) in schedule.deeds() {
        // When it happens is part of what is tried out.
        thread::sleep(*pause);
        match deed {
            Deed::KillAgent => {
                if node.try_agent().is_none() {
                    // The keeper holds the next one back. It gets its time, too.
                    let _ = node.agent();
                    thread::sleep(*pause);
                }
                signal(node.agent(), Signal::KILL);
            }
            Deed::Upgrade { copy } => {
                finish(&mut under_way);
                let mut args = vec!["upgrade".to_owned()];
                args.extend(copy.map(|number| copies[number].display().to_string()));
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                under_way = Some(node.command(&args).spawn().expect("the binary can be started"));
                upgrades += 1;
            }
        }
    }
    finish(&mut under_way);
    within(Duration::from_secs(60), "an agent is there again", || {
        node.ask(&["status"]).status.code().filter(|code| *code != 4)
    });
    upgrades
}

/// An upgrade goes on while agents are killed, and succeeds.
fn finish(upgrade: &mut Option<Child>) {
    if let Some(mut child) = upgrade.take() {
        let status = until("the upgrade is done", || child.try_wait().expect("our own child"));
        assert!(status.success(), "the upgrade failed: {status}");
    }
}
