//! Events as they are sent.

use super::schema::KindSchema;
use crate::stamp::rfc3339;
use mainstay_core::event::{Event, Kind, Source};
use schemars::JsonSchema;
use serde::Serialize;

/// An event as it is written: `{"seq","time","source","event","detail"}`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub struct EventView<'a> {
    /// The node that says so, where all nodes of a fleet are heard.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    seq: u64,
    #[schemars(extend("format" = "date-time"))]
    time: String,
    #[schemars(with = "String")]
    source: &'a Source,
    #[serde(flatten)]
    #[schemars(with = "KindSchema")]
    kind: &'a Kind,
}

impl<'a> From<&'a Event> for EventView<'a> {
    fn from(event: &'a Event) -> EventView<'a> {
        EventView {
            node: None,
            seq: event.seq,
            time: rfc3339(event.time),
            source: &event.source,
            kind: &event.kind,
        }
    }
}

/// Events were missed: said to a reader that came back too late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Gap")]
pub struct EventGap {
    /// The node whose events were missed, where all nodes of a fleet are heard.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    event: &'static str,
    source: &'static str,
    detail: GapDetail,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct GapDetail {
    /// What is kept begins after the event of this number.
    before: u64,
}

impl EventGap {
    pub const NAME: &'static str = "gap";

    #[must_use]
    pub fn new(before: u64) -> EventGap {
        EventGap {
            node: None,
            event: EventGap::NAME,
            source: "global",
            detail: GapDetail { before },
        }
    }
}

/// What comes in a stream of events.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum StreamedEvent<'a> {
    Event(EventView<'a>),
    Gap(EventGap),
}
