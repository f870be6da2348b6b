//! Server-sent events, both ways over a control socket.
//!
//! Writing: `event: TYPE`, `data: JSON`, blank line. Reading: lines end in LF, CR LF or CR; several
//! `data` lines join with a newline; `data` may be missing, empty or bare; comments and fields that
//! we do not know are passed over; an event without a type and without data is none.

use serde::{Deserialize, Serialize};

/// An event may take this much; a peer that sends more is cut off.
pub const MAX: usize = 64 << 10;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SseEvent {
    pub kind: String,
    pub data: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    #[error("an event is longer than {MAX} bytes")]
    TooLong,
    #[error("a line is not UTF-8")]
    NotText,
}

/// `data` must be a single line, as JSON is.
#[must_use]
pub fn encode(kind: &str, data: &str) -> Vec<u8> {
    debug_assert!(!data.contains(['\n', '\r']));
    format!("event: {kind}\ndata: {data}\n\n").into_bytes()
}

/// Takes bytes as they come and gives whole events.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SseDecoder {
    line: Vec<u8>,
    after_cr: bool,
    event: SseEvent,
    has_field: bool,
    size: usize,
}

impl SseDecoder {
    /// Reads `bytes` and appends every event that became whole to `events`.
    ///
    /// # Errors
    /// The stream cannot be followed any further: close it. Events found before stay in `events`.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        for &byte in bytes {
            let second_half = std::mem::replace(&mut self.after_cr, byte == b'\r') && byte == b'\n';
            if second_half {
                continue;
            }
            if byte != b'\n' && byte != b'\r' {
                self.size += 1;
                if self.size > MAX {
                    return Err(SseError::TooLong);
                }
                self.line.push(byte);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let line = std::str::from_utf8(&line).map_err(|_| SseError::NotText)?;
            if line.is_empty() {
                self.size = 0;
                let event = std::mem::take(&mut self.event);
                if std::mem::take(&mut self.has_field) {
                    events.push(event);
                }
            } else {
                self.take_line(line);
            }
        }
        Ok(())
    }

    fn take_line(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => {
                value.clone_into(&mut self.event.kind);
                self.has_field = true;
            }
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_field = true;
            }
            // Comments (an empty field name), `id`, `retry`, and whatever else a peer may send.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(text: &str) -> Vec<SseEvent> {
        let mut events = Vec::new();
        SseDecoder::default().push(text.as_bytes(), &mut events).expect("valid");
        events
    }

    fn event(kind: &str, data: &str) -> SseEvent {
        SseEvent { kind: kind.into(), data: data.into() }
    }

    #[test]
    fn a_stop_may_come_with_data_missing_empty_or_bare() {
        for text in [
            "event: stop\n\n",
            "event: stop\ndata\n\n",
            "event:stop\ndata:\n\n",
            "event: stop\r\ndata: \r\n\r\n",
        ] {
            assert_eq!(decode(text), [event("stop", "")], "{text:?}");
        }
    }

    #[test]
    fn data_lines_join_and_unknown_fields_are_passed_over() {
        let text = ": hello\nid: 7\nevent: signal\nretry: 1\ndata: {\ndata: }\nwhat\n\n\n\n";
        assert_eq!(decode(text), [event("signal", "{\n}")]);
    }

    #[test]
    fn an_endless_line_or_endless_lines_are_cut_off() {
        let mut events = Vec::new();
        let long = vec![b'x'; MAX + 1];
        assert_eq!(SseDecoder::default().push(&long, &mut events), Err(SseError::TooLong));
        let many = b"data: x\n".repeat(MAX / 4);
        assert_eq!(SseDecoder::default().push(&many, &mut events), Err(SseError::TooLong));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_however_it_is_cut(
            sent in prop::collection::vec(("[a-z]{1,8}", "[ -~]{0,40}"), 0..8),
            cut in 1usize..7,
        ) {
            let bytes: Vec<u8> = sent.iter().flat_map(|(kind, data)| encode(kind, data)).collect();
            let mut decoder = SseDecoder::default();
            let mut events = Vec::new();
            for piece in bytes.chunks(cut) { decoder.push(piece, &mut events).expect("valid") }
            let wanted: Vec<SseEvent> = sent.iter().map(|(kind, data)| event(kind, data)).collect();
            prop_assert_eq!(events, wanted);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = SseDecoder::default().push(&bytes, &mut Vec::new());
        }
    }
}
