//! A line of the journal as it is read.
//!
//! A line whose checksum is good was written on purpose. What this binary does not understand of it
//! is the word of a newer one, whose format number says that it may be passed over: events and
//! records each for themselves, fields, and lines of unknown kinds. Such a line is read a second
//! time, piece by piece; all others are read at once.

use super::{Header, legacy};
use crate::inputs::seen_tokens::SeenTokens;
use mainstay_core::{event::Event, record::Record};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    Header(Header),
    Snapshot {
        records: Vec<Record>,
        taken: SeenTokens,
        upgrade: u64,
    },
    Events(LineEvents),
    Change {
        #[serde(default)]
        events: LineEvents,
        #[serde(default)]
        records: Vec<Record>,
        taken: Option<u64>,
        upgrade: Option<u64>,
    },
    // Of format 2.
    Base(legacy::Base),
    Step(legacy::Step),
    /// Nothing of it is understood.
    #[serde(skip)]
    Unknown,
}

/// The events of a line, as far as their kinds are known.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Vec<Event>")]
pub(super) struct LineEvents {
    pub(super) known: Vec<Event>,
    /// How many there are of other kinds.
    pub(super) unknown: usize,
    /// The highest number among all of them.
    pub(super) last_seq: u64,
}

/// `None`: it is not what was written.
pub(super) fn decode(line: &[u8]) -> Option<Line> {
    let (checksum, json) = line.split_at_checked(9)?;
    let checksum = std::str::from_utf8(checksum).ok()?.strip_suffix(' ')?;
    // Exactly as it was written: no other case, no sign.
    let is_ours = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let checksum = Some(checksum).filter(|it| it.bytes().all(is_ours))?;
    let checksum = u32::from_str_radix(checksum, 16).ok()?;
    let read = || serde_json::from_slice(json).unwrap_or_else(|_| decode_known(json));
    (checksum == crc32fast::hash(json)).then(read)
}

/// What is understood of a line that is not understood as a whole.
fn decode_known(json: &[u8]) -> Line {
    let Ok(mut line) = serde_json::from_slice::<Map<String, Value>>(json) else {
        return Line::Unknown;
    };
    if let Some(mut content) = take::<Map<_, _>>(&mut line, "change") {
        Line::Change {
            events: take_events(&mut content, "events"),
            records: take_records(&mut content),
            taken: take(&mut content, "taken"),
            upgrade: take(&mut content, "upgrade"),
        }
    } else if let Some(mut content) = take::<Map<_, _>>(&mut line, "snapshot") {
        Line::Snapshot {
            records: take_records(&mut content),
            taken: take(&mut content, "taken").unwrap_or_default(),
            upgrade: take(&mut content, "upgrade").unwrap_or_default(),
        }
    } else if line.contains_key("events") {
        Line::Events(take_events(&mut line, "events"))
    } else {
        take(&mut line, "header").map_or(Line::Unknown, Line::Header)
    }
}

fn take<T: DeserializeOwned>(object: &mut Map<String, Value>, key: &str) -> Option<T> {
    read(&object.remove(key)?).ok()
}

/// A piece, by way of its text: one reader for each type instead of two halves the compiler's work
/// on the journal, and few lines come this way.
pub(super) fn read<T: DeserializeOwned>(value: &Value) -> serde_json::Result<T> {
    serde_json::from_slice(&serde_json::to_vec(value)?)
}

fn take_events(object: &mut Map<String, Value>, key: &str) -> LineEvents {
    let mut events = LineEvents::default();
    for value in take::<Vec<Value>>(object, key).unwrap_or_default() {
        let seq = value.get("seq").and_then(Value::as_u64).unwrap_or(0);
        events.last_seq = events.last_seq.max(seq);
        match read(&legacy::event(value)) {
            Ok(event) => events.known.push(event),
            Err(_) => events.unknown += 1,
        }
    }
    events
}

fn take_records(object: &mut Map<String, Value>) -> Vec<Record> {
    let values = take::<Vec<Value>>(object, "records").unwrap_or_default();
    values.iter().map(record).collect()
}

/// A record of whatever kind.
pub(super) fn record(value: &Value) -> Record {
    read(value).unwrap_or(Record::Unknown)
}

impl From<Vec<Event>> for LineEvents {
    fn from(known: Vec<Event>) -> LineEvents {
        let last_seq = known.last().map_or(0, |event| event.seq);
        LineEvents { known, unknown: 0, last_seq }
    }
}
