//! `GET /v1/openapi.json`: made from the table of routes, so that no route is missing, and from the
//! types of what is sent, so that no field is.

use crate::{
    extract::Nothing,
    routes::v1::{ROUTES, Route},
};
use axum::Json;
use mainstay_wire::api::{LogLine, ProblemDocument, StreamedEvent};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

pub(crate) async fn describe() -> Json<Value> {
    Json(document())
}

/// What is sent, by media type. `None`: nothing is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contents(fn(&mut SchemaGenerator) -> Option<Value>);

impl Contents {
    pub(crate) const fn of<C: Content>() -> Contents {
        Contents(C::content)
    }
}

pub(crate) trait Content {
    fn content(schemas: &mut SchemaGenerator) -> Option<Value>;
}

impl Content for Nothing {
    fn content(_: &mut SchemaGenerator) -> Option<Value> {
        None
    }
}

impl<T: JsonSchema> Content for Json<T> {
    fn content(schemas: &mut SchemaGenerator) -> Option<Value> {
        let schema = schemas.subschema_for::<T>();
        Some(json!({ "application/json": { "schema": schema } }))
    }
}

/// What a route of another node takes or answers.
pub(crate) enum Anything {}

impl Content for Anything {
    fn content(_: &mut SchemaGenerator) -> Option<Value> {
        Some(json!({ "*/*": {} }))
    }
}

/// Lines that jobs have written.
pub(crate) enum LogLines {}

impl Content for LogLines {
    fn content(schemas: &mut SchemaGenerator) -> Option<Value> {
        let line = schemas.subschema_for::<LogLine>();
        Some(json!({
            "text/plain": { "schema": { "type": "string" } },
            "application/x-ndjson": { "schema": line },
        }))
    }
}

/// Server-sent events.
pub(crate) enum EventStream {}

impl Content for EventStream {
    fn content(schemas: &mut SchemaGenerator) -> Option<Value> {
        let event = schemas.subschema_for::<StreamedEvent<'_>>();
        Some(json!({ "text/event-stream": { "schema": event } }))
    }
}

/// Schemas of what is read and of what is written differ in what may be left out.
struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl Schemas {
    fn new() -> Schemas {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Schemas {
            read: settings.clone().for_deserialize().into_generator(),
            written: settings.for_serialize().into_generator(),
        }
    }

    /// By name.
    fn all(mut self) -> Map<String, Value> {
        let mut all = self.read.take_definitions(true);
        all.extend(self.written.take_definitions(true));
        all
    }
}

pub(crate) fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for route in ROUTES {
        // It has no word for the rest of a path.
        let path = paths.entry(route.path.replace("{*", "{")).or_insert_with(|| json!({}));
        path[route.method] = operation(route, &mut schemas);
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
        "components": { "schemas": schemas.all() },
    })
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let problem = schemas.written.subschema_for::<ProblemDocument>();
    let mut operation = json!({
        "summary": route.summary,
        "operationId": operation_id(route),
        "parameters": parameters(route),
        "responses": {
            "2XX": { "description": "Done", "content": route.answer.0(&mut schemas.written) },
            "default": {
                "description": "Not done, and why",
                "content": { "application/problem+json": { "schema": problem } },
            },
        },
    });
    if let Some(content) = route.body.0(&mut schemas.read) {
        operation["requestBody"] = json!({ "content": content });
    }
    operation
}

/// `post_jobs_start`
fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '.']).filter(|word| !word.is_empty() && *word != "v1");
    let mut words: Vec<&str> = words.collect();
    // One of several is called by its own name.
    if let [.., _, one] = words.as_slice()
        && one.starts_with('{')
    {
        let at = words.len() - 2;
        words.remove(at);
    }
    let last = words.len().saturating_sub(1);
    let named = words.iter().enumerate().filter(|(at, word)| *at == last || !word.starts_with('{'));
    let named = named.map(|(_, word)| word.trim_matches(['{', '}']));
    std::iter::once(route.method).chain(named).collect::<Vec<_>>().join("_")
}

fn parameters(route: &Route) -> Vec<Value> {
    let in_path = route.path.split('/').filter_map(|word| word.strip_prefix('{')).map(|word| {
        let name = word.trim_start_matches('*').trim_end_matches('}');
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
    });
    let lines = route.query.contains(&"lines");
    let in_query = route.query.iter().map(|name| {
        let schema = match *name {
            "since" if lines => json!({ "type": "string", "examples": ["10m"] }),
            "since" => json!({ "type": "integer", "minimum": 0 }),
            "follow" => json!({ "type": "boolean", "default": !lines }),
            "fleet" | "here" => json!({ "type": "boolean", "default": false }),
            "job" => json!({ "type": "string", "examples": ["web"] }),
            "jobs" => json!({ "type": "string", "examples": ["web,db"] }),
            "lines" => json!({ "type": "string", "default": "100", "examples": ["all"] }),
            "format" => json!({ "enum": ["text", "json"], "default": "text" }),
            _ => json!({ "type": "string", "examples": ["30s"] }),
        };
        json!({ "name": name, "in": "query", "schema": schema })
    });
    in_path.chain(in_query).collect()
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
