//! `mainstay events`: what has happened, and what happens.
//!
//! A stream that breaks is taken up again after the last event that was seen, so that a restart of
//! the agent repeats nothing and hides nothing.

use crate::{
    args::EventsArgs,
    client::Client,
    failure::Failure,
    term::{Page, Tint, print},
};
use mainstay_core::event::{EventName, Tone};
use mainstay_net::percent::segment;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read},
    thread,
    time::Duration,
};

const LOOK_AGAIN: Duration = Duration::from_millis(200);

pub(crate) fn events(args: &EventsArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    let mut seen = Seen::default();
    loop {
        let stream = match client.stream(&path(args, &seen), seen.id.as_deref()) {
            Ok(stream) => stream,
            // It was there and is gone: the run has ended, and all of it was shown.
            Err(_) if seen.id.is_some() && !client.is_there() => return Ok(0),
            // The agent takes its time, or is kept from starting. Its events will be there.
            Err(_) if seen.id.is_some() && args.follow => {
                thread::sleep(LOOK_AGAIN);
                continue;
            }
            Err(failure) => return Err(failure),
        };
        read(stream, &mut seen, args.json.json)?;
        if !args.follow {
            return Ok(0);
        }
    }
}

fn path(args: &EventsArgs, seen: &Seen) -> String {
    let since = match (args.since, args.follow) {
        _ if seen.id.is_some() => String::new(),
        (Some(seq), _) => format!("&since={seq}"),
        (None, true) => String::new(),
        (None, false) => "&since=0".to_owned(),
    };
    let job = args.job.as_ref().map_or(String::new(), |job| format!("&job={}", segment(job)));
    let fleet = if args.fleet { "&fleet=1" } else { "" };
    let here = if args.here { "&here=1" } else { "" };
    format!("/v1/events?follow={}{since}{job}{fleet}{here}", args.follow)
}

/// The id of the last event.
#[derive(Debug, Default)]
struct Seen {
    id: Option<String>,
}

/// Prints events until the stream ends, however it does.
fn read(stream: BufReader<impl Read>, seen: &mut Seen, json: bool) -> Result<(), Failure> {
    let mut data = String::new();
    let mut id = None;
    for line in stream.lines() {
        let Ok(line) = line else { return Ok(()) };
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => id = Some(value.to_owned()),
            "data" => data.push_str(value),
            _ if line.is_empty() => {
                if !data.is_empty() {
                    show(&std::mem::take(&mut data), json)?;
                }
                // Only what was shown as a whole counts as seen.
                seen.id = id.take().or(seen.id.take());
            }
            _ => {}
        }
    }
    Ok(())
}

fn show(data: &str, json: bool) -> Result<(), Failure> {
    if json {
        return print(&format!("{data}\n"));
    }
    let event: Value = serde_json::from_str(data).unwrap_or_default();
    let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let name = text("event");
    let time = text("time");
    let time = time.get(..23).map_or(time.clone(), |to_millis| format!("{to_millis}Z"));
    let tint = match EventName::find(&name).map(EventName::tone) {
        Some(Tone::Bad) => Tint::Red,
        // No event: some are missing.
        None if name == "gap" => Tint::Red,
        Some(Tone::Good) => Tint::Green,
        Some(Tone::Plain) | None => Tint::Plain,
    };
    let seq = event["seq"].as_u64().map_or(String::new(), |seq| seq.to_string());
    let node = event["node"].as_str().map_or(String::new(), |node| format!("  {node:<8}"));
    let mut page = Page::new();
    page.tinted_line(&[
        (&time, Tint::Dim),
        (&node, Tint::Plain),
        (&format!("  {seq:>6}  "), Tint::Plain),
        (&format!("{:<16}", text("source")), Tint::Bold),
        (" ", Tint::Plain),
        (&name, tint),
        (&detail(&event["detail"]), Tint::Plain),
    ]);
    page.show()
}

/// `{"from": "A", "exit": {"code": 1}}` as ` from=A exit.code=1`.
fn detail(detail: &Value) -> String {
    let mut text = String::new();
    flatten("", detail, &mut text);
    text
}

fn flatten(name: &str, value: &Value, text: &mut String) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, value) in fields {
                let dot = if name.is_empty() { "" } else { "." };
                flatten(&format!("{name}{dot}{key}"), value, text);
            }
        }
        Value::String(value) => text.push_str(&format!(" {name}={value}")),
        other => text.push_str(&format!(" {name}={other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_was_cut_does_not_count_as_seen() {
        let mut seen = Seen::default();
        let text = ": from here\nid: r:4\n\nid: r:5\nevent: startup\ndata: {}\n\nid: r:6\ndata: {";
        read(BufReader::new(text.as_bytes()), &mut seen, true).expect("printed");
        assert_eq!(seen.id.as_deref(), Some("r:5"));
    }

    #[test]
    fn details_are_written_as_pairs() {
        let value = serde_json::json!({ "exit": { "code": 1 }, "incarnation": 2, "pid": null });
        assert_eq!(detail(&value), " exit.code=1 incarnation=2");
    }
}
