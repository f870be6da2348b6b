//! `GET /v1/openapi.json`: made from the table of routes, so that no route is missing.

use crate::routes::v1::{ROUTES, Route};
use axum::Json;
use serde_json::{Map, Value, json};

pub(crate) async fn describe() -> Json<Value> {
    Json(document())
}

pub(crate) fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Mainstay",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "One node: its jobs, its events, its configuration. Errors are problem \
                            documents (RFC 9457).",
        },
        "paths": paths,
        "components": { "schemas": schemas() },
    })
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "summary": route.summary,
        "operationId": operation_id(route),
        "parameters": parameters(route),
        "responses": {
            "2XX": { "description": "Done", "content": content(route.answer) },
            "default": {
                "description": "Not done, and why",
                "content": { "application/problem+json": { "schema": reference("Problem") } },
            },
        },
    });
    if route.body != "Nothing" {
        operation["requestBody"] = json!({ "content": content(route.body) });
    }
    operation
}

/// `post_jobs_start`
fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '.']).filter(|word| !word.is_empty() && *word != "v1");
    let words = words.filter(|word| !word.starts_with('{'));
    std::iter::once(route.method).chain(words).collect::<Vec<_>>().join("_")
}

fn parameters(route: &Route) -> Vec<Value> {
    let in_path = route.path.split('/').filter_map(|word| word.strip_prefix('{')).map(|word| {
        let name = word.trim_end_matches('}');
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
    });
    let lines = route.answer == "Lines";
    let in_query = route.query.iter().map(|name| {
        let schema = match *name {
            "since" if lines => json!({ "type": "string", "examples": ["10m"] }),
            "since" => json!({ "type": "integer", "minimum": 0 }),
            "follow" => json!({ "type": "boolean", "default": !lines }),
            "jobs" => json!({ "type": "string", "examples": ["web,db"] }),
            "lines" => json!({ "type": "string", "default": "100", "examples": ["all"] }),
            "format" => json!({ "enum": ["text", "json"], "default": "text" }),
            _ => json!({ "type": "string", "examples": ["30s"] }),
        };
        json!({ "name": name, "in": "query", "schema": schema })
    });
    in_path.chain(in_query).collect()
}

fn content(schema: &str) -> Value {
    match schema {
        "Lines" => json!({
            "text/plain": { "schema": { "type": "string" } },
            "application/x-ndjson": { "schema": reference("Line") },
        }),
        // A name that stands for several instances is answered with all of them.
        "Job" | "Why" => {
            let several = if schema == "Job" { "Jobs" } else { "Whys" };
            let either = json!({ "oneOf": [reference(schema), reference(several)] });
            json!({ "application/json": { "schema": either } })
        }
        "Events" => json!({ "text/event-stream": { "schema": reference("Event") } }),
        name => json!({ "application/json": { "schema": reference(name) } }),
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn schemas() -> Value {
    let text = json!({ "type": "string" });
    let maybe_text = json!({ "type": ["string", "null"] });
    let number = json!({ "type": "integer" });
    let maybe_number = json!({ "type": ["integer", "null"] });
    let flag = json!({ "type": "boolean" });
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let time = json!({ "type": "string", "format": "date-time" });
    let list = |name: &str| json!({ "type": "array", "items": reference(name) });
    let words = |words: &[&str]| json!({ "type": "string", "enum": words });
    json!({
        "Any": { "type": "object" },
        "Status": object(json!({
            "node": text, "version": text,
            "state": words(&["starting", "running", "maintenance", "stopping"]),
            "run": text, "run_dir": text, "state_dir": text, "agent_restarts": number,
            "keeper": { "type": ["object", "null"] }, "jobs": list("Job"),
            "telemetry": { "type": ["object", "null"] },
            "containerpilot": { "type": ["object", "null"] },
            "strays": { "type": ["array", "null"] },
        })),
        "Job": object(json!({
            "name": text,
            "state": words(&["STOPPED", "STARTING", "RUNNING", "BACKOFF", "STOPPING", "EXITED",
                             "FATAL", "UNKNOWN"]),
            "desired": words(&["run", "rest", "disabled"]),
            "health": words(&["unknown", "healthy", "unhealthy"]),
            "as_desired": flag, "checks": list("Check"), "pid": maybe_number,
            "incarnation": number, "restarts": number,
            "exit": { "type": ["object", "null"] }, "since": time, "waiting": list("Waiting"),
            "app": maybe_text, "instance_of": maybe_text, "args": texts, "tree": maybe_text, "unenforced": texts,
            "log": { "type": ["object", "null"] },
        })),
        "Check": object(json!({
            "name": text, "state": words(&["unknown", "passing", "failing"]), "since": time,
            "output": text,
        })),
        "Waiting": object(json!({
            "source": text, "event": text, "since": time, "reason": maybe_text,
        })),
        "Jobs": object(json!({ "instances_of": text, "jobs": list("Job") })),
        "Whys": object(json!({ "instances_of": text, "jobs": list("Why") })),
        "Line": object(json!({
            "time": maybe_text, "job": text, "stream": maybe_text, "text": text,
        })),
        "Why": object(json!({ "job": text, "lines": texts })),
        "Changes": object(json!({
            "added": texts, "removed": texts, "changed": list("Change"), "jobs": list("Change"),
            "ends": flag, "node": texts, "api": texts, "apps": flag, "warnings": text,
        })),
        "Change": object(json!({
            "job": text, "change": words(&["added", "removed", "unchanged", "live", "restart"]),
            "keys": texts,
            "effect": words(&["keep", "live", "start", "restart", "wait", "stop-and-wait", "stop",
                              "not-again", "later"]),
            "because": text, "waits": texts,
        })),
        "App": object(json!({ "app": text, "jobs": list("Job") })),
        "State": object(json!({ "state": text })),
        "Event": object(json!({
            "seq": number, "time": time, "source": text, "event": text,
            "detail": { "type": "object" },
        })),
        "Problem": object(json!({
            "title": text, "status": number, "detail": text, "job": reference("Job"),
            "changes": reference("Changes"),
        })),
        "Start": object(json!({ "args": texts, "now": flag })),
        "Restart": object(json!({ "args": texts })),
        "Signal": object(json!({ "signal": text, "to": words(&["leader", "group", "tree"]) })),
        "Maintenance": object(json!({ "on": flag })),
        "Environ": { "type": "object", "additionalProperties": maybe_text },
        "Metrics": { "type": "object", "additionalProperties": { "type": "number" } },
        "Changed": object(json!({ "changed": texts })),
        "Taken": object(json!({ "taken": number })),
        "Upgrade": object(json!({ "binary": maybe_text })),
    })
}

fn object(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_that_is_named_is_there_and_every_operation_has_its_own_name() {
        let document = document();
        let text = document.to_string();
        for name in text.split("#/components/schemas/").skip(1) {
            let name = name.split('"').next().expect("a name");
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
        let mut ids: Vec<String> = ROUTES.iter().map(operation_id).collect();
        ids.sort();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert_eq!(
            document["paths"]["/v1/jobs/{job}/start"]["post"]["parameters"][0]["name"],
            "job"
        );
    }
}
