//! One node: events and order, health, reload, control, and the example that people try first.

mod control;
mod detach;
mod health;
mod many;
mod project;
mod quickstart;
mod reload;
mod rollout;
mod service_manager;
mod stuck;
mod systemd;
mod terminal;
mod when;
mod why;

use mainstay_tests::Events;
use serde_json::Value;

/// `[("db", "healthy"), …]`: who said what, in order.
fn said(events: &Events) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    events.seen().iter().map(|event| (text(&event["source"]), text(&event["event"]))).collect()
}

fn position(said: &[(String, String)], source: &str, event: &str) -> usize {
    said.iter()
        .position(|(from, what)| from == source && what == event)
        .unwrap_or_else(|| panic!("{source} never said {event}: {said:#?}"))
}
