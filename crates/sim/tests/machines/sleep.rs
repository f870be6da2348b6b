//! A laptop is closed for hours: nothing bites on waking, only leases and cron have gone on.

use mainstay_core::{
    event::Kind,
    exit::{Asked, Exit},
    job::{Health, Job, Phase},
    node::{Command, Input},
    plan::{Check, Cron, JobPlan, Plan, Probe, Restart, RestartOn, Trigger},
};
use mainstay_sim::{
    plans::{name, node},
    sleeper::{Sleeper, WaitClock},
};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const WATCHDOG: Duration = Duration::from_secs(10);

fn plan() -> Plan {
    let job = |text: &str| JobPlan::new(name(text), vec![text.to_owned()]);
    let mut guarded = job("guarded");
    let mut check = Check::new("notify".to_owned(), Probe::Notify);
    check.watchdog = Some(WATCHDOG);
    guarded.checks = vec![check];
    let mut flaky = job("flaky");
    let delay = Some(Duration::from_secs(30));
    flaky.restart = Restart { delay, ..Restart::on(RestartOn::Any) };
    let mut hourly = job("hourly");
    hourly.when.trigger = Some(Trigger::Interval(HOUR));
    let mut nightly = job("nightly");
    let expression = "0 3 * * *".to_owned();
    nightly.when.trigger = Some(Trigger::Cron(Cron { expression, tz: None }));
    let mut leased = job("leased");
    leased.restart = Restart::on(RestartOn::Never);
    Plan::new(node(), vec![guarded, flaky, hourly, nightly, leased])
}

/// Everything is up, `flaky` backs off, `hourly` has ended its first run.
fn evening(wait_clock: WaitClock) -> Sleeper {
    let mut machine = Sleeper::new(plan(), wait_clock, 4 * HOUR);
    for job in ["guarded", "flaky", "hourly", "leased"] {
        machine.tell(Input::Spawned { job: name(job), incarnation: 1, pid: 7 });
    }
    machine.lease(&name("leased"), 1, HOUR);
    let (ready, watchdog, watchdog_every) = (true, false, None);
    let job = name("guarded");
    machine.tell(Input::Notified { job, incarnation: 1, ready, watchdog, watchdog_every });
    for (job, code) in [("flaky", 1), ("hourly", 0)] {
        let (exit, usage, asked) = (Exit::Code { code }, None, Asked::None);
        machine.tell(Input::Exited { job: name(job), incarnation: 1, exit, usage, asked });
    }
    assert_eq!(health(&machine), Some(Health::Healthy));
    machine.events.clear();
    machine.commands.clear();
    machine
}

fn health(machine: &Sleeper) -> Option<Health> {
    machine.node.job("guarded").map(Job::health)
}

fn phase(machine: &Sleeper, job: &str) -> Option<Phase> {
    machine.node.job(job).map(Job::phase)
}

fn spawns(machine: &Sleeper) -> Vec<&str> {
    let spawned = machine.commands.iter().filter_map(|command| match command {
        Command::Spawn { job, .. } => Some(job.as_str()),
        _ => None,
    });
    spawned.collect()
}

#[test]
fn hours_of_sleep_move_leases_and_cron_and_nothing_else() {
    let mut machine = evening(WaitClock::Monotonic);
    machine.sleep(9 * HOUR);
    assert_eq!(health(&machine), Some(Health::Healthy), "no watchdog bites on waking");
    assert_eq!(phase(&machine, "flaky"), Some(Phase::Backoff), "its delay goes on now");
    assert_eq!(phase(&machine, "leased"), Some(Phase::Exited), "its lease has run out");
    assert_eq!(spawns(&machine), ["nightly"], "once, however often it was due");

    machine.live(WATCHDOG - Duration::from_secs(1));
    assert_eq!(health(&machine), Some(Health::Healthy), "it has the rest of its time");
    machine.live(Duration::from_secs(2));
    assert_eq!(health(&machine), Some(Health::Unhealthy), "and no more");
    machine.live(Duration::from_secs(30));
    assert_eq!(spawns(&machine), ["nightly", "flaky"]);
    machine.live(HOUR);
    assert!(spawns(&machine).contains(&"hourly"), "so long after its last start, awake");
}

#[test]
fn a_job_that_is_told_on_waking_stays_healthy() {
    let mut machine = evening(WaitClock::Monotonic);
    for _ in 0..5 {
        machine.sleep(2 * HOUR);
        machine.live(WATCHDOG - Duration::from_secs(2));
        let (ready, watchdog, watchdog_every) = (false, true, None);
        let job = name("guarded");
        machine.tell(Input::Notified { job, incarnation: 1, ready, watchdog, watchdog_every });
    }
    let guarded = machine.events.iter().filter(|event| event.source.as_str() == "guarded");
    assert!(!guarded.map(|event| &event.kind).any(|kind| *kind == Kind::Unhealthy));
}

#[test]
fn waits_on_a_clock_that_goes_on_would_bite() {
    let mut machine = evening(WaitClock::Boottime);
    machine.sleep(9 * HOUR);
    assert_eq!(health(&machine), Some(Health::Unhealthy));
    assert!(spawns(&machine).contains(&"hourly") && spawns(&machine).contains(&"flaky"));
}
