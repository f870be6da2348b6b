//! Who has said a line, and how a line that tells it looks.
//!
//! ```text
//! prefix   web | text
//! json     {"job":"web","partial":false,"stream":"stdout","text":"text","time":"…"}
//! raw      text
//! stamped  2026-01-02T03:04:05.678901234Z web 42 text
//! logfmt   time="2026-01-02T03:04:05Z" level=info msg=text job=web pid=42
//! logrus   {"job":"web","level":"info","msg":"text","pid":42,"time":"…"}
//! ```
//!
//! The last three are ContainerPilot's `default`, `text` and `json`.

use super::{Channel, lines::Piece};
use mainstay_core::plan::ForwardFormat;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// How our own lines begin.
const OWN: &str = "mainstay: ";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who<'a> {
    Job(&'a str),
    /// A check of this job.
    Check(&'a str),
    /// Keeper or agent.
    Own,
}

/// Who has said a line, and on which channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said<'a> {
    pub(super) who: Who<'a>,
    pub(super) channel: Channel,
    pub(super) pid: Option<u32>,
}

impl Said<'_> {
    /// A line of forwarded output, without its end. `time` is RFC 3339 with nanoseconds.
    pub(super) fn write(
        self,
        format: ForwardFormat,
        time: &str,
        piece: Piece<'_>,
        out: &mut Vec<u8>,
    ) {
        match format {
            ForwardFormat::Raw => out.extend_from_slice(piece.text),
            ForwardFormat::Prefix => self.prefixed(piece.text, out),
            ForwardFormat::Json => {
                let line = json!({
                    "time": time,
                    "job": self.name().unwrap_or_else(|| "mainstay".to_owned()),
                    "stream": self.channel.as_str(),
                    "text": String::from_utf8_lossy(piece.text),
                    "partial": !piece.whole,
                });
                out.extend_from_slice(line.to_string().as_bytes());
            }
            ForwardFormat::Stamped => self.stamped(time, piece.text, out),
            ForwardFormat::Logfmt => self.logfmt(time, piece.text, out),
            ForwardFormat::Logrus => self.logrus(time, piece.text, out),
        }
    }

    fn name(self) -> Option<String> {
        match self.who {
            Who::Job(job) => Some(job.to_owned()),
            Who::Check(job) => Some(format!("check.{job}")),
            Who::Own => None,
        }
    }

    /// The field that names who it was.
    fn field(self) -> Option<(&'static str, String)> {
        let key = match self.who {
            Who::Job(_) => "job",
            Who::Check(_) => "check",
            Who::Own => return None,
        };
        self.name().map(|name| (key, name))
    }

    /// How grave it is, and what is said. Whatever a job writes is information.
    fn level(self, text: &[u8]) -> (&'static str, &[u8]) {
        if self.who != Who::Own {
            return ("info", text);
        }
        let text = text.strip_prefix(OWN.as_bytes()).unwrap_or(text);
        let levels = [("error", "error"), ("warning", "warning"), ("debug", "debug")];
        for (word, level) in levels.into_iter().chain([("trace", "debug")]) {
            let said = text.strip_prefix(word.as_bytes()).and_then(|it| it.strip_prefix(b": "));
            if let Some(said) = said {
                return (level, said);
            }
        }
        ("info", text)
    }

    fn prefixed(self, text: &[u8], out: &mut Vec<u8>) {
        if let Some(name) = self.name() {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b" | ");
        }
        out.extend_from_slice(text);
    }

    fn stamped(self, time: &str, text: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(time.as_bytes());
        let pid = self.pid.map(|pid| pid.to_string());
        for word in self.name().into_iter().chain(pid) {
            out.push(b' ');
            out.extend_from_slice(word.as_bytes());
        }
        out.push(b' ');
        out.extend_from_slice(self.level(text).1);
    }

    fn logfmt(self, time: &str, text: &[u8], out: &mut Vec<u8>) {
        let (level, text) = self.level(text);
        // Whole seconds, as there.
        let seconds = time.get(..19).unwrap_or(time);
        let mut line = format!("time=\"{seconds}Z\" level={level}");
        if !text.is_empty() {
            line.push_str(" msg=");
            quote(text, &mut line);
        }
        if let Some((key, name)) = self.field() {
            line.push_str(&format!(" {key}="));
            quote(name.as_bytes(), &mut line);
        }
        if let Some(pid) = self.pid {
            line.push_str(&format!(" pid={pid}"));
        }
        out.extend_from_slice(line.as_bytes());
    }

    fn logrus(self, time: &str, text: &[u8], out: &mut Vec<u8>) {
        let (level, text) = self.level(text);
        // In the order of their names, whatever a map makes of it.
        let mut fields = Map::new();
        if let Some((key, name)) = self.field() {
            fields.insert(key.to_owned(), name.into());
        }
        fields.insert("level".to_owned(), level.into());
        fields.insert("msg".to_owned(), String::from_utf8_lossy(text).into());
        if let Some(pid) = self.pid {
            fields.insert("pid".to_owned(), pid.into());
        }
        fields.insert("time".to_owned(), time.into());
        out.extend_from_slice(Value::Object(fields).to_string().as_bytes());
    }
}

/// A value as logfmt has it: plain, or as a string of Go.
fn quote(text: &[u8], line: &mut String) {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._/@^+".contains(byte);
    if text.iter().all(is_plain) {
        line.push_str(&String::from_utf8_lossy(text));
        return;
    }
    line.push('"');
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => line.extend(['\\', c]),
                '\t' => line.push_str("\\t"),
                '\r' => line.push_str("\\r"),
                '\n' => line.push_str("\\n"),
                c if c.is_ascii_control() => hex(c as u8, line),
                c => line.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| hex(*byte, line));
    }
    line.push('"');
}

fn hex(byte: u8, line: &mut String) {
    let _ = write!(line, "\\x{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-01-02T03:04:05.678901234Z";

    fn line(format: ForwardFormat, who: Who<'_>, pid: Option<u32>, text: &str) -> String {
        let said = Said { who, channel: Channel::Stdout, pid };
        let mut out = Vec::new();
        said.write(format, TIME, Piece { text: text.as_bytes(), whole: true }, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn lines_look_as_containerpilot_has_them() {
        use ForwardFormat::{Logfmt, Logrus, Stamped};
        for (format, who, pid, text, wanted) in [
            (
                Stamped,
                Who::Job("web"),
                Some(42),
                "a b",
                "2026-01-02T03:04:05.678901234Z web 42 a b",
            ),
            (Stamped, Who::Own, None, "mainstay: warning: c", "2026-01-02T03:04:05.678901234Z c"),
            (
                Logfmt,
                Who::Job("web"),
                Some(42),
                "say \"hi\"",
                r#"time="2026-01-02T03:04:05Z" level=info msg="say \"hi\"" job=web pid=42"#,
            ),
            (
                Logfmt,
                Who::Check("web"),
                Some(7),
                "ok",
                r#"time="2026-01-02T03:04:05Z" level=info msg=ok check=check.web pid=7"#,
            ),
            (
                Logfmt,
                Who::Own,
                None,
                "mainstay: error: no\tway",
                r#"time="2026-01-02T03:04:05Z" level=error msg="no\tway""#,
            ),
            (Logfmt, Who::Own, None, "mainstay: ", r#"time="2026-01-02T03:04:05Z" level=info"#),
            (
                Logrus,
                Who::Job("web"),
                Some(42),
                "a",
                r#"{"job":"web","level":"info","msg":"a","pid":42,"time":"2026-01-02T03:04:05.678901234Z"}"#,
            ),
            (
                Logrus,
                Who::Own,
                None,
                "mainstay: debug: b",
                r#"{"level":"debug","msg":"b","time":"2026-01-02T03:04:05.678901234Z"}"#,
            ),
        ] {
            assert_eq!(line(format, who, pid, text), wanted);
        }
    }

    #[test]
    fn no_byte_breaks_a_line_of_keys_and_values() {
        let mut line = String::new();
        quote(b"a\x01\xff\n\\ \xc3\xa4", &mut line);
        assert_eq!(line, "\"a\\x01\\xff\\n\\\\ \u{e4}\"");
    }
}
