//! The agent's own log: one plain line each on stderr. The keeper captures and stamps it. What
//! jobs have said stays within the line that quotes it.

use mainstay_core::{
    event::{Ending, Event, Kind, RunEnd},
    exit::KillReason,
    job::Phase,
    plan::NodeLog,
    text::{counted, visible},
};
use mainstay_sys::nonblocking::tell_stderr;
use mainstay_wire::link::LOG_MARK;
use std::{
    env, io,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};
use tracing::{Level, Subscriber};
use tracing_subscriber::{
    filter::LevelFilter,
    fmt::{
        self, FmtContext,
        format::{FormatEvent, FormatFields, Writer},
    },
    layer::SubscriberExt,
    registry::LookupSpan,
    reload,
};

type SetLevel = Box<dyn Fn(LevelFilter) + Send + Sync>;
static SET_LEVEL: OnceLock<SetLevel> = OnceLock::new();
/// Lines that nobody has taken.
static LOST: AtomicUsize = AtomicUsize::new(0);

/// From now on `tracing` writes to stderr. `MAINSTAY_LOG` is the level, whatever a plan says.
pub(crate) fn init() {
    let (level, handle) = reload::Layer::new(env_level().unwrap_or(LevelFilter::INFO));
    let lines = fmt::layer().with_writer(|| Stderr).event_format(Plain);
    let set = move |level| {
        // Fails only when the subscriber is gone, and it is never taken down.
        let _ = handle.reload(level);
    };
    let subscriber = tracing_subscriber::registry().with(level).with(lines);
    if tracing::subscriber::set_global_default(subscriber).is_ok() {
        let _ = SET_LEVEL.set(Box::new(set));
    }
}

/// Stderr, as far as somebody reads it: the loop does not wait for who does not.
struct Stderr;

impl io::Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let lost = LOST.swap(0, Ordering::Relaxed);
        let untold = if lost > 0 && !tell_stderr(&lost_lines(lost)) { lost } else { 0 };
        let taken = untold == 0 && tell_stderr(String::from_utf8_lossy(line).trim_end());
        LOST.fetch_add(untold + usize::from(!taken), Ordering::Relaxed);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lost_lines(lost: usize) -> String {
    let lost = counted(lost, "line of this log is", "lines of this log are");
    format!("mainstay: warning: {lost} lost: nobody took them")
}

/// `mainstay: warning: what happened`, as the keeper writes it, too.
struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> std::fmt::Result {
        let level = match *event.metadata().level() {
            Level::ERROR => "error: ",
            Level::WARN => "warning: ",
            Level::INFO => "",
            Level::DEBUG => "debug: ",
            Level::TRACE => "trace: ",
        };
        let mut text = String::new();
        context.field_format().format_fields(Writer::new(&mut text), event)?;
        writeln!(line, "mainstay: {level}{}", visible(&text))
    }
}

fn env_level() -> Option<LevelFilter> {
    env::var("MAINSTAY_LOG").ok()?.parse().ok()
}

/// Has the keeper forward the lines that follow as the plan wants it.
pub(crate) fn follow(log: &NodeLog) {
    if *log != NodeLog::default()
        && let Ok(json) = serde_json::to_string(log)
    {
        // Nobody who takes it takes no line either, and the keeper is told once more.
        let _ = tell_stderr(&format!("{}{json}", char::from(LOG_MARK)));
    }
}

/// The level that the plan wants.
pub(crate) fn set_level(level: &str) {
    if let (None, Some(set), Ok(level)) = (env_level(), SET_LEVEL.get(), level.parse()) {
        set(level);
    }
}

/// Why a run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndCause {
    /// By itself.
    Own,
    /// It took too long, and nobody asked for its end.
    Overran,
}

/// What an operator wants to find in the log without having watched. `early`: a check that has yet
/// to pass for the first time, which is how every start looks.
pub(crate) fn event(event: &Event, cause: EndCause, early: bool) {
    let source = event.source.as_str();
    if let Some(RunEnd { incarnation, exit, ending: Ending::Failure }) = event.kind.run_end() {
        return match cause {
            EndCause::Overran => {
                tracing::warn!("{source}: run {incarnation} took longer than its timeout: {exit}");
            }
            EndCause::Own => tracing::warn!("{source}: run {incarnation} failed: {exit}"),
        };
    }
    match &event.kind {
        Kind::Stopped { killed: Some(KillReason::StopTimeout), .. } => {
            tracing::warn!("{source}: killed: it did not end within its stop timeout");
        }
        Kind::Stopped { killed: Some(KillReason::Shutdown), .. } => {
            tracing::warn!(
                "{source}: killed before its own time: the node's stop_timeout was over"
            );
        }
        Kind::State { to: Phase::Fatal, .. } => tracing::error!("{source}: given up"),
        Kind::State { to: Phase::Running, pid: Some(pid), incarnation, .. } => {
            tracing::debug!("{source}: running, pid {pid}, run {incarnation}");
        }
        Kind::AgentRestarted { restarts } => {
            tracing::warn!("agent restarted ({restarts} so far); every job goes on");
        }
        Kind::JournalLost { reason, unknown } => {
            let named: Vec<&str> = unknown.iter().map(|job| job.as_str()).collect();
            let of = match named.is_empty() {
                true => String::new(),
                false => format!("; what these had said before is not known: {}", named.join(" ")),
            };
            tracing::error!(
                "the journal is lost ({reason}): every job goes on as the keeper remembers it{of}"
            );
        }
        // The keeper has said so.
        Kind::Upgraded { from, to } => tracing::debug!("upgraded from {from} to {to}"),
        Kind::LogGap { lines } => {
            tracing::warn!("{source}: {} of output lost", counted(*lines, "line", "lines"));
        }
        Kind::StrayKilled { pid, command } => {
            tracing::warn!("killed stray process {pid} ({command})");
        }
        Kind::TimerExpired => tracing::warn!("{source}: what it waits for did not come in time"),
        Kind::Check { name, passing: true, .. } => tracing::debug!("{source}: check {name} passes"),
        Kind::Check { name, output, .. } => {
            let said = output.lines().next().unwrap_or_default();
            if early {
                return tracing::info!("{source}: check {name} does not pass yet: {said}");
            }
            tracing::warn!("{source}: check {name} fails: {said}");
        }
        Kind::Reloaded { added, changed, removed } => {
            let (added, changed, removed) = (added.len(), changed.len(), removed.len());
            let added = counted(added, "job", "jobs");
            tracing::info!("reloaded: {added} added, {changed} changed, {removed} removed");
        }
        Kind::NodeJoined { node } => tracing::info!("fleet: {node} takes part"),
        Kind::NodeLost { node } => tracing::warn!("fleet: {node} is gone"),
        Kind::NodeIsolated { node } => {
            tracing::warn!("fleet: {node} is left out until it is readmitted");
        }
        Kind::NodeRefused { node, run } => {
            tracing::warn!("fleet: a second {node}, run {run}, wants in, and is refused");
        }
        Kind::MasterChanged { master, term } => {
            tracing::info!("fleet: {master} is master, term {term}");
        }
        Kind::Placed { node } => tracing::info!("{source}: placed on {node}"),
        Kind::NotPlaced { reason } => tracing::warn!("{source}: not placed: {reason}"),
        Kind::Conflict { nodes } => {
            let nodes: Vec<&str> = nodes.iter().map(|node| node.as_str()).collect();
            tracing::warn!("{source}: runs on several nodes: {}", nodes.join(", "));
        }
        Kind::WavesStopped { app } => {
            tracing::warn!("{source}: did not come up; {app} is not restarted any further");
        }
        Kind::Signal { signal } => tracing::info!("received {signal}"),
        Kind::Changed { instances: Some(instances), .. } => {
            tracing::info!("{source}: {}", counted(*instances, "instance", "instances"));
        }
        Kind::Changed { version: Some(version), .. } => {
            tracing::info!("{source}: version {version} is applied");
        }
        Kind::RolledBack { failure, .. } => tracing::error!("{source}: rolled back: {failure}"),
        Kind::UpdateFailed { failure, .. } => {
            tracing::error!("{source}: nothing is changed: {failure}");
        }
        Kind::RolloutFailed { failure, .. } => tracing::error!("{source}: failed: {failure}"),
        _ => tracing::debug!("{source}: {:?}", event.kind),
    }
}
