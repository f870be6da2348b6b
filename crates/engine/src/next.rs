//! The version after this one, so that a fleet of two versions can be seen before there are two.
//!
//! Only tests speak it: a debug build whose file is called `mainstay-next` does, and an engine that
//! a test tells to. In a release build none of it exists.
//!
//! - What is said in the next version means nothing to whoever reads it as this one: the bits in a
//!   datagram are flipped, and a frame stands in another one.
//! - What is said in this version has more in it than this one knows: fields, and kinds of frames.
//!
//! So a node that speaks the wrong version with another one, or stumbles over what it does not know,
//! is found out.

#[cfg(not(debug_assertions))]
pub(crate) use none::*;
#[cfg(debug_assertions)]
pub(crate) use played::*;

use crate::mesh::Versions;

impl Versions {
    /// Those that this very program speaks.
    #[must_use]
    pub fn of_program() -> Versions {
        if is_played() { NEXT } else { Versions::SPOKEN }
    }
}

const NEXT: Versions =
    Versions { oldest: Versions::SPOKEN.newest, newest: Versions::SPOKEN.newest + 1 };

#[cfg(debug_assertions)]
mod played {
    use crate::{
        mesh::Versions,
        peers::frame::{FrameBytes, framed},
    };
    use serde_json::{Value, json, value::RawValue};

    const PROGRAM: &str = "mainstay-next";
    /// What a frame of the next version begins with.
    const FRAME: &[u8] = br#"{"next":"#;

    pub(super) fn is_played() -> bool {
        let is = std::env::current_exe().is_ok_and(|path| path.ends_with(PROGRAM));
        if is {
            tracing::warn!(
                "this program plays the next version of the fleet's protocol, for tests"
            );
        }
        is
    }

    fn is_next(version: u8) -> bool {
        version > Versions::SPOKEN.newest
    }

    /// There and back.
    pub(crate) fn flip(version: u8, bytes: &mut [u8]) {
        if is_next(version) {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// What a node says of itself in datagrams, beyond what this version knows.
    pub(crate) fn later_bytes(versions: Versions) -> &'static [u8] {
        if is_next(versions.newest) { b"later" } else { b"" }
    }

    /// What a frame stands in.
    pub(crate) fn around(version: u8) -> (&'static [u8], &'static [u8]) {
        if is_next(version) { (FRAME, b"}") } else { (b"", b"") }
    }

    /// The frame that stands in it. Whoever speaks this version alone cannot find it.
    pub(crate) fn inside(versions: Versions, frame: &[u8]) -> &[u8] {
        let next = || frame.strip_prefix(FRAME)?.strip_suffix(b"}");
        if is_next(versions.newest) { next().unwrap_or(frame) } else { frame }
    }

    /// Facts with fields that this version does not know: in themselves, and in the records of them
    /// that nodes hand on.
    pub(crate) fn add_fields(versions: Versions, facts: Box<RawValue>) -> Box<RawValue> {
        if !is_next(versions.newest) {
            return facts;
        }
        let mut all: Value = serde_json::from_str(facts.get()).unwrap_or_default();
        let later = || json!({ "colour": "red" });
        all["later"] = later();
        if all["work"].is_object() {
            all["work"]["later"] = later();
        }
        for records in ["/wishes", "/waves/records"] {
            let records = all.pointer_mut(records).and_then(Value::as_object_mut);
            for (_, record) in records.into_iter().flatten() {
                record["later"] = later();
            }
        }
        serde_json::value::to_raw_value(&all).unwrap_or(facts)
    }

    /// What it says to a peer before anything else, of kinds that this version does not know.
    pub(crate) fn greetings(versions: Versions, version: u8) -> Vec<FrameBytes> {
        if !is_next(versions.newest) {
            return Vec::new();
        }
        let number = json!({ "term": { "number": u64::MAX, "master": "x" }, "counter": 1 });
        let order = json!({ "number": number, "job": "web", "what": { "paint": "red" } });
        let kinds = [
            json!({ "v": version, "greeting": "good morning" }),
            json!({ "v": version, "sent": { "greet": { "how": "politely" } } }),
            json!({ "v": version, "sent": { "order": order } }),
        ];
        kinds.iter().map(|kind| framed(version, kind)).collect()
    }
}

#[cfg(not(debug_assertions))]
mod none {
    use crate::{mesh::Versions, peers::frame::FrameBytes};
    use serde_json::value::RawValue;

    pub(super) fn is_played() -> bool {
        false
    }

    pub(crate) fn flip(_: u8, _: &mut [u8]) {}

    pub(crate) fn later_bytes(_: Versions) -> &'static [u8] {
        b""
    }

    pub(crate) fn around(_: u8) -> (&'static [u8], &'static [u8]) {
        (b"", b"")
    }

    pub(crate) fn inside(_: Versions, frame: &[u8]) -> &[u8] {
        frame
    }

    pub(crate) fn add_fields(_: Versions, facts: Box<RawValue>) -> Box<RawValue> {
        facts
    }

    pub(crate) fn greetings(_: Versions, _: u8) -> Vec<FrameBytes> {
        Vec::new()
    }
}
