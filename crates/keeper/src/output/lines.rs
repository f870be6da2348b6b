//! Bytes into lines, and lines into the formats of files and of forwarded output.

use super::{Channel, said::Said};
use mainstay_core::plan::{FileFormat, ForwardFormat};
use mainstay_wire::stamp::Stamper;

/// A line longer than this is passed on in marked pieces.
pub(super) const LONGEST: usize = 64 << 10;

/// A line, or a piece of one that is still going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a [u8],
    pub(super) whole: bool,
}

/// Gives every piece that `chunk` completes; what is left over stays in `partial`.
pub(super) fn split(partial: &mut Vec<u8>, mut chunk: &[u8], mut give: impl FnMut(Piece<'_>)) {
    while let Some(end) = memchr::memchr(b'\n', chunk) {
        let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
        chunk = rest;
        if partial.is_empty() && line.len() <= LONGEST {
            give(Piece { text: line, whole: true });
        } else {
            grow(partial, line, &mut give);
            give(Piece { text: partial, whole: true });
            partial.clear();
        }
    }
    grow(partial, chunk, &mut give);
}

/// Appends to `partial` and gives pieces whenever it has more than the longest.
fn grow(partial: &mut Vec<u8>, mut more: &[u8], give: &mut impl FnMut(Piece<'_>)) {
    while partial.len() + more.len() > LONGEST {
        let (now, later) = more.split_at(LONGEST - partial.len());
        partial.extend_from_slice(now);
        more = later;
        give(Piece { text: partial, whole: false });
        partial.clear();
    }
    partial.extend_from_slice(more);
    if partial.is_empty() && partial.capacity() > 4 << 10 {
        *partial = Vec::new();
    }
}

/// The beginning of an entry, the same for all pieces of one chunk.
#[derive(Debug, Default)]
pub(super) struct Header {
    stamper: Stamper,
    text: Vec<u8>,
}

impl Header {
    /// `TIME CHANNEL F `
    pub(super) fn set(&mut self, wall: i64, channel: Channel) {
        self.text.clear();
        self.text.extend_from_slice(self.stamper.format(wall));
        self.text.push(b' ');
        self.text.extend_from_slice(channel.as_str().as_bytes());
        self.text.extend_from_slice(b" F ");
    }

    fn time(&self) -> &str {
        self.text.get(..30).and_then(|time| std::str::from_utf8(time).ok()).unwrap_or_default()
    }

    /// An entry of a file.
    pub(super) fn to_file(&self, format: FileFormat, piece: Piece<'_>, out: &mut Vec<u8>) {
        match format {
            FileFormat::Cri => {
                let start = out.len();
                out.extend_from_slice(&self.text);
                if !piece.whole {
                    out[start + self.text.len() - 2] = b'P';
                }
                out.extend_from_slice(piece.text);
                out.push(b'\n');
            }
            FileFormat::Raw => {
                out.extend_from_slice(piece.text);
                if piece.whole {
                    out.push(b'\n');
                }
            }
            FileFormat::None => {}
        }
    }

    /// A line of forwarded output.
    pub(super) fn to_forward(
        &self,
        format: ForwardFormat,
        said: Said<'_>,
        piece: Piece<'_>,
        out: &mut Vec<u8>,
    ) {
        said.write(format, self.time(), piece, out);
        if piece.whole || format != ForwardFormat::Raw {
            out.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(chunks: &[&[u8]]) -> (Vec<(Vec<u8>, bool)>, Vec<u8>) {
        let mut partial = Vec::new();
        let mut found = Vec::new();
        for chunk in chunks {
            split(&mut partial, chunk, |piece| found.push((piece.text.to_vec(), piece.whole)));
        }
        (found, partial)
    }

    #[test]
    fn lines_come_out_whole_however_they_went_in() {
        let (found, partial) = pieces(&[b"one\ntw", b"o\n\nthr", b"ee"]);
        let wanted = [b"one".to_vec(), b"two".to_vec(), Vec::new()].map(|text| (text, true));
        assert_eq!(found, wanted);
        assert_eq!(partial, b"three");
    }

    #[test]
    fn an_endless_line_comes_out_in_pieces_that_join_to_it() {
        let line = vec![b'x'; 3 * LONGEST + 7];
        for cut in [1000, LONGEST, LONGEST + 1, line.len()] {
            let mut chunks: Vec<&[u8]> = line.chunks(cut).collect();
            chunks.push(b"\n");
            let (found, partial) = pieces(&chunks);
            assert!(partial.is_empty());
            let (last, before) = found.split_last().expect("some");
            assert!(last.1 && before.iter().all(|(text, whole)| !whole && text.len() == LONGEST));
            assert_eq!(found.iter().map(|(text, _)| text.len()).sum::<usize>(), line.len());
        }
    }

    #[test]
    fn entries_read_as_log_shippers_expect() {
        let mut header = Header::default();
        header.set(0, Channel::Stderr);
        let mut out = Vec::new();
        header.to_file(FileFormat::Cri, Piece { text: b"a b", whole: true }, &mut out);
        header.to_file(FileFormat::Cri, Piece { text: b"c", whole: false }, &mut out);
        let wanted = "1970-01-01T00:00:00.000000000Z stderr F a b\n\
                      1970-01-01T00:00:00.000000000Z stderr P c\n";
        assert_eq!(String::from_utf8_lossy(&out), wanted);
    }
}
