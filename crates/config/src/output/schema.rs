//! The JSON schema of a configuration, written from the registry.
//!
//! It is for editors: it completes keys and words, shows what they mean, and marks most mistakes.
//! Whatever loads is accepted by it; `mainstay check` knows more.

use crate::keys::{
    Key, Kind, keys,
    when::{SIGNALS, events},
};
use serde_json::{Map, Value, json};

/// A string that is still to be expanded may become anything.
const VARIABLE: &str = r"\$\{";
const NAME: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$";

/// A JSON schema (draft 2020-12) for editors.
#[must_use]
pub fn schema() -> Value {
    let mut job = table("jobs.NAME");
    if let Some(object) = job.as_object_mut() {
        let either = json!([{ "required": ["exec"] }, { "required": ["advertise"] }]);
        object.insert("anyOf".to_owned(), either);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Mainstay configuration",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "node": described(table("node"), "The node as a whole."),
            "log": described(table("log"), "Defaults of the jobs' logs, and the level of our own."),
            "jobs": named("The jobs by name.", job),
            "telemetry": described(table("telemetry"), "What is shown to those who watch."),
            "containerpilot": described(
                table("containerpilot"),
                "For what was made for ContainerPilot.",
            ),
            "apps": named("Jobs that start and stop together, in order.", table("apps.NAME")),
            "watches": named("Services that are watched, by name.", table("watches.NAME")),
            "discovery": described(table("discovery"), "Where services are found."),
            "api": described(table("api"), "Where the API can be reached, and by whom."),
            "fleet": described(table("fleet"), "The nodes that act as one."),
            "rollout": described(table("rollout"), "How configuration is rolled out."),
            "profiles": named("Configuration data, by name.", table("profiles.NAME")),
            "templates": named("Files that are made of profiles.", table("templates.NAME")),
            "services": named("Who is told of changed files.", table("services.NAME")),
        },
    })
}

fn named(description: &str, each: Value) -> Value {
    json!({
        "description": description,
        "type": "object",
        "propertyNames": { "pattern": NAME },
        "additionalProperties": each,
    })
}

fn described(mut schema: Value, description: &str) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.insert("description".to_owned(), json!(description));
    }
    schema
}

/// The keys of one table.
fn table(path: &str) -> Value {
    let properties: Map<String, Value> = keys()
        .iter()
        .filter(|key| key.table == path)
        .map(|key| (key.name.to_owned(), property(key)))
        .collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn property(key: &Key) -> Value {
    let mut schema = described(kind(key), key.doc);
    let default = toml::from_str::<Map<String, Value>>(&format!("x = {}", key.default));
    if let (Some(object), Ok(Some(default))) =
        (schema.as_object_mut(), default.map(|it| it.get("x").cloned()))
    {
        object.insert("default".to_owned(), default);
    }
    schema
}

fn kind(key: &Key) -> Value {
    let inner = || table(&format!("{}.{}", key.table, key.name));
    match key.kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Integer => json!({ "type": "integer" }),
        Kind::Number => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Kind::Text => json!({ "type": "string" }),
        Kind::Numbers => json!({ "type": "array", "items": { "type": "number" } }),
        Kind::Integers => json!({ "type": "array", "items": { "type": "integer" } }),
        Kind::Duration => either(&[
            json!({ "type": "number", "minimum": 0 }),
            pattern(r"^([0-9]+(\.[0-9]+)?(d|h|ms|m|s))+$"),
        ]),
        Kind::Size => size(),
        Kind::Limit => either(&[size(), json!({ "const": "unlimited" })]),
        Kind::Signal => json!({ "type": ["string", "integer"] }),
        Kind::Mode => either(&[
            json!({ "type": "integer", "minimum": 0, "maximum": 0o777 }),
            pattern("^(0o)?[0-7]{1,4}$"),
        ]),
        Kind::Account => account(),
        Kind::Accounts => json!({ "type": "array", "items": account() }),
        Kind::Command => either(&[
            json!({ "type": "string", "minLength": 1 }),
            json!({ "type": "array", "minItems": 1, "items": { "type": ["string", "integer"] } }),
        ]),
        Kind::OneOf(words) => one_of(words),
        Kind::OneOfOrTable(words) => either(&[one_of(words), inner()]),
        Kind::WordsOrTables(words) => {
            let one = either(&[one_of(words), inner()]);
            either(&[one.clone(), json!({ "type": "array", "items": one })])
        }
        Kind::Table => inner(),
        Kind::Tables => {
            either(&[inner(), json!({ "type": "array", "minItems": 1, "items": inner() })])
        }
        Kind::TextOrTable => either(&[json!({ "type": "string" }), inner()]),
        Kind::Texts => either(&[
            json!({ "type": "string" }),
            json!({ "type": "array", "items": { "type": "string" } }),
        ]),
        Kind::Event => {
            let words: Vec<&str> = events().chain(SIGNALS).collect();
            // A signal may be written in other ways.
            either(&[json!({ "enum": words }), pattern("^((SIG)?[A-Za-z0-9]+|[0-9]+)$")])
        }
        Kind::Share => {
            either(&[json!({ "type": "integer", "minimum": 1 }), pattern("^([1-9][0-9]?|100)%$")])
        }
        Kind::Statuses => {
            let one = either(&[
                json!({ "type": "integer", "minimum": 100, "maximum": 599 }),
                pattern("^([1-5][xX][xX]|[1-5][0-9]{2}(-[1-5][0-9]{2})?)$"),
            ]);
            either(&[one.clone(), json!({ "type": "array", "items": one })])
        }
        Kind::Map => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean"] },
        }),
    }
}

fn either(schemas: &[Value]) -> Value {
    json!({ "anyOf": schemas })
}

fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": format!("{pattern}|{VARIABLE}") })
}

fn one_of(words: &[&str]) -> Value {
    either(&[json!({ "enum": words }), json!({ "type": "string", "pattern": VARIABLE })])
}

fn size() -> Value {
    either(&[json!({ "type": "integer", "minimum": 0 }), pattern("^[0-9]+[KMGT]?$")])
}

fn account() -> Value {
    json!({ "type": ["string", "integer"] })
}
