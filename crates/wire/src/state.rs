//! The state of a held process, as `state` files and control sockets tell it (Harpoon's
//! `ContainerState`, with what we know beyond it).
//!
//! Readers accept what older and other writers left out or spelled differently; we always write
//! `exit_status` when the process exited.

use crate::stamp;
use mainstay_core::{exit::Exit, job::Desired};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContainerState {
    pub status: ContainerStatus,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub err: String,
    #[serde(alias = "container_process_status")]
    pub container_process_state: ContainerProcessState,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub timestamp: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The process had begun by then: CLOCK_BOOTTIME, ns. Whoever has its number later began later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// While `hold` holds it: what it would leave behind if it were killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldRun>,
    /// What is wanted of it, as far as the keeper was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<Desired>,
}

/// What the next `hold` in a directory has to know about this one, should it not end by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRun {
    pub run: String,
    pub boot: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ContainerStatus {
    Up,
    Down,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerProcessState {
    pub up: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub exited: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    #[serde(skip_serializing_if = "is_false")]
    pub signaled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    #[serde(skip_serializing_if = "is_false")]
    pub oomed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_metrics: Option<ContainerMetrics>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerMetrics {
    pub restarts: u64,
    pub ooms: u64,
    /// Nanoseconds in all.
    pub cpu_time: u64,
    pub memory_usage: u64,
    pub memory_limit: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl ContainerState {
    /// Before the process is there: alive as far as anybody may know, and not up.
    #[must_use]
    pub fn starting(wall: i64) -> ContainerState {
        ContainerState {
            status: ContainerStatus::Up,
            err: String::new(),
            container_process_state: ContainerProcessState::default(),
            timestamp: stamp::rfc3339(wall),
            incarnation: None,
            pid: None,
            started: None,
            held: None,
            desired: None,
        }
    }

    #[must_use]
    pub fn up(wall: i64, pid: u32, metrics: ContainerMetrics) -> ContainerState {
        let process = ContainerProcessState {
            up: true,
            container_metrics: Some(metrics),
            ..ContainerProcessState::default()
        };
        ContainerState {
            container_process_state: process,
            pid: Some(pid),
            ..ContainerState::starting(wall)
        }
    }

    #[must_use]
    pub fn down(wall: i64, exit: &Exit, metrics: ContainerMetrics) -> ContainerState {
        let mut process = ContainerProcessState {
            container_metrics: Some(metrics),
            ..ContainerProcessState::default()
        };
        let mut err = String::new();
        match exit {
            Exit::Code { code } => {
                process.exited = true;
                process.exit_status = Some(*code);
            }
            Exit::Signal { signal, oom } => {
                process.signaled = !oom;
                process.oomed = *oom;
                process.signal = Some(signal.number());
            }
            Exit::Error { error, .. } => error.clone_into(&mut err),
        }
        ContainerState {
            status: ContainerStatus::Down,
            err,
            container_process_state: process,
            ..ContainerState::starting(wall)
        }
    }

    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a state has only plain fields")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_core::signal::Signal;

    #[test]
    fn the_seeds_own_samples_are_read() {
        for text in [
            r#"{"status": "UP", "container_process_state": {"up": true, "container_metrics": {}}}"#,
            r#"{"status": "DOWN", "container_process_state": {"up": false, "exited": true, "exit_status": 0}}"#,
            r#"{"status": "DOWN", "container_process_status": {"up": false, "exited": true}, "more": 1}"#,
        ] {
            serde_json::from_str::<ContainerState>(text).expect("readable");
        }
    }

    #[test]
    fn a_clean_exit_says_its_status_although_it_is_zero() {
        let json =
            ContainerState::down(0, &Exit::Code { code: 0 }, ContainerMetrics::default()).to_json();
        assert!(json.starts_with(
            r#"{"status":"DOWN","container_process_state":{"up":false,"exited":true,"exit_status":0,"#
        ), "{json}");
    }

    #[test]
    fn exactly_one_of_exited_signaled_and_oomed_is_said() {
        for (exit, wanted) in [
            (Exit::Code { code: 3 }, (true, false, false)),
            (Exit::Signal { signal: Signal::KILL, oom: false }, (false, true, false)),
            (Exit::Signal { signal: Signal::KILL, oom: true }, (false, false, true)),
            (Exit::Error { error: "no".into(), errno: 2 }, (false, false, false)),
        ] {
            let state = ContainerState::down(0, &exit, ContainerMetrics::default());
            let process = &state.container_process_state;
            assert_eq!((process.exited, process.signaled, process.oomed), wanted);
            assert_eq!(state.err.is_empty(), !matches!(exit, Exit::Error { .. }));
        }
    }
}
