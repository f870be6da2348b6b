//! Every series there is, and where its value comes from. `docs/telemetry.md` lists the same.
//!
//! The label of a job is `job_name`: scrapers give `job` themselves. Labels are names out of the plan, words out of fixed lists, or versions: never free text.

use super::requests::Request;
use super::{
    exposition::{Exposition, ExpositionFormat, MetricType},
    fleet,
    process::{Process, Processes, now},
    rollout,
};
use mainstay_core::{
    app::{AppFailure, AppPhase},
    job::{Health, Phase, Verdict},
    node::NodePhase,
    plan::MetricPlan,
};
use mainstay_wire::{
    api::{
        EventCounts, Exits, FleetStatus, Histogram, JobMeasures, Measures, Reading, RolloutStatus,
    },
    link::Figures,
};
use std::borrow::Cow;

#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) measures: Measures,
    /// `None`: the keeper did not answer in time.
    pub(crate) figures: Option<Figures>,
    pub(crate) processes: Processes,
    /// `None`: it belongs to none.
    pub(crate) fleet: Option<FleetStatus>,
    /// `None`: nothing is rolled out.
    pub(crate) rollout: Option<RolloutStatus>,
    pub(crate) custom: Vec<(MetricPlan, Reading)>,
    pub(crate) requests: Vec<(Request, u64)>,
}

pub(crate) fn text(gathered: &Gathered, format: ExpositionFormat) -> String {
    let mut out = Exposition::new(format);
    node(&mut out, gathered);
    jobs(&mut out, &gathered.measures);
    apps(&mut out, &gathered.measures);
    checks(&mut out, &gathered.measures);
    if let Some(figures) = &gathered.figures {
        output(&mut out, &gathered.measures, figures);
    }
    if let Some(fleet) = &gathered.fleet {
        fleet::families(&mut out, fleet);
    }
    if let Some(rollout) = &gathered.rollout {
        rollout::families(&mut out, rollout);
    }
    keeper(&mut out, gathered);
    agent(&mut out, gathered);
    if gathered.measures.containerpilot {
        containerpilot(&mut out, gathered);
    }
    user_metrics(&mut out, &gathered.custom);
    out.finish()
}

fn node(out: &mut Exposition, Gathered { measures, processes, .. }: &Gathered) {
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    out.family("mainstay_build_info", MetricType::Info, "The version of the agent.")
        .count(&version, 1);
    out.family("mainstay_node_info", MetricType::Info, "The name of the node.")
        .count(&[("node", &measures.node)], 1);
    let mut family =
        out.family("mainstay_node_state", MetricType::Gauge, "1 for the state it is in.");
    for (word, phase) in [
        ("starting", NodePhase::Starting),
        ("running", NodePhase::Running),
        ("maintenance", NodePhase::Maintenance),
        ("stopping", NodePhase::Stopping),
    ] {
        family.count(&[("state", word)], u64::from(measures.phase == phase));
    }
    if let Some(age) = processes.keeper.as_ref().and_then(|keeper| keeper.age) {
        out.family(
            "mainstay_uptime_seconds",
            MetricType::Gauge,
            "Since this run of the node began.",
        )
        .sample(&[], age);
    }
    let help = "What has happened, by event and by the job or watch it happened to, or global.";
    let mut family = out.family("mainstay_events_total", MetricType::Counter, help);
    for (source, seen) in sources(measures) {
        for (event, count) in seen.iter() {
            family.count(&[("event", event.as_str()), ("source", &source)], count);
        }
    }
    let help = "Instances that a watch sees.";
    let mut family = out.family("mainstay_watch_instances", MetricType::Gauge, help);
    for watch in &measures.watches {
        family.count(&[("watch", watch.name.as_str())], watch.instances.unwrap_or(0) as u64);
    }
}

fn sources(measures: &Measures) -> impl Iterator<Item = (Cow<'_, str>, &EventCounts)> {
    let jobs = measures.jobs.iter().map(|job| (Cow::from(job.name.as_str()), &job.events));
    let watches = measures.watches.iter();
    let watches = watches.map(|watch| (Cow::from(format!("watch.{}", watch.name)), &watch.events));
    std::iter::once((Cow::from("global"), &measures.events)).chain(jobs).chain(watches)
}

fn state_code(phase: Phase) -> u64 {
    match phase {
        Phase::Stopped => 0,
        Phase::Starting => 10,
        Phase::Running => 20,
        Phase::Backoff => 30,
        Phase::Stopping => 40,
        Phase::Exited => 100,
        Phase::Fatal => 200,
        Phase::Unknown => 1000,
    }
}

const STATES: [(&str, Phase); 8] = [
    ("STOPPED", Phase::Stopped),
    ("STARTING", Phase::Starting),
    ("RUNNING", Phase::Running),
    ("BACKOFF", Phase::Backoff),
    ("STOPPING", Phase::Stopping),
    ("EXITED", Phase::Exited),
    ("FATAL", Phase::Fatal),
    ("UNKNOWN", Phase::Unknown),
];

fn jobs(out: &mut Exposition, measures: &Measures) {
    let mut family =
        out.family("mainstay_jobs", MetricType::Gauge, "How many jobs are in a state.");
    for (word, phase) in STATES {
        let count = measures.jobs.iter().filter(|job| job.phase == phase).count();
        family.count(&[("state", word)], count as u64);
    }
    let help = "Supervisor's code of its state: STOPPED 0, STARTING 10, RUNNING 20, BACKOFF 30, \
                STOPPING 40, EXITED 100, FATAL 200, UNKNOWN 1000.";
    each(out, measures, "mainstay_job_state", help, |job| state_code(job.phase) as f64);
    let help = "1: it is what is desired of it, and not unhealthy.";
    each(out, measures, "mainstay_job_as_desired", help, |job| f64::from(job.as_desired));
    let help = "1 healthy, 0 unknown, -1 unhealthy.";
    each(out, measures, "mainstay_job_health", help, |job| match job.health {
        Health::Healthy => 1.0,
        Health::Unknown => 0.0,
        Health::Unhealthy => -1.0,
    });
    let help = "When it entered its state, in seconds since the epoch.";
    each(out, measures, "mainstay_job_state_since_timestamp_seconds", help, |job| {
        job.since as f64 / 1e9
    });
    let help = "How often policy, not a user, has started it again.";
    let mut family = out.family("mainstay_job_restarts_total", MetricType::Counter, help);
    for job in &measures.jobs {
        family.count(&[("job_name", job.name.as_str())], job.restarts);
    }
    let help = "Ended runs by outcome: success, failure (its code is not expected), signal, oom, \
                error (it never ran), stopped (somebody wanted it).";
    let mut family = out.family("mainstay_job_exits_total", MetricType::Counter, help);
    for job in &measures.jobs {
        let Exits { success, failure, signal, oom, error, stopped, .. } = job.exits;
        // What most jobs never see is not shown before it is there.
        let rare = [("signal", signal), ("oom", oom), ("error", error), ("stopped", stopped)];
        let rare = rare.into_iter().filter(|(_, count)| *count > 0);
        for (outcome, count) in [("success", success), ("failure", failure)].into_iter().chain(rare)
        {
            family.count(&[("job_name", job.name.as_str()), ("outcome", outcome)], count);
        }
    }
}

fn apps(out: &mut Exposition, measures: &Measures) {
    if measures.apps.is_empty() {
        return;
    }
    let help = "1 for the state that an app is in.";
    let mut family = out.family("mainstay_app_state", MetricType::Gauge, help);
    for app in &measures.apps {
        for (word, phase) in APP_STATES {
            let value = u64::from(app.state == phase);
            family.count(&[("app", app.name.as_str()), ("state", word)], value);
        }
    }
    let help = "0: nothing; 1, minor: a job has failed that the app can do without; 2, major: a \
                required one has, or is not there.";
    let mut family = out.family("mainstay_app_failure", MetricType::Gauge, help);
    for app in &measures.apps {
        let value = match app.failure {
            AppFailure::None => 0,
            AppFailure::Minor => 1,
            AppFailure::Major => 2,
        };
        family.count(&[("app", app.name.as_str())], value);
    }
}

const APP_STATES: [(&str, AppPhase); 5] = [
    ("stopped", AppPhase::Stopped),
    ("starting", AppPhase::Starting),
    ("running", AppPhase::Running),
    ("stopping", AppPhase::Stopping),
    ("backoff", AppPhase::Backoff),
];

fn each(
    out: &mut Exposition,
    measures: &Measures,
    name: &str,
    help: &str,
    value: impl Fn(&JobMeasures) -> f64,
) {
    let mut family = out.family(name, MetricType::Gauge, help);
    for job in &measures.jobs {
        family.sample(&[("job_name", job.name.as_str())], value(job));
    }
}

fn checks(out: &mut Exposition, measures: &Measures) {
    let all = || {
        let jobs = measures.jobs.iter();
        jobs.flat_map(|job| job.checks.iter().map(move |check| (job.name.as_str(), check)))
    };
    let help = "1 passing, 0 unknown, -1 failing.";
    let mut family = out.family("mainstay_check_state", MetricType::Gauge, help);
    for (job, check) in all() {
        let value = match check.verdict {
            Verdict::Passing => 1.0,
            Verdict::Unknown => 0.0,
            Verdict::Failing => -1.0,
        };
        family.sample(&[("job_name", job), ("check", &check.name)], value);
    }
    let help = "Answers of a check.";
    let mut family = out.family("mainstay_check_results_total", MetricType::Counter, help);
    for (job, check) in all() {
        for (result, count) in [("pass", check.passed), ("fail", check.failed)] {
            family.count(&[("job_name", job), ("check", &check.name), ("result", result)], count);
        }
    }
    let help = "How long a check took to answer.";
    let mut family = out.family("mainstay_check_duration_seconds", MetricType::Histogram, help);
    for (job, check) in all() {
        if let Some(Histogram { bounds, counts, sum }) = &check.durations {
            family.histogram(&[("job_name", job), ("check", &check.name)], bounds, counts, *sum);
        }
    }
}

fn output(out: &mut Exposition, measures: &Measures, figures: &Figures) {
    type Figure = fn(&mainstay_wire::link::LogFigures) -> u64;
    let families: [(&str, &str, Figure); 3] = [
        ("mainstay_job_output_bytes_total", "What it has written.", |it| it.bytes),
        ("mainstay_job_output_lines_total", "Lines it has written.", |it| it.lines),
        ("mainstay_job_output_dropped_lines_total", "Lines that a full disk cost.", |it| {
            it.dropped
        }),
    ];
    let known = |job: &JobMeasures| Some((job.name.clone(), figures.logs.get(&job.name)?));
    let jobs: Vec<_> = measures.jobs.iter().filter_map(known).collect();
    for (name, help, figure) in families {
        let mut family = out.family(name, MetricType::Counter, help);
        for (job, figures) in &jobs {
            family.count(&[("job_name", job.as_str())], figure(figures));
        }
    }
    let help = "Forwarded lines that a stuck reader of stdout cost.";
    out.family("mainstay_forward_dropped_lines_total", MetricType::Counter, help)
        .count(&[], figures.forward_dropped);
}

fn keeper(out: &mut Exposition, Gathered { figures, processes, .. }: &Gathered) {
    let help = "1: the keeper answered in time.";
    out.family("mainstay_keeper_up", MetricType::Gauge, help)
        .count(&[], u64::from(figures.is_some()));
    if let Some(figures) = figures {
        let version = [("version", figures.version.as_str())];
        let help = "The version of the keeper.";
        out.family("mainstay_keeper_info", MetricType::Info, help).count(&version, 1);
        let help = "The pid of the keeper.";
        out.family("mainstay_keeper_pid", MetricType::Gauge, help)
            .count(&[], u64::from(figures.pid));
        let help = "Processes that the keeper has started since its last upgrade.";
        out.family("mainstay_keeper_forks_total", MetricType::Counter, help)
            .count(&[], figures.forks);
        let help = "Processes of this node that belong to no job.";
        out.family("mainstay_strays", MetricType::Gauge, help)
            .count(&[], figures.strays.len() as u64);
    }
    if let Some(keeper) = &processes.keeper {
        of_process(
            out,
            keeper,
            [
                "mainstay_keeper_cpu_seconds_total",
                "mainstay_keeper_resident_memory_bytes",
                "mainstay_keeper_open_fds",
                "mainstay_keeper_start_time_seconds",
            ],
        );
    }
}

fn of_process(out: &mut Exposition, process: &Process, names: [&str; 4]) {
    let [cpu, resident, open, start] = names;
    let Process { cpu_seconds, resident: bytes, open_files, age } = process;
    if let Some(seconds) = cpu_seconds {
        out.family(cpu, MetricType::Counter, "Processor time.").sample(&[], *seconds);
    }
    if let Some(bytes) = bytes {
        out.family(resident, MetricType::Gauge, "Resident memory.").count(&[], *bytes);
    }
    if let Some(open_files) = open_files {
        out.family(open, MetricType::Gauge, "Open file descriptors.").count(&[], *open_files);
    }
    if let Some(age) = age {
        let help = "When it began, in seconds since the epoch.";
        out.family(start, MetricType::Gauge, help).sample(&[], now() - age);
    }
}

fn agent(out: &mut Exposition, gathered: &Gathered) {
    let Gathered { measures, processes, requests, .. } = gathered;
    let help = "How often an agent of this run was replaced.";
    out.family("mainstay_agent_restarts_total", MetricType::Counter, help)
        .count(&[], measures.agent_restarts);
    let help = "1: the journal can be written.";
    out.family("mainstay_journal_writable", MetricType::Gauge, help)
        .count(&[], u64::from(!measures.journal_failed));
    let help = "From an input taken by the agent's loop to its commands carried out.";
    let Histogram { bounds, counts, sum } = &measures.steps;
    out.family("mainstay_agent_step_seconds", MetricType::Histogram, help).histogram(
        &[],
        bounds,
        counts,
        *sum,
    );
    let help = "The longest that the agent's loop was busy with one thing since it was ready.";
    out.family("mainstay_agent_longest_step_seconds", MetricType::Gauge, help)
        .sample(&[], measures.longest_step.as_secs_f64());
    let help = "How late the agent's loop came to a timer.";
    let Histogram { bounds, counts, sum } = &measures.lateness;
    out.family("mainstay_agent_timer_lateness_seconds", MetricType::Histogram, help).histogram(
        &[],
        bounds,
        counts,
        *sum,
    );
    let help = "Requests to the telemetry port.";
    let mut family = out.family("mainstay_telemetry_requests_total", MetricType::Counter, help);
    for (request, count) in requests.iter().filter(|(request, _)| !request.is_v3()) {
        family.count(&[("code", &request.code.to_string()), ("path", request.path)], *count);
    }
    of_process(
        out,
        &processes.agent,
        [
            "process_cpu_seconds_total",
            "process_resident_memory_bytes",
            "process_open_fds",
            "process_start_time_seconds",
        ],
    );
}

fn containerpilot(out: &mut Exposition, Gathered { measures, requests, .. }: &Gathered) {
    let mut family =
        out.family("containerpilot_events", MetricType::Counter, "As mainstay_events_total.");
    for (source, seen) in sources(measures) {
        for (event, count) in seen.iter() {
            if let Some(code) = event.containerpilot() {
                family.count(&[("code", code), ("source", &source)], count);
            }
        }
    }
    let help = "Requests to /v3.";
    let mut family = out.family("containerpilot_control_http_requests", MetricType::Counter, help);
    for (request, count) in requests.iter().filter(|(request, _)| request.is_v3()) {
        family.count(&[("code", &request.code.to_string()), ("path", request.path)], *count);
    }
    let help = "As mainstay_watch_instances.";
    let mut family = out.family("containerpilot_watch_instances", MetricType::Gauge, help);
    for watch in &measures.watches {
        family.count(&[("service", watch.name.as_str())], watch.instances.unwrap_or(0) as u64);
    }
}

fn user_metrics(out: &mut Exposition, custom: &[(MetricPlan, Reading)]) {
    for (MetricPlan { name, help, .. }, reading) in custom {
        match reading {
            Reading::Counter(value) => {
                out.family(name, MetricType::Counter, help).sample(&[], *value);
            }
            Reading::Gauge(value) => out.family(name, MetricType::Gauge, help).sample(&[], *value),
            Reading::Histogram { bounds, counts, sum } => {
                out.family(name, MetricType::Histogram, help).histogram(&[], bounds, counts, *sum);
            }
            Reading::Summary { quantiles, count, sum } => {
                out.family(name, MetricType::Summary, help).summary(&[], quantiles, *count, *sum);
            }
        }
    }
}
