//! What is answered about the fleet, its nodes, applications and processes.
//!
//! A struct has the members of today and those of 0.8: each finds its own.

use super::{
    stage::{CONCILIATIONS, STRATEGIES, peer_once, peer_today, word},
    view::{Application, Member, UnitedProcess, View},
};
use crate::xmlrpc::{supervisor::info::state_word, value::XmlValue};
use jiff::Timestamp;
use mainstay_core::{app::AppFailure, fleet::PeerState, job::Phase};

/// Its plugin speaks to no other.
pub(super) const VERSION: &str = "0.19.1";

/// On its way up.
const UP: [Phase; 2] = [Phase::Starting, Phase::Backoff];
/// On its way down.
const DOWN: [Phase; 1] = [Phase::Stopping];

fn now() -> XmlValue {
    XmlValue::int(Timestamp::now().as_second())
}

fn names<T: ToString>(names: &[T]) -> XmlValue {
    XmlValue::texts(names.iter().map(ToString::to_string))
}

impl View {
    /// How the fleet is, with the nodes where something is on its way.
    pub(super) fn fleet_state(&self) -> XmlValue {
        let (up, down) = (self.busy(&UP), self.busy(&DOWN));
        self.state_modes(self.me(), (XmlValue::texts(up), XmlValue::texts(down)))
    }

    /// As a node would say it, with whether something is on its way there. What only that one knows
    /// is not known here.
    pub(super) fn state_of(&self, identifier: &str) -> XmlValue {
        let is_busy = |phases: &[Phase]| {
            XmlValue::Bool(self.busy(phases).iter().any(|node| node == identifier))
        };
        self.state_modes(identifier, (is_busy(&UP), is_busy(&DOWN)))
    }

    /// The nodes with a process in one of these states.
    fn busy(&self, phases: &[Phase]) -> Vec<String> {
        let on_way = self.processes.iter().filter(|it| phases.contains(&it.phase));
        let mut nodes: Vec<String> =
            on_way.flat_map(|it| &it.nodes).map(ToString::to_string).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    fn state_modes(&self, identifier: &str, (up, down): (XmlValue, XmlValue)) -> XmlValue {
        let ((code, word), (once_code, once_word)) = (self.stage().today(), self.stage().once());
        let members = self.members();
        let missing = members.iter().any(|it| it.state != PeerState::Running);
        let states =
            members.iter().map(|it| (it.name.to_string(), XmlValue::text(peer_today(it.state).1)));
        XmlValue::pairs([
            ("identifier", XmlValue::text(identifier)),
            ("nick_identifier", XmlValue::text(identifier)),
            ("fsm_statecode", XmlValue::Int(code)),
            ("fsm_statename", XmlValue::text(word)),
            ("degraded_mode", XmlValue::Bool(missing)),
            ("discovery_mode", XmlValue::Bool(false)),
            ("master_identifier", XmlValue::text(self.master().unwrap_or_default())),
            ("starting_jobs", up),
            ("stopping_jobs", down),
            ("instance_states", XmlValue::Struct(states.collect())),
            ("statecode", XmlValue::Int(once_code)),
            ("statename", XmlValue::text(once_word)),
        ])
    }

    pub(super) fn all_state_modes(&self) -> XmlValue {
        let members = self.members();
        XmlValue::Array(members.iter().map(|it| self.state_of(it.name.as_str())).collect())
    }

    /// Empty: there is none.
    pub(super) fn master_info(&self) -> XmlValue {
        match self.master() {
            Some(master) => identified(&master),
            None => XmlValue::Struct(Vec::new()),
        }
    }

    pub(super) fn core(&self) -> XmlValue {
        let core = self.plan.fleet.as_ref().map_or(&[][..], |fleet| &fleet.core);
        XmlValue::Array(core.iter().map(|name| identified(name.as_str())).collect())
    }

    pub(super) fn strategies(&self) -> XmlValue {
        let fleet = self.plan.fleet.as_deref();
        let (strategy, conciliation) =
            fleet.map(|it| (it.strategy, it.conciliation)).unwrap_or_default();
        XmlValue::pairs([
            ("auto-fencing", XmlValue::Bool(fleet.is_some_and(|it| it.auto_fence))),
            ("starting", XmlValue::text(word(&STRATEGIES, &strategy))),
            ("conciliation", XmlValue::text(word(&CONCILIATIONS, &conciliation))),
            ("supvisors_failure", XmlValue::text("CONTINUE")),
        ])
    }

    pub(super) fn node(&self, member: &Member) -> XmlValue {
        let name = member.name.to_string();
        let ((code, word), (_, once)) = (peer_today(member.state), peer_once(member.state));
        let failure = self.processes.iter().any(|it| it.failed);
        let failure = failure && member.state == PeerState::Running;
        let seen = if member.state == PeerState::Running { now() } else { XmlValue::Int(0) };
        XmlValue::pairs([
            ("identifier", XmlValue::text(name.as_str())),
            ("nick_identifier", XmlValue::text(name.as_str())),
            ("node_name", XmlValue::text(member.host.as_str())),
            ("port", XmlValue::int(i64::from(member.port))),
            ("statecode", XmlValue::Int(code)),
            ("statename", XmlValue::text(word)),
            ("loading", XmlValue::int(i64::from(member.load))),
            ("process_failure", XmlValue::Bool(failure)),
            // Nothing ticks here.
            ("remote_sequence_counter", XmlValue::Int(0)),
            ("remote_time", seen.clone()),
            ("remote_mtime", XmlValue::Double(0.0)),
            ("local_sequence_counter", XmlValue::Int(0)),
            ("local_time", seen.clone()),
            ("local_mtime", XmlValue::Double(0.0)),
            ("address_name", XmlValue::Text(name)),
            ("address_state", XmlValue::text(once)),
            ("sequence_counter", XmlValue::Int(0)),
        ])
    }

    /// As 0.8 has it: its own word and number for the state.
    pub(super) fn node_once(&self, member: &Member) -> XmlValue {
        let (code, word) = peer_once(member.state);
        let XmlValue::Struct(mut members) = self.node(member) else {
            return XmlValue::Struct(Vec::new());
        };
        for (name, value) in &mut members {
            match name.as_str() {
                "statecode" => *value = XmlValue::Int(code),
                "statename" => *value = XmlValue::text(word),
                _ => {}
            }
        }
        XmlValue::Struct(members)
    }

    pub(super) fn conflicts(&self) -> XmlValue {
        let all = self.processes.iter().filter(|process| process.conflict);
        XmlValue::Array(all.map(process).collect())
    }
}

fn identified(name: &str) -> XmlValue {
    XmlValue::pairs([
        ("identifier", XmlValue::text(name)),
        ("nick_identifier", XmlValue::text(name)),
    ])
}

/// Where a node is reached.
pub(super) fn network(member: &Member) -> XmlValue {
    XmlValue::pairs([
        ("identifier", XmlValue::text(member.name.as_str())),
        ("nick_identifier", XmlValue::text(member.name.as_str())),
        ("host_id", XmlValue::text(member.host.as_str())),
        ("http_port", XmlValue::int(i64::from(member.port))),
        ("stereotypes", XmlValue::Array(Vec::new())),
    ])
}

pub(super) fn application(application: &Application<'_>) -> XmlValue {
    let (code, word) = application.state();
    XmlValue::pairs([
        ("application_name", XmlValue::text(application.name)),
        ("managed", XmlValue::Bool(application.managed)),
        ("now_monotonic", XmlValue::Double(0.0)),
        ("statecode", XmlValue::Int(code)),
        ("statename", XmlValue::text(word)),
        ("major_failure", XmlValue::Bool(application.failure == AppFailure::Major)),
        ("minor_failure", XmlValue::Bool(application.failure == AppFailure::Minor)),
    ])
}

pub(super) fn process(process: &UnitedProcess) -> XmlValue {
    let (code, word) = state_word(process.phase);
    let expected = process.phase != Phase::Exited || !process.failed;
    XmlValue::pairs([
        ("application_name", XmlValue::text(process.group.as_str())),
        ("process_name", XmlValue::text(process.name.as_str())),
        ("now_monotonic", XmlValue::Double(0.0)),
        ("statecode", XmlValue::Int(code)),
        ("statename", XmlValue::text(word)),
        ("expected_exit", XmlValue::Bool(expected)),
        ("last_event_mtime", XmlValue::Double(0.0)),
        ("identifiers", names(&process.nodes)),
        ("addresses", names(&process.nodes)),
        ("extra_args", XmlValue::Text(process.args.join(" "))),
    ])
}

/// What a start of it would come to. `ends`: the start is over when it has ended.
pub(super) fn tested(
    process: &UnitedProcess,
    ends: bool,
    node: Option<&str>,
    reason: Option<&str>,
) -> XmlValue {
    let state = match (node, ends) {
        (None, _) => "FATAL",
        (Some(_), true) => "EXITED",
        (Some(_), false) => "RUNNING",
    };
    XmlValue::pairs([
        ("application_name", XmlValue::text(process.group.as_str())),
        ("process_name", XmlValue::text(process.name.as_str())),
        ("state", XmlValue::text(state)),
        ("forced_reason", XmlValue::text(reason.unwrap_or_default())),
        ("running_identifiers", XmlValue::texts(node)),
    ])
}
