//! The schemas of what answers have from core, which knows nothing of schemas.
//!
//! Words are written by serde, from the values themselves: they cannot be misspelled, and one that
//! is added to core does not compile before it stands here as well.

use crate::link::TreeKind;
use mainstay_core::{
    app::{AppFailure, AppPhase},
    discovery::Standing,
    fleet::{Conciliation, PeerState},
    job::{Desired, Health, Phase, Verdict},
    node::{Effect, NodePhase},
    plan::{self, SignalTarget},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

macro_rules! words {
    ($($schema:ident of $of:ty { $($word:path),* $(,)? })*) => {$(
        #[derive(Debug)]
        pub(super) struct $schema;

        impl JsonSchema for $schema {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($schema).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let _all_are_here = |word: $of| match word { $($word => ()),* };
                json_schema!({ "type": "string", "enum": [$($word),*] })
            }
        }
    )*};
}

words! {
    PeerStateWord of PeerState {
        PeerState::Unknown, PeerState::Checking, PeerState::Running, PeerState::Silent,
        PeerState::Isolated,
    }
    ConciliationWord of Conciliation {
        Conciliation::Senicide, Conciliation::Infanticide, Conciliation::User, Conciliation::Stop,
        Conciliation::Restart, Conciliation::RunningFailure,
    }
    NodePhaseWord of NodePhase {
        NodePhase::Starting, NodePhase::Running, NodePhase::Maintenance, NodePhase::Stopping,
    }
    AppPhaseWord of AppPhase {
        AppPhase::Stopped, AppPhase::Starting, AppPhase::Running, AppPhase::Stopping,
        AppPhase::Backoff,
    }
    AppFailureWord of AppFailure { AppFailure::None, AppFailure::Minor, AppFailure::Major }
    PhaseWord of Phase {
        Phase::Stopped, Phase::Starting, Phase::Running, Phase::Backoff, Phase::Stopping,
        Phase::Exited, Phase::Fatal, Phase::Unknown,
    }
    DesiredWord of Desired { Desired::Run, Desired::Rest, Desired::Disabled }
    HealthWord of Health { Health::Unknown, Health::Healthy, Health::Unhealthy }
    VerdictWord of Verdict { Verdict::Unknown, Verdict::Passing, Verdict::Failing }
    StandingWord of Standing { Standing::Passing, Standing::Warning, Standing::Critical }
    TreeWord of TreeKind { TreeKind::Cgroup, TreeKind::Group }
    ReachWord of SignalTarget { SignalTarget::Leader, SignalTarget::Group, SignalTarget::Tree }
    ChangeWord of plan::Change {
        plan::Change::Added, plan::Change::Removed, plan::Change::Unchanged, plan::Change::Live,
        plan::Change::Restart,
    }
    EffectWord of Effect {
        Effect::Keep, Effect::Live, Effect::Start, Effect::Restart, Effect::Wait,
        Effect::StopAndWait, Effect::Stop, Effect::NotAgain, Effect::Later,
    }
}

/// The schema of how a run ended.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Exit", untagged)]
#[expect(dead_code, reason = "only its schema is used; the test below holds it against core's")]
pub(super) enum ExitSchema {
    Code {
        code: i32,
    },
    Signal {
        signal: String,
        /// The kernel killed it for want of memory.
        oom: bool,
    },
    /// It never ran.
    Error {
        error: String,
        errno: i32,
    },
}

/// The schema of what a process had used when it ended, with those of its children that it waited
/// for.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Usage")]
#[expect(dead_code, reason = "only its schema is used; the test below holds it against core's")]
pub(super) struct UsageSchema {
    /// Seconds of CPU time in its own code.
    cpu_user: f64,
    /// Seconds of CPU time in the kernel.
    cpu_system: f64,
    /// The largest resident set, in bytes.
    max_rss: u64,
}

/// The schema of an event's name, and of what more there is to say.
#[derive(Debug, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct KindSchema {
    event: String,
    #[schemars(default, skip_serializing_if = "Option::is_none")]
    detail: Option<serde_json::Map<String, serde_json::Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_core::{
        exit::{Exit, Usage},
        signal::Signal,
    };
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn every_way_to_end_fits_its_schema() {
        let all = [
            Exit::Code { code: 1 },
            Exit::Signal { signal: Signal::KILL, oom: true },
            Exit::Error { error: "not found".to_owned(), errno: 2 },
        ];
        let mut schema = schemars::schema_for!(ExitSchema).to_value();
        for exit in schema["anyOf"].as_array_mut().expect("one of several") {
            exit["additionalProperties"] = json!(false);
        }
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        for exit in all {
            let known = match &exit {
                Exit::Code { code: _ } => "code",
                Exit::Signal { signal: _, oom: _ } => "signal",
                Exit::Error { error: _, errno: _ } => "error",
            };
            let value = json!(exit);
            assert!(value.get(known).is_some() && validator.is_valid(&value), "{value}");
        }
    }

    #[test]
    fn what_a_process_had_used_fits_its_schema() {
        let mut schema = schemars::schema_for!(UsageSchema).to_value();
        schema["additionalProperties"] = json!(false);
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let cpu = Duration::from_millis(1500);
        let usage = json!(Usage { cpu_user: cpu, cpu_system: cpu, max_rss: 4096 });
        assert!(validator.is_valid(&usage), "{usage}");
    }

    #[test]
    fn words_are_those_that_serde_writes() {
        let schema = schemars::schema_for!(EffectWord).to_value();
        assert!(schema["enum"].as_array().expect("words").contains(&json!("stop-and-wait")));
    }
}
