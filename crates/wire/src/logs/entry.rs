//! One line of a job's output, from the line of a file: `TIME STREAM P|F TEXT`, or as it is.

/// As long as every stamp is.
const STAMP: usize = crate::stamp::LENGTH;
/// Pieces of one line are joined up to this length.
const LONGEST: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `None` in files of the format `raw`.
    pub time: Option<String>,
    pub stream: Option<&'static str>,
    pub text: Vec<u8>,
}

/// Joins the pieces of long lines.
#[derive(Debug, Default)]
pub struct Joiner {
    begun: Option<Entry>,
}

impl Joiner {
    /// Takes a line without its end; gives an entry once it is whole.
    pub fn push(&mut self, line: &[u8]) -> Option<Entry> {
        let (entry, whole) = parse(line);
        let mut entry = match self.begun.take() {
            Some(mut begun) => {
                begun.text.extend_from_slice(&entry.text);
                begun
            }
            None => entry,
        };
        if whole || entry.text.len() >= LONGEST {
            entry.text.shrink_to_fit();
            return Some(entry);
        }
        self.begun = Some(entry);
        None
    }

    /// What was begun and never ended.
    pub fn finish(&mut self) -> Option<Entry> {
        self.begun.take()
    }
}

/// The entry, and whether it is the end of its line.
fn parse(line: &[u8]) -> (Entry, bool) {
    stamped(line).unwrap_or_else(|| (Entry { time: None, stream: None, text: line.to_vec() }, true))
}

fn stamped(line: &[u8]) -> Option<(Entry, bool)> {
    let (time, rest) = line.split_at_checked(STAMP)?;
    let time = std::str::from_utf8(time).ok()?;
    if !(time.ends_with('Z') && time.as_bytes()[10] == b'T') {
        return None;
    }
    let (stream, rest) = [("stdout", b" stdout "), ("stderr", b" stderr ")]
        .into_iter()
        .find_map(|(name, mark)| Some((name, rest.strip_prefix(mark)?)))?;
    let whole = match rest.first()? {
        b'F' => true,
        b'P' => false,
        _ => return None,
    };
    let text = rest[1..].strip_prefix(b" ")?.to_vec();
    Some((Entry { time: Some(time.to_owned()), stream: Some(stream), text }, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamped_lines_are_taken_apart_and_others_left_alone() {
        let mut joiner = Joiner::default();
        let entry = joiner.push(b"1970-01-01T00:00:00.000000000Z stderr F a b").expect("whole");
        assert_eq!((entry.stream, entry.text.as_slice()), (Some("stderr"), b"a b".as_slice()));
        for raw in [b"hello".as_slice(), b"", b"1970-01-01T00:00:00.000000000Z stdin F a"] {
            let entry = joiner.push(raw).expect("whole");
            assert_eq!((entry.time, entry.text.as_slice()), (None, raw));
        }
    }

    #[test]
    fn pieces_of_a_line_are_joined() {
        let mut joiner = Joiner::default();
        assert_eq!(joiner.push(b"1970-01-01T00:00:00.000000000Z stdout P one,"), None);
        let entry = joiner.push(b"1970-01-01T00:00:01.000000000Z stdout F two").expect("whole");
        assert_eq!(entry.text, b"one,two");
        assert_eq!(entry.time.as_deref(), Some("1970-01-01T00:00:00.000000000Z"));
        assert_eq!(joiner.finish(), None);
    }
}
