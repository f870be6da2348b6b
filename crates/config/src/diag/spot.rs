//! A place in a text, with as much of its line as people look at.

use super::printable;
use std::ops::Range;

/// How much of a line is kept before and after the mistake, in characters. A line that is longer
/// before it was not written by hand.
const KEPT_BEFORE: usize = 4096;
const KEPT_AFTER: usize = 200;
/// How much of the mistake itself is kept.
const KEPT_MARK: usize = 100;
/// How much of a longer line is kept before the mistake.
const CUT_BEFORE: usize = 60;

/// A place in a file, with the line it is on. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    pub line: usize,
    pub column: usize,
    /// The line, without control characters; of a long one the part around the mistake.
    pub text: String,
    /// The mistake in `text`, in bytes.
    pub mark: Range<usize>,
    /// `text` does not begin where the line does.
    pub(super) cut: bool,
}

impl Spot {
    /// The stretch `mark` (in bytes, within the line) of a line with this number.
    pub(crate) fn new(line: usize, whole: &str, mark: Range<usize>) -> Spot {
        let before = whole.get(..mark.start).unwrap_or_default();
        let marked = whole.get(mark.clone()).unwrap_or_default();
        let after = whole.get(mark.end..).unwrap_or_default();
        let column = before.chars().count() + 1;
        let cut = column > KEPT_BEFORE;
        let skipped = if cut { column - 1 - CUT_BEFORE } else { 0 };
        let lead = if cut { "…" } else { "" };
        let start = format!("{lead}{}", shown(before.chars().skip(skipped)));
        let inside = shown(marked.chars().take(KEPT_MARK));
        let rest = match marked.chars().count() > KEPT_MARK {
            true => "…".to_owned(),
            false if after.chars().count() > KEPT_AFTER => {
                format!("{}…", shown(after.chars().take(KEPT_AFTER)))
            }
            false => shown(after.chars()),
        };
        let mark = start.len()..start.len() + inside.len();
        Spot { line, column, text: start + &inside + &rest, mark, cut }
    }
}

/// Without control characters; a tab is left to whoever knows how wide it is.
pub(crate) fn shown(text: impl Iterator<Item = char>) -> String {
    let text: String = text.collect();
    text.split('\t').map(printable).collect::<Vec<String>>().join("\t")
}
