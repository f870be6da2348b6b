//! Journals of format 2: lines that hold the state of jobs and of the node themselves, turned into
//! the records of today.
//!
//! | format 2 | records |
//! |---|---|
//! | `life` | `node`, `seq`, an `app` and a `watch` each |
//! | `jobs` | `job`, in parts; `rest` for the reason of its app; `leaves` if it is on its way out |
//! | `environ`, `plan` | the same |
//! | `forgotten` | `job_gone` |

use super::line;
use crate::inputs::seen_tokens::SeenTokens;
use mainstay_core::{event::Event, record::Record};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Map, Value, json};

/// Everything at one moment.
#[derive(Debug, Deserialize)]
pub(super) struct Base {
    pub(super) taken: SeenTokens,
    pub(super) upgrade: u64,
    #[serde(flatten)]
    pub(super) state: Changes,
}

/// What an input has changed.
#[derive(Debug, Deserialize)]
pub(super) struct Step {
    #[serde(deserialize_with = "events")]
    pub(super) events: Vec<Event>,
    pub(super) taken: Option<u64>,
    pub(super) upgrade: Option<u64>,
    #[serde(flatten)]
    pub(super) state: Changes,
}

#[derive(Debug, Deserialize)]
pub(super) struct Changes {
    plan: Option<Value>,
    life: Option<Map<String, Value>>,
    environ: Option<Value>,
    #[serde(default)]
    jobs: Map<String, Value>,
    #[serde(default)]
    forgotten: Vec<Value>,
}

impl Changes {
    /// In the order in which they count: a plan forgets what it does not have.
    pub(super) fn records(self) -> Vec<Record> {
        let plan = self.plan.map(|plan| json!({ "plan": plan }));
        let environ = self.environ.map(|environ| json!({ "environ": environ }));
        let records = plan
            .into_iter()
            .chain(self.life.into_iter().flat_map(node_state))
            .chain(environ)
            .chain(self.jobs.into_iter().flat_map(|(name, state)| job(&name, state)))
            .chain(self.forgotten.into_iter().map(|name| json!({ "job_gone": name })));
        records.map(|it| line::record(&it)).collect()
    }
}

fn node_state(mut life: Map<String, Value>) -> Vec<Value> {
    let mut records = Vec::new();
    rename(&mut life, "course", "stage");
    rename(&mut life, "apps_from", "boot");
    records.extend(life.remove("seq").map(|seq| json!({ "seq": seq })));
    for (part, kind) in [("apps", "app"), ("watches", "watch")] {
        if let Some(Value::Object(all)) = life.remove(part) {
            let record = |(name, state)| json!({ kind: [Value::String(name), state] });
            records.extend(all.into_iter().map(record));
        }
    }
    records.push(json!({ "node": life }));
    records
}

fn job(name: &str, state: Value) -> Vec<Value> {
    let Value::Object(mut job) = state else { return vec![json!({ "job": [name, state] })] };
    let reason = job.remove("resting");
    // A user's stop, and whatever else has made it run, has left no reason of the app.
    let reason = reason.filter(|_| job.get("desired").is_some_and(|it| it == "rest"));
    let reason = match reason.as_ref().and_then(Value::as_str) {
        Some("turn") => Some("not-reached"),
        Some("aborted") => Some("start-aborted"),
        Some("app-failed") => Some("app-failed"),
        Some(_) | None => None,
    };
    if let Some(Value::Object(stop)) = job.get_mut("state").and_then(|it| it.get_mut("stopping")) {
        rename(stop, "ladder", "stage");
    }
    let run = ["state", "incarnation", "ended", "restarts", "last_exit", "since", "overran"];
    let run = part(&mut job, &run);
    let wish = part(&mut job, &["desired", "args"]);
    rename(&mut job, "checks", "states");
    let checks = part(&mut job, &["health", "states"]);
    rename(&mut job, "renewal", "pending_restart");
    rename(&mut job, "notice", "announcement");
    if let Some(Value::Object(gate)) = job.get_mut("gate") {
        rename(gate, "now", "skips_latches");
        let until = gate.remove("errand_until").unwrap_or(Value::Null);
        if gate.remove("errand") == Some(Value::Bool(true)) {
            gate.insert("hook_run".to_owned(), json!({ "until": until }));
        }
    }
    let leaves = job.remove("leaving") == Some(Value::Bool(true));
    job.extend([("run", run), ("wish", wish), ("checks", checks)].map(|(k, v)| (k.to_owned(), v)));
    let mut records = vec![json!({ "job": [name, job] }), json!({ "rest": [name, reason] })];
    if leaves {
        records.push(json!({ "leaves": name }));
    }
    records
}

fn events<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Event>, D::Error> {
    let events = Vec::<Value>::deserialize(input)?.into_iter().map(event);
    events.map(|it| line::read(&it).map_err(D::Error::custom)).collect()
}

/// An event of before: `stopped` had no details.
pub(super) fn event(mut event: Value) -> Value {
    if event["event"] == "stopped" && event.get("detail").is_none() {
        event["detail"] = json!({ "incarnation": 0 });
    }
    event
}

fn part(job: &mut Map<String, Value>, keys: &[&str]) -> Value {
    keys.iter().filter_map(|key| job.remove_entry(*key)).collect::<Map<String, Value>>().into()
}

fn rename(object: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = object.remove(from) {
        object.insert(to.to_owned(), value);
    }
}
