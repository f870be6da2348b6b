//! Holds every answer against the description of the API.
//!
//! Whatever a test of this crate asks goes through [`Described`]: it notes what is sent and what
//! comes back, and looks up in `/v1/openapi.json` what may come. A field that the description does
//! not have fails the test, as does an answer that is no answer to that route.

use crate::driven::Node;
use jsonschema::Validator;
use serde_json::{Value, json};
use std::{
    io::{self, Read, Write},
    sync::OnceLock,
    thread,
};

/// A connection to the API, with what has gone over it. Looked at when it is closed.
pub(crate) struct Described<S> {
    pub(crate) stream: S,
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl<S> Described<S> {
    pub(crate) fn new(stream: S) -> Described<S> {
        Described { stream, sent: Vec::new(), received: Vec::new() }
    }
}

impl<S: Read> Read for Described<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.stream.read(buffer)?;
        self.received.extend_from_slice(&buffer[..length]);
        Ok(length)
    }
}

impl<S: Write> Write for Described<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.stream.write(bytes)?;
        self.sent.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl<S> Drop for Described<S> {
    fn drop(&mut self) {
        if !thread::panicking() {
            check(&self.sent, &self.received);
        }
    }
}

/// One request and its answer. What is not whole yet is left alone.
fn check(sent: &[u8], received: &[u8]) {
    let (sent, received) = (String::from_utf8_lossy(sent), String::from_utf8_lossy(received));
    let mut words = sent.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return };
    let Some((head, body)) = received.split_once("\r\n\r\n") else { return };
    let path = target.split('?').next().unwrap_or_default();
    let status = head.split(' ').nth(1).unwrap_or_default();
    let media = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-type").then_some(value)
    });
    let media = media.and_then(|value| value.split(';').next()).unwrap_or_default();
    let asked = format!("{method} {target} -> {status} {media}");
    let Some(schema) = schema_of(method, path, status, media) else {
        // Whatever is not described is an error, or speaks for another tool.
        let described = path.starts_with("/v1/") && status.starts_with('2');
        assert!(!described, "{asked}: the description has no such answer");
        return;
    };
    let validator = validator(schema);
    let fits = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{asked}: {text}"));
        let wrong: Vec<String> = validator
            .iter_errors(&value)
            .map(|it| format!("{}: {it}", it.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{asked} is not as described: {wrong:#?}\n{value:#}");
    };
    match media {
        "text/plain" => {}
        "application/x-ndjson" => whole(body, "\n").for_each(fits),
        "text/event-stream" => whole(body, "\n\n")
            .filter_map(|event| event.lines().find_map(|line| line.strip_prefix("data: ")))
            .for_each(fits),
        _ => fits(body),
    }
}

/// The parts of a text that have their end.
fn whole<'a>(text: &'a str, end: &'static str) -> impl Iterator<Item = &'a str> {
    text.split_inclusive(end).filter_map(move |part| part.strip_suffix(end))
}

/// What the description says of an answer; an error may be one of a route that there is not.
fn schema_of(method: &str, path: &str, status: &str, media: &str) -> Option<Value> {
    let same = |template: &str| {
        let (parts, wanted): (Vec<&str>, Vec<&str>) =
            (path.split('/').collect(), template.split('/').collect());
        parts.len() == wanted.len()
            && parts.iter().zip(&wanted).all(|(part, it)| part == it || it.starts_with('{'))
    };
    if !status.starts_with('2') {
        let problem = json!({ "$ref": "#/components/schemas/Problem" });
        return (media == "application/problem+json").then_some(problem);
    }
    let (_, operations) =
        document()["paths"].as_object()?.iter().find(|(template, _)| same(template))?;
    let answer = &operations[method.to_lowercase()]["responses"]["2XX"];
    answer["content"][media].get("schema").cloned()
}

fn validator(schema: Value) -> Validator {
    let mut schema = schema;
    schema["components"] = document()["components"].clone();
    jsonschema::validator_for(&schema).expect("a schema")
}

/// The description, with nothing beside what it names.
fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let node = Node::start();
        let mut stream = node.connect().stream.try_clone().expect("a socket");
        stream.write_all(b"GET /v1/openapi.json HTTP/1.0\r\n\r\n").expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let body = text.split_once("\r\n\r\n").expect("an answer").1;
        let mut document: Value = serde_json::from_str(body).expect("a description");
        close(&mut document);
        document
    })
}

/// Objects have the fields that are named, and no others.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object) {
                fields.entry("additionalProperties").or_insert(json!(false));
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
#[should_panic(expected = "is not as described")]
fn a_field_that_the_description_does_not_have_is_found() {
    let answer = b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n\
                   {\"job\":\"web\",\"lines\":[],\"more\":1}";
    check(b"GET /v1/jobs/web/why HTTP/1.0\r\n\r\n", answer);
}

#[test]
#[should_panic(expected = "is not as described")]
fn a_field_that_is_missing_is_found() {
    let answer = b"HTTP/1.0 409 Conflict\r\ncontent-type: application/problem+json\r\n\r\n\
                   {\"title\":\"Conflict\",\"status\":409}";
    check(b"POST /v1/jobs/web/start HTTP/1.0\r\n\r\n", answer);
}
