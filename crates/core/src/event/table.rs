//! Every event there is: one row each, and nothing about an event is listed anywhere else.
//!
//! A row makes a variant of [`Kind`] (what happened, with its details) and one of [`EventName`]
//! (which event that is). Its columns say who says it, whether a job may wait for it and where
//! that is remembered, at which moment of a job it comes, and how it is shown. Configuration,
//! reference page, history, telemetry and colours ask here.

use super::{
    Speaker::{self, Job, Node, Rollout, Watch},
    text::ByteSize,
};
use crate::{
    exit::{Exit, KillReason, Usage},
    job::Phase,
    name::Name,
    plan::Awaited,
    signal::Signal,
};
use serde::{Deserialize, Serialize};

/// What is said about an event beside its details.
#[derive(Debug)]
struct Row {
    /// As it is written, in files and in JSON.
    name: &'static str,
    /// For the reference page.
    doc: &'static str,
    by: &'static [Speaker],
    latch: Latch,
    /// Of events of a job: the part of its life in which it says them.
    during: Option<During>,
    tone: Tone,
    /// The code that ContainerPilot counts it under, where it has the event at all.
    containerpilot: Option<&'static str>,
    /// The condition by which process-compose lets a process wait for it, where it has one.
    process_compose: Option<&'static str>,
}

impl Row {
    const PLAIN: Row = Row {
        name: "",
        doc: "",
        by: &[],
        latch: Latch::Observed,
        during: None,
        tone: Tone::Plain,
        containerpilot: None,
        process_compose: None,
    };
}

/// Whether a job can wait for an event, and where it is remembered that it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Latch {
    /// Only told to observers.
    Observed,
    /// A place in the history of who says it. It is journaled: a place is never given again.
    Bit(u8),
    /// Each signal is awaited by its own name and has a place of its own.
    BySignal,
}

/// The part of a job's life that an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum During {
    /// It waits for its first launch.
    Wait,
    /// It has a process, or had one and may get another.
    Run,
    /// It is asked to end: hooks run before the signal.
    Stop,
    /// Its process is gone, and it does not come back by itself.
    Gone,
}

/// How an event is meant: its colour; and of bad news that can no longer come nobody needs to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    Plain,
}

macro_rules! events {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $({
            $($field:ident: $type:ty),* $(; $($optional:ident: $value_type:ty),+)?
        })? = $name:literal {
            $($column:ident: $value:expr),+ $(,)?
        }
    )+) => {
        /// Serialised as `"event": name` and, where there is more to say, `"detail": {…}`. Details
        /// after a semicolon are optional: left out where there are none.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "event", content = "detail")]
        pub enum Kind {
            $(
                $(#[doc = $doc])+
                #[serde(rename = $name)]
                $variant $({
                    $($field: $type,)*
                    $($(
                        #[serde(default, skip_serializing_if = "Option::is_none")]
                        $optional: Option<$value_type>,
                    )+)?
                })?,
            )+
        }

        /// Which event it is.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum EventName {
            $(
                $(#[doc = $doc])+
                #[serde(rename = $name)]
                $variant,
            )+
        }

        impl Kind {
            #[must_use]
            pub fn name(&self) -> EventName {
                match self {
                    $(Kind::$variant { .. } => EventName::$variant,)+
                }
            }

            /// About how many bytes its details take.
            pub(super) fn weight(&self) -> usize {
                match self {
                    $(
                        Kind::$variant { $($($field,)* $($($optional,)+)?)? } => {
                            0 $($(+ $field.weight())* $($(+ $optional.weight())+)?)?
                        }
                    )+
                }
            }
        }

        impl EventName {
            /// In the order of the table.
            pub const ALL: &[EventName] = &[$(EventName::$variant),+];

            #[allow(clippy::needless_update, reason = "a row may fill every column")]
            const ROWS: &[Row] = &[$(
                Row {
                    name: $name,
                    doc: concat!($($doc),+),
                    $($column: $value,)+
                    ..Row::PLAIN
                }
            ),+];
        }
    };
}

events! {
    /// Once, when the run begins.
    Startup = "startup" {
        by: &[Node], latch: Latch::Bit(0), containerpilot: Some("Startup"),
    }
    /// A watch: it has other instances than before. A profile or a template: another version is
    /// applied.
    Changed { ; instances: usize, version: String } = "changed" {
        by: &[Watch, Rollout], latch: Latch::Bit(5), containerpilot: Some("StatusChanged"),
    }
    /// All checks of its process pass, for the first time or again; of a watch: it has an instance now.
    /// Of a profile or a template: what is applied is in place.
    Healthy = "healthy" {
        by: &[Job, Watch, Rollout], latch: Latch::Bit(3), during: Some(During::Run), tone: Tone::Good,
        containerpilot: Some("StatusHealthy"), process_compose: Some("process_healthy"),
    }
    /// It was healthy and a check fails, its next process does not pass in time, or it has failed and
    /// nothing follows; a job without checks never says it. Of a watch: its last instance is gone. Of a
    /// profile or a template: nothing that was applied is in place, as a way back has failed.
    Unhealthy = "unhealthy" {
        by: &[Job, Watch, Rollout], latch: Latch::Bit(4), during: Some(During::Run), tone: Tone::Bad,
        containerpilot: Some("StatusUnhealthy"),
    }
    /// Its process ended with a code in `exit_codes`, and nobody had asked for that.
    ExitSuccess { incarnation: u64, exit: Exit; usage: Usage } = "exitSuccess" {
        by: &[Job], latch: Latch::Bit(1), during: Some(During::Run), tone: Tone::Good,
        containerpilot: Some("ExitSuccess"),
        process_compose: Some("process_completed_successfully"),
    }
    /// Its process ended in any other way that nobody had asked for: another code, a signal, or it
    /// could not be executed.
    ExitFailed { incarnation: u64, exit: Exit; usage: Usage } = "exitFailed" {
        by: &[Job], latch: Latch::Bit(2), during: Some(During::Run), tone: Tone::Bad,
        containerpilot: Some("ExitFailed"),
    }
    /// It is going to be ended for good, before its stop signal.
    Stopping = "stopping" {
        by: &[Job], latch: Latch::Bit(6), during: Some(During::Stop),
        containerpilot: Some("Stopping"),
    }
    /// Its last process is gone, and no restart follows. It carries how that process ended, and why
    /// it was killed if it was.
    Stopped { incarnation: u64; exit: Exit, usage: Usage, killed: KillReason } = "stopped" {
        by: &[Job], latch: Latch::Bit(7), during: Some(During::Gone),
        containerpilot: Some("Stopped"), process_compose: Some("process_completed"),
    }
    /// Its `when.timeout` is over: it has waited for its conditions in vain.
    TimerExpired = "timerExpired" {
        by: &[Job], latch: Latch::Bit(10), during: Some(During::Wait), tone: Tone::Bad,
        containerpilot: Some("TimerExpired"),
    }
    /// Maintenance has begun.
    EnterMaintenance = "enterMaintenance" {
        by: &[Node], latch: Latch::Bit(8), containerpilot: Some("EnterMaintenance"),
    }
    /// Maintenance is over.
    ExitMaintenance = "exitMaintenance" {
        by: &[Node], latch: Latch::Bit(9), containerpilot: Some("ExitMaintenance"),
    }
    /// The node has received a signal.
    Signal { signal: Signal } = "signal" {
        by: &[Node], latch: Latch::BySignal, containerpilot: Some("Signal"),
    }
    /// A check has changed its mind.
    Check { name: String, passing: bool, output: String } = "check" { by: &[Job] }
    /// It may be started again.
    Enabled = "enabled" { by: &[Job] }
    /// It is not started until it is enabled again.
    Disabled = "disabled" { by: &[Job] }
    /// It has come to another state.
    State { from: Phase, to: Phase, pid: Option<u32>, incarnation: u64 } = "state" { by: &[Job] }
    /// A new plan is in force.
    Reloaded { added: Vec<Name>, changed: Vec<Name>, removed: Vec<Name> } = "reloaded" {
        by: &[Node],
    }
    /// The agent was replaced by a new one; jobs went on.
    AgentRestarted { restarts: u64 } = "agentRestarted" { by: &[Node] }
    /// Another version of the program has taken over; jobs went on.
    Upgraded { from: String, to: String } = "upgraded" { by: &[Node] }
    /// A command that was run for it by request has ended: its `reload.exec`; of the node: a task.
    TaskEnded { number: u64, task: String, exit: Exit, output: String } = "taskEnded" {
        by: &[Job, Node],
    }
    /// The agent's journal is missing or damaged: jobs went on, and are as the keeper remembers them.
    /// What the jobs in `unknown` had said is not known any more.
    JournalLost { reason: String, unknown: Vec<Name> } = "journalLost" {
        by: &[Node], tone: Tone::Bad,
    }
    /// Lines of its output are lost.
    LogGap { lines: u64 } = "logGap" { by: &[Job], tone: Tone::Bad }
    /// A process that belonged to no job was killed.
    StrayKilled { pid: u32, command: String } = "strayKilled" { by: &[Node] }
    /// Another node of the fleet takes part.
    NodeJoined { node: Name } = "nodeJoined" { by: &[Node], tone: Tone::Good }
    /// Another node of the fleet is not there any more.
    NodeLost { node: Name } = "nodeLost" { by: &[Node], tone: Tone::Bad }
    /// Another node is left out until somebody lets it in again.
    NodeIsolated { node: Name } = "nodeIsolated" { by: &[Node], tone: Tone::Bad }
    /// A second run of a node that is there wants to take part.
    NodeRefused { node: Name, run: String } = "nodeRefused" { by: &[Node], tone: Tone::Bad }
    /// The node follows a master of the fleet: another one, or one that begins anew.
    MasterChanged { master: Name, term: u64 } = "masterChanged" { by: &[Node] }
    /// The fleet has come to another state.
    FleetState { state: String } = "fleetState" { by: &[Node] }
    /// The master has given it to a node.
    Placed { node: Name } = "placed" { by: &[Job] }
    /// The master finds no node for it.
    NotPlaced { reason: String } = "notPlaced" { by: &[Job], tone: Tone::Bad }
    /// It runs on several nodes of the fleet.
    Conflict { nodes: Vec<Name> } = "conflict" { by: &[Job], tone: Tone::Bad }
    /// It did not come up in its wave: its app is not restarted any further.
    WavesStopped { app: Name } = "wavesStopped" { by: &[Job], tone: Tone::Bad }
    /// An update of it has failed, and what was there before is in place again. Of the node: an
    /// update that a reload has made.
    RolledBack { failure: String; version: String } = "rolledBack" {
        by: &[Rollout, Node], tone: Tone::Bad,
    }
    /// An update of it has failed before any file was replaced. Of the node: an update that a reload
    /// has made.
    UpdateFailed { failure: String; version: String } = "updateFailed" {
        by: &[Rollout, Node], tone: Tone::Bad,
    }
    /// A failure has stayed pending for `failure_timeout`.
    RolloutFailed { failure: String; version: String } = "rolloutFailed" {
        by: &[Rollout, Node], tone: Tone::Bad,
    }
}

/// How a run ended. One that ended by itself, and that nothing follows, is told twice: then
/// `stopped` says it again.
#[derive(Debug, Clone, Copy)]
pub struct RunEnd<'a> {
    pub incarnation: u64,
    pub exit: &'a Exit,
    pub ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, as expected.
    Success,
    /// By itself, in any other way.
    Failure,
    /// Nothing follows it, whoever wanted that.
    Stopped,
}

impl Kind {
    /// The event in the words of a condition; `None` for what is only told to observers.
    #[must_use]
    pub fn awaited(&self) -> Option<Awaited> {
        match self {
            Kind::Signal { signal } => Some(Awaited::Signal { signal: *signal }),
            _ => Some(self.name()).filter(|it| it.can_be_awaited()).map(Awaited::Event),
        }
    }

    /// What says that something is up, or no longer is.
    pub(crate) fn of_health(is_up: bool) -> Kind {
        if is_up { Kind::Healthy } else { Kind::Unhealthy }
    }

    /// The end of a run that it tells of.
    #[must_use]
    pub fn run_end(&self) -> Option<RunEnd<'_>> {
        let (incarnation, exit, ending) = match self {
            Kind::ExitSuccess { incarnation, exit, .. } => (*incarnation, exit, Ending::Success),
            Kind::ExitFailed { incarnation, exit, .. } => (*incarnation, exit, Ending::Failure),
            Kind::Stopped { incarnation, exit: Some(exit), .. } => {
                (*incarnation, exit, Ending::Stopped)
            }
            _ => return None,
        };
        Some(RunEnd { incarnation, exit, ending })
    }
}

impl EventName {
    fn row(self) -> &'static Row {
        &EventName::ROWS[self as usize]
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    #[must_use]
    pub fn find(name: &str) -> Option<EventName> {
        EventName::ALL.iter().copied().find(|it| it.as_str() == name)
    }

    /// What it means, in a sentence.
    #[must_use]
    pub fn doc(self) -> &'static str {
        self.row().doc.trim_start()
    }

    #[must_use]
    pub fn is_said_by(self, speaker: Speaker) -> bool {
        self.row().by.contains(&speaker)
    }

    /// By its own name; signals are awaited by theirs.
    #[must_use]
    pub fn can_be_awaited(self) -> bool {
        self.bit().is_some()
    }

    /// Its place in the history of who says it.
    pub(crate) fn bit(self) -> Option<u32> {
        match self.row().latch {
            Latch::Bit(place) => Some(1 << place),
            Latch::Observed | Latch::BySignal => None,
        }
    }

    #[must_use]
    pub fn during(self) -> Option<During> {
        self.row().during
    }

    #[must_use]
    pub fn tone(self) -> Tone {
        self.row().tone
    }

    /// The code that ContainerPilot counts it under, where it has the event at all.
    #[must_use]
    pub fn containerpilot(self) -> Option<&'static str> {
        self.row().containerpilot
    }

    /// What a process waits for by this condition of process-compose.
    #[must_use]
    pub fn of_process_compose(condition: &str) -> Option<EventName> {
        EventName::ALL.iter().copied().find(|it| it.row().process_compose == Some(condition))
    }

    /// It tells of a change in health.
    #[must_use]
    pub fn is_health(self) -> bool {
        matches!(self, EventName::Healthy | EventName::Unhealthy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_is_said_by_somebody_and_explained() {
        for name in EventName::ALL {
            assert!(!name.row().by.is_empty() && name.doc().ends_with('.'), "{name:?}");
            assert_eq!(EventName::find(name.as_str()), Some(*name));
            let written = serde_json::to_value(name).expect("serialised");
            assert_eq!(written, name.as_str(), "the name in JSON is the name in the table");
        }
    }

    #[test]
    fn no_two_events_share_a_place_in_history() {
        let bits: Vec<u32> = EventName::ALL.iter().filter_map(|it| it.bit()).collect();
        assert_eq!(bits.iter().collect::<BTreeSet<_>>().len(), bits.len());
    }

    #[test]
    fn only_what_a_job_says_belongs_to_a_part_of_its_life() {
        for name in EventName::ALL {
            let awaited_of_job = name.is_said_by(Job) && name.can_be_awaited();
            assert_eq!(name.during().is_some(), awaited_of_job, "{name:?}");
        }
    }

    #[test]
    fn an_event_is_written_with_its_name_and_details() {
        let json = |kind: &Kind| serde_json::to_string(kind).expect("serialised");
        assert_eq!(json(&Kind::TimerExpired), r#"{"event":"timerExpired"}"#);
        let gap = Kind::LogGap { lines: 3 };
        assert_eq!(json(&gap), r#"{"event":"logGap","detail":{"lines":3}}"#);
        assert_eq!(gap.name(), EventName::LogGap);
    }
}
