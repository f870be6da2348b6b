//! `mainstay status`

use crate::{
    args::StatusArgs,
    client::Client,
    control::escaped,
    dirs,
    failure::{Failure, NOT_AS_DESIRED},
    term::{self, Tint, print, print_json, stdout_color, table, tinted},
};
use jiff::Timestamp;
use mainstay_agent::view::{Door, JobStatus, Status};
use mainstay_core::{
    exit::Exit,
    job::{Desired, Health, Phase},
    node::NodePhase,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

pub(crate) fn status(args: &StatusArgs) -> Result<i32, Failure> {
    let client = Client::new(dirs::run_dir(args.node.run_dir.as_deref())?);
    match &args.job {
        Some(name) => {
            let body = client.get(&format!("/v1/jobs/{}", escaped(name)))?.into_result()?;
            let job: JobStatus = understood(&body)?;
            match args.json.json {
                true => print_json(&body)?,
                false => {
                    let one = std::slice::from_ref(&job);
                    print(&(jobs_table(one.iter()) + &checks(&job) + &notes(&job)))?;
                }
            }
            Ok(code(std::slice::from_ref(&job)))
        }
        None => {
            let body = client.get("/v1/status")?.into_result()?;
            let status: Status = understood(&body)?;
            match args.json.json {
                true => print_json(&body)?,
                false => print(&whole(&status, Shown::of(args, &status)))?,
            }
            Ok(code(&status.jobs))
        }
    }
}

fn understood<T: DeserializeOwned>(body: &Value) -> Result<T, Failure> {
    T::deserialize(body).map_err(|error| {
        Failure::of("the agent is of another version and answers in another form", error)
    })
}

fn code(jobs: &[JobStatus]) -> i32 {
    if jobs.iter().all(|job| job.as_desired) { 0 } else { NOT_AS_DESIRED }
}

/// Which jobs are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    All,
    /// Those that need a look; the others are counted.
    Notable,
    /// Those that are not as they should be.
    Failed,
}

impl Shown {
    fn of(args: &StatusArgs, status: &Status) -> Shown {
        match (args.failed, args.all) {
            (true, _) => Shown::Failed,
            (false, true) => Shown::All,
            (false, false) => match term::height() {
                Some(height) if status.jobs.len() + HEAD > height => Shown::Notable,
                Some(_) | None => Shown::All,
            },
        }
    }

    fn shows(self, job: &JobStatus) -> bool {
        match self {
            Shown::All => true,
            Shown::Notable => !job.as_desired || job.health == Health::Unhealthy,
            Shown::Failed => !job.as_desired,
        }
    }
}

/// Lines around the table.
const HEAD: usize = 4;

fn whole(status: &Status, shown: Shown) -> String {
    let color = stdout_color();
    let (word, tint) = match status.state {
        NodePhase::Starting => ("starting", Tint::Yellow),
        NodePhase::Running => ("running", Tint::Green),
        NodePhase::Maintenance => ("maintenance", Tint::Yellow),
        NodePhase::Stopping => ("stopping", Tint::Yellow),
    };
    let mut text = format!(
        "{}  {}  mainstay {}\n",
        tinted(&status.node, Tint::Bold, color),
        tinted(word, tint, color),
        status.version
    );
    let jobs = || status.jobs.iter().filter(|job| shown.shows(job));
    if jobs().next().is_some() {
        text.push_str(&jobs_table(jobs()));
    }
    jobs().for_each(|job| text.push_str(&notes(job)));
    let others = status.jobs.len() - jobs().count();
    match shown {
        Shown::Notable if others > 0 => {
            text.push_str(&format!("{others} more are as they should be (--all shows them)\n"));
        }
        Shown::All | Shown::Notable | Shown::Failed => {}
    }
    for (what, door) in
        [("telemetry", &status.telemetry), ("the ContainerPilot socket", &status.containerpilot)]
    {
        if let Some(Door { at, error: Some(error) }) = door {
            text.push_str(&format!("{what} is not open at {at}: {error}; it is tried again\n"));
        }
    }
    match &status.strays {
        None => text
            .push_str("the keeper did not answer in time: strays and log figures are not shown\n"),
        Some(strays) => {
            for stray in strays {
                text.push_str(&format!("stray process {}: {}\n", stray.pid, stray.command));
            }
        }
    }
    if let Some(dropped) =
        status.keeper.as_ref().map(|keeper| keeper.forward_dropped).filter(|n| *n > 0)
    {
        text.push_str(&format!(
            "{dropped} lines were not forwarded: nobody reads stdout fast enough\n"
        ));
    }
    text
}

fn jobs_table<'a>(jobs: impl Iterator<Item = &'a JobStatus>) -> String {
    let header = ["NAME", "STATE", "PID", "HEALTH", "UPTIME", "RESTARTS", "EXIT"];
    let rows: Vec<_> = jobs.map(row).collect();
    table(&header, &rows, stdout_color())
}

fn row(job: &JobStatus) -> Vec<(String, Tint)> {
    let plain = |text: String| (text, Tint::Plain);
    let or_dash = |text: Option<String>| plain(text.unwrap_or_else(|| "-".to_owned()));
    vec![
        plain(job.name.to_string()),
        state(job),
        or_dash(job.pid.map(|pid| pid.to_string())),
        health(job.health),
        or_dash(uptime(job)),
        plain(job.restarts.to_string()),
        or_dash(job.exit.as_ref().map(exit)),
    ]
}

fn state(job: &JobStatus) -> (String, Tint) {
    let phase = job.state;
    let tint = match phase {
        Phase::Running => Tint::Green,
        Phase::Stopped | Phase::Exited => Tint::Plain,
        Phase::Starting | Phase::Stopping | Phase::Backoff => Tint::Yellow,
        Phase::Fatal | Phase::Unknown => Tint::Red,
    };
    let disabled = if job.desired == Desired::Disabled { " (disabled)" } else { "" };
    (format!("{phase:?}").to_uppercase() + disabled, tint)
}

fn health(health: Health) -> (String, Tint) {
    match health {
        Health::Unknown => ("-".to_owned(), Tint::Plain),
        Health::Healthy => ("healthy".to_owned(), Tint::Green),
        Health::Unhealthy => ("unhealthy".to_owned(), Tint::Red),
    }
}

fn uptime(job: &JobStatus) -> Option<String> {
    let since: Timestamp = job.since.parse().ok()?;
    let passed = Timestamp::now().as_nanosecond() - since.as_nanosecond();
    let passed = Duration::from_nanos(u64::try_from(passed).unwrap_or(0));
    (job.state == Phase::Running).then(|| term::age(passed))
}

fn exit(exit: &Exit) -> String {
    match exit {
        Exit::Code { code } => code.to_string(),
        Exit::Signal { signal, oom: false } => signal.to_string(),
        Exit::Signal { signal, oom: true } => format!("{signal} (out of memory)"),
        Exit::Error { error, .. } => error.clone(),
    }
}

/// Every check of one job.
fn checks(job: &JobStatus) -> String {
    let rows: Vec<_> = job
        .checks
        .iter()
        .map(|check| {
            let tint = match check.state.as_str() {
                "passing" => Tint::Green,
                "failing" => Tint::Red,
                _ => Tint::Plain,
            };
            let plain = |text: &str| (text.to_owned(), Tint::Plain);
            let said = check.output.replace('\n', " / ");
            vec![plain(&check.name), (check.state.clone(), tint), plain(&said)]
        })
        .collect();
    match rows.is_empty() {
        true => String::new(),
        false => table(&["CHECK", "STATE", "SAID"], &rows, stdout_color()),
    }
}

/// What does not fit a column and should not be missed.
fn notes(job: &JobStatus) -> String {
    let mut text = String::new();
    for check in job.checks.iter().filter(|check| check.state == "failing") {
        let said = check.output.lines().next().unwrap_or("it says nothing");
        text.push_str(&format!("{}: check {} fails: {said}\n", job.name, check.name));
    }
    // One that waits for its next turn is as it should be.
    for waiting in job.waiting.iter().filter(|one| !job.as_desired || one.reason.is_some()) {
        let reason = waiting.reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
        let (source, event) = (&waiting.source, &waiting.event);
        text.push_str(&format!("{}: waits for {source} {event}{reason}\n", job.name));
    }
    if !job.unenforced.is_empty() {
        text.push_str(&format!("{}: not enforced here: {}\n", job.name, job.unenforced.join(", ")));
    }
    if let Some(dropped) = job.log.map(|log| log.dropped).filter(|dropped| *dropped > 0) {
        text.push_str(&format!("{}: {dropped} lines of output were lost\n", job.name));
    }
    if let Some(said) = job.notify.get("STATUS") {
        text.push_str(&format!("{}: {said}\n", job.name));
    }
    text
}
