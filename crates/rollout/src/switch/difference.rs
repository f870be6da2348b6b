//! How two texts differ, in the unified format and within bounds.

use similar::{Algorithm, TextDiff};
use std::{fmt::Write, time::Duration};

const MOST_LINES: usize = 200;
const LONGEST_LINE: usize = 400;
/// Beyond this, only that they differ is told.
const LARGEST: usize = 1 << 20;
const LIMIT: Duration = Duration::from_millis(500);

/// Empty: they are the same.
#[must_use]
pub fn difference(was: &str, is: &str) -> String {
    if was == is {
        return String::new();
    }
    if was.len() > LARGEST || is.len() > LARGEST {
        return format!("{} bytes would become {}\n", was.len(), is.len());
    }
    let mut diff = TextDiff::configure();
    let diff = diff.algorithm(Algorithm::Myers).timeout(LIMIT).diff_lines(was, is);
    let mut told = String::new();
    let text = diff.unified_diff().context_radius(2).to_string();
    for (number, line) in text.lines().enumerate() {
        if number == MOST_LINES {
            let _ = writeln!(told, "… and {} more lines", text.lines().count() - MOST_LINES);
            break;
        }
        let _ = writeln!(told, "{}", &line[..line.floor_char_boundary(LONGEST_LINE)]);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_the_lines_around_it_and_no_more_than_people_read() {
        assert_eq!(difference("a\n", "a\n"), "");
        let told = difference("a\nb\nc\n", "a\nx\nc\n");
        assert_eq!(told, "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
        let long = |word: &str| (0..10_000).map(|n| format!("{word}{n}\n")).collect::<String>();
        let told = difference(&long("a"), &long("b"));
        assert_eq!(told.lines().count(), MOST_LINES + 1);
        assert!(difference("", &"x".repeat(5000)).len() < 1000);
    }
}
