//! `mainstay status`

use crate::{
    args::StatusArgs,
    client::{Client, read},
    commands::{
        jobs::{app, control::several},
        rollout::status::lines as rollout_lines,
    },
    failure::{Failure, NOT_AS_DESIRED},
    term::{self, Page, Tint, print_json},
};
use jiff::Timestamp;
use mainstay_core::{
    app::AppFailure,
    exit::Exit,
    explain,
    job::{Desired, Health, Phase, Verdict},
    node::NodePhase,
    text::counted,
};
use mainstay_net::percent::segment;
use mainstay_wire::api::{
    AppStatus, DiscoveryStatus, FleetStatus, JobStatus, JournalLostStatus, ListenerStatus,
    NodeStatus, WatchStatus,
};
use std::time::Duration;

pub(crate) fn status(args: &StatusArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    match &args.job {
        Some(name) => {
            let here = if args.here { "?here=true" } else { "" };
            let answer = client.get(&format!("/v1/jobs/{}{here}", segment(name)))?;
            let body = answer.or_told(args.json.json)?;
            let jobs: Vec<JobStatus> = several(&body).iter().map(read).collect::<Result<_, _>>()?;
            match (args.json.json, jobs.as_slice()) {
                (true, _) => print_json(&body)?,
                (false, jobs) => some(jobs).show()?,
            }
            Ok(code(&jobs))
        }
        None => {
            let body = client.get("/v1/status")?.or_told(args.json.json)?;
            let status: NodeStatus = read(&body)?;
            match args.json.json {
                true => print_json(&body)?,
                false => whole(&status, Shown::of(args, &status), room(args)).show()?,
            }
            Ok(code(&status.jobs))
        }
    }
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
    fn of(args: &StatusArgs, status: &NodeStatus) -> Shown {
        match (args.failed, args.all) {
            (true, _) => Shown::Failed,
            (false, true) => Shown::All,
            (false, false) => match term::height() {
                Some(height) if status.jobs.len() + AROUND > height => Shown::Notable,
                Some(_) | None => Shown::All,
            },
        }
    }

    fn shows(self, job: &JobStatus) -> bool {
        match self {
            Shown::All => true,
            Shown::Notable | Shown::Failed => !job.as_desired,
        }
    }
}

/// Lines around the table and its notes, and that of the next prompt.
const AROUND: usize = 5;
/// However low a terminal is, so many lines are about jobs.
const FEW: usize = 9;

/// How many lines there are; `None`: nobody counts them.
type Height = Option<usize>;

/// Who asks for all of it gets it, and so does what is not a terminal.
fn room(args: &StatusArgs) -> Height {
    if args.all { None } else { term::height() }
}

/// How many jobs have a row and how many lines their notes have: where not all fits, the notes get
/// a third.
fn divided(jobs: &[&JobStatus], height: Height) -> (usize, Height) {
    let Some(height) = height else { return (jobs.len(), None) };
    let room = height.saturating_sub(AROUND).max(FEW);
    let notes = jobs.iter().map(|job| notes(job).len()).sum::<usize>();
    if jobs.len() + notes <= room {
        return (jobs.len(), None);
    }
    let lines = notes.min((room / 3).max(room.saturating_sub(jobs.len())));
    (jobs.len().min(room - lines), Some(lines))
}

/// The jobs that were asked for; of a single one its checks as well.
fn some(jobs: &[JobStatus]) -> Page {
    let all: Vec<&JobStatus> = jobs.iter().collect();
    let mut page = Page::new();
    jobs_table(&mut page, &all);
    if let [job] = jobs {
        checks(&mut page, job);
        announced(job).iter().for_each(|line| page.line(line));
    }
    all_notes(&mut page, &all, None);
    page
}

fn journal_lost(lost: &JournalLostStatus) -> String {
    let JournalLostStatus { since, reason, unknown } = lost;
    let names: Vec<&str> = unknown.iter().map(|job| job.as_str()).collect();
    let of = match names.is_empty() {
        true => String::new(),
        false => format!("; what these had said before is not known: {}", names.join(" ")),
    };
    format!("the journal was lost at {since} ({reason}), jobs went on{of}")
}

fn whole(status: &NodeStatus, shown: Shown, height: Height) -> Page {
    let (word, tint) = match status.state {
        NodePhase::Starting => ("starting", Tint::Yellow),
        NodePhase::Running => ("running", Tint::Green),
        NodePhase::Maintenance => ("maintenance", Tint::Yellow),
        NodePhase::Stopping => ("stopping", Tint::Yellow),
    };
    let mut page = Page::new();
    page.tinted_line(&[
        (&status.node, Tint::Bold),
        ("  ", Tint::Plain),
        (word, tint),
        (&format!("  mainstay {}", status.version), Tint::Plain),
    ]);
    if let Some(FleetStatus { name, state, master, .. }) = &status.fleet {
        let master = master.as_ref().map_or("none".to_owned(), ToString::to_string);
        page.line(format!("fleet {name}: {state}, master {master}"));
    }
    if let Some(rollout) = &status.rollout {
        for (line, tint) in rollout_lines(rollout) {
            page.tinted_line(&[(&line, tint)]);
        }
    }
    let wanted: Vec<&JobStatus> = status.jobs.iter().filter(|job| shown.shows(job)).collect();
    let (rows, lines) = divided(&wanted, height);
    let listed = &wanted[..rows];
    if !listed.is_empty() {
        jobs_table(&mut page, listed);
    }
    all_notes(&mut page, listed, lines);
    if wanted.len() > listed.len() {
        let more = wanted.len() - listed.len();
        page.line(format!("{more} more are not as they should be (--all shows them)"));
    }
    let others = status.jobs.len() - wanted.len();
    match shown {
        Shown::Notable if others > 0 => {
            page.line(format!("{others} more are as they should be (--all shows them)"));
        }
        Shown::All | Shown::Notable | Shown::Failed => {}
    }
    let telemetry = status.telemetry.iter().map(|it| ("telemetry", it));
    let pilot = status.containerpilot.iter().map(|it| ("the ContainerPilot socket", it));
    let xmlrpc = status.xmlrpc.iter().map(|it| ("XML-RPC", it));
    for (what, listener) in telemetry.chain(pilot).chain(xmlrpc) {
        if let ListenerStatus { at, error: Some(error) } = listener {
            page.line(format!("{what} is not open at {at}: {error}; it is tried again"));
        }
    }
    status.journal_lost.iter().for_each(|lost| page.line(journal_lost(lost)));
    apps(&mut page, &status.apps, height);
    watches(&mut page, &status.watches, height);
    if let Some(DiscoveryStatus { engine, address, trouble: Some(trouble) }) = &status.discovery {
        page.line(format!("discovery ({engine} at {address}): {trouble}; jobs go on"));
    }
    match &status.strays {
        None => {
            page.line("the keeper did not answer in time: strays and log figures are not shown");
        }
        Some(strays) => {
            for stray in strays {
                page.line(format!("stray process {}: {}", stray.pid, stray.command));
            }
        }
    }
    if let Some(dropped) =
        status.keeper.as_ref().map(|keeper| keeper.forward_dropped).filter(|n| *n > 0)
    {
        let lines = counted(dropped, "line was", "lines were");
        page.line(format!("{lines} not forwarded: nobody reads stdout fast enough"));
    }
    page
}

/// A table of those that fit, else those that something is wrong with.
fn apps(page: &mut Page, apps: &[AppStatus], height: Height) {
    let room = height.map_or(usize::MAX, |height| (height / 3).max(FEW));
    let failed = |it: &&AppStatus| it.failure != AppFailure::None;
    let shown: Vec<AppStatus> = match apps.len() <= room {
        true => apps.to_vec(),
        false => apps.iter().filter(failed).take(room).cloned().collect(),
    };
    if !shown.is_empty() {
        app::table(page, &shown);
    }
    if apps.len() > shown.len() {
        page.line(format!("{} more apps (--all shows them)", apps.len() - shown.len()));
    }
}

/// A table of those that fit, else those that nobody answers.
fn watches(page: &mut Page, watches: &[WatchStatus], height: Height) {
    let room = height.map_or(usize::MAX, |height| (height / 3).max(FEW));
    let shown: Vec<&WatchStatus> = match watches.len() <= room {
        true => watches.iter().collect(),
        false => watches.iter().filter(|it| it.state != Health::Healthy).take(room).collect(),
    };
    let plain = |text: String| (text, Tint::Plain);
    let row = |it: &&WatchStatus| {
        let trouble = it.trouble.clone().unwrap_or_default();
        let instances = it.instances.to_string();
        vec![plain(it.name.to_string()), health(it.state), plain(instances), plain(trouble)]
    };
    let rows: Vec<_> = shown.iter().map(row).collect();
    if !rows.is_empty() {
        page.table(&["WATCH", "STATE", "INSTANCES", ""], &rows);
    }
    if watches.len() > shown.len() {
        page.line(format!("{} more watches (--all shows them)", watches.len() - shown.len()));
    }
}

/// How others find it.
fn announced(job: &JobStatus) -> Option<String> {
    let it = job.announced.as_ref()?;
    let standing = it.standing;
    match (&it.address, &it.trouble) {
        (Some(address), None) => {
            Some(format!("announced as {} at {address}:{}, {standing}", it.id, it.port))
        }
        (_, Some(trouble)) => Some(format!("not announced as {}: {trouble}", it.id)),
        (None, None) => None,
    }
}

fn jobs_table(page: &mut Page, jobs: &[&JobStatus]) {
    let header = ["NAME", "STATE", "PID", "HEALTH", "UPTIME", "RESTARTS", "EXIT", "NODE"];
    let mut rows: Vec<_> = jobs.iter().map(|job| row(job)).collect();
    // Without a fleet there is but one.
    let columns = match jobs.iter().any(|job| job.node.is_some()) {
        true => header.len(),
        false => header.len() - 1,
    };
    rows.iter_mut().for_each(|row| row.truncate(columns));
    page.table(&header[..columns], &rows);
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
        or_dash(home(job)),
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
    let in_fleet = job.placed.as_ref().is_some_and(|it| it.desired == Desired::Disabled);
    let is_disabled = in_fleet || job.desired == Desired::Disabled;
    let disabled = if is_disabled { " (disabled)" } else { "" };
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
fn checks(page: &mut Page, job: &JobStatus) {
    let rows: Vec<_> = job
        .checks
        .iter()
        .map(|check| {
            let (word, tint) = match check.state {
                Verdict::Unknown => ("unknown", Tint::Plain),
                Verdict::Passing => ("passing", Tint::Green),
                Verdict::Failing => ("failing", Tint::Red),
            };
            let plain = |text: &str| (text.to_owned(), Tint::Plain);
            let said = check.output.trim_end().replace('\n', " / ");
            vec![plain(&check.name), (word.to_owned(), tint), plain(&said)]
        })
        .collect();
    if !rows.is_empty() {
        page.table(&["CHECK", "STATE", "SAID"], &rows);
    }
}

/// What should not be missed, in so many lines if they are counted; the rest is a number.
fn all_notes(page: &mut Page, jobs: &[&JobStatus], lines: Height) {
    let notes: Vec<String> = jobs.iter().flat_map(|job| notes(job)).collect();
    let fits = lines.unwrap_or(usize::MAX);
    let shown = if notes.len() > fits { fits.saturating_sub(1) } else { notes.len() };
    notes[..shown].iter().for_each(|note| page.line(note));
    if notes.len() > shown {
        let more = notes.len() - shown;
        let notes = counted(more, "more note", "more notes");
        page.line(format!("{notes} (--all shows all, `mainstay why JOB` explains)"));
    }
}

/// The node where it runs; of what the fleet does not place, this one.
fn home(job: &JobStatus) -> Option<String> {
    match &job.placed {
        Some(placed) => placed.home().map(|copy| copy.node.to_string()),
        None => job.node.as_ref().map(ToString::to_string),
    }
}

/// Where the fleet has it, or why nowhere, if it is not here.
fn elsewhere(job: &JobStatus) -> Option<String> {
    let placed = job.placed.as_ref().filter(|_| job.pid.is_none())?;
    let there = placed.home().map(|copy| format!("{} on {}", copy.state, copy.node));
    there.or_else(|| placed.reason.clone())
}

/// What does not fit a column and should not be missed.
fn notes(job: &JobStatus) -> Vec<String> {
    let name = &job.name;
    let mut notes = Vec::new();
    notes.extend(elsewhere(job).map(|what| format!("{name}: {what}")));
    for check in job.checks.iter().filter(|check| check.state == Verdict::Failing) {
        let said = check.output.lines().next().unwrap_or("it says nothing");
        notes.push(format!("{name}: check {} fails: {said}", check.name));
    }
    notes.extend(
        explain::waits(&job.waits_for(), job.as_desired)
            .map(|waits| format!("{name}: waits for {waits}")),
    );
    if !job.unenforced.is_empty() {
        notes.push(format!("{name}: not enforced here: {}", job.unenforced.join(", ")));
    }
    if let Some(dropped) = job.log.map(|log| log.dropped).filter(|dropped| *dropped > 0) {
        let lines = counted(dropped, "line of output was", "lines of output were");
        notes.push(format!("{name}: {lines} lost"));
    }
    // What keeps all of them from being announced is told once.
    if let Some(it) = job.announced.as_ref().filter(|it| it.address.is_none()) {
        let trouble = it.trouble.as_deref().unwrap_or("no address");
        notes.push(format!("{name}: is not announced: {trouble}"));
    }
    if let Some(said) = job.notify.get("STATUS") {
        notes.push(format!("{name}: {said}"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn status(waiting: usize) -> NodeStatus {
        let job = |number: usize| {
            let waiting: Vec<Value> = (0..4)
                .map(|source| {
                    json!({ "source": format!("s{source}"), "event": "healthy", "since": "", "reason": null })
                })
                .collect();
            json!({
                "name": format!("job-{number}"), "state": "STOPPED", "desired": "run",
                "health": "unknown", "as_desired": false, "checks": [], "pid": null,
                "incarnation": 0, "restarts": 0, "exit": null, "since": "", "waiting": waiting,
                "app": null, "args": [], "tree": null, "unenforced": [], "log": null,
            })
        };
        let jobs: Vec<Value> = (0..waiting).map(job).collect();
        let status = json!({
            "node": "n", "version": "1", "state": "running", "run": "r", "run_dir": "/r",
            "state_dir": "/s", "agent_restarts": 0, "keeper": null, "jobs": jobs, "watches": [],
            "fleet": null, "rollout": null, "strays": [],
        });
        serde_json::from_value(status).expect("a status")
    }

    #[test]
    fn five_jobs_that_wait_fit_a_screen_with_a_line_each_and_five_hundred_are_counted() {
        let whole = |jobs, shown, height| whole(&status(jobs), shown, height).to_string();
        let five = whole(5, Shown::All, Some(24));
        assert!(five.lines().count() < 24, "{five}");
        assert!(five.contains("job-4: waits for s0 healthy, s1 healthy and 2 more"), "{five}");
        let many = whole(500, Shown::Notable, Some(24));
        assert!(many.lines().count() < 24, "{many}");
        assert!(many.contains("more are not as they should be (--all shows them)"), "{many}");
        let all = whole(500, Shown::All, None);
        assert_eq!(all.matches("waits for").count(), 500);
    }
}
