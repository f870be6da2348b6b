//! The known word nearest to a mistyped one.

/// The nearest of `known`, if it is near enough to be what was meant.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A very long word is no typing error, and the distance costs its length squared.
    let length = word.chars().count();
    if length > 64 {
        return None;
    }
    let allowed = (length / 3).clamp(1, 3);
    known
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many characters to insert, remove, change, or swap with the next; case does not count.
fn distance(a: &str, b: &str) -> usize {
    let fold = |text: &str| text.chars().map(|c| c.to_ascii_lowercase()).collect::<Vec<char>>();
    let (a, b) = (fold(a), fold(b));
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (last[j - 1] + change).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_word() {
        let known = ["exec", "restart", "env", "user", "umask", "stop"];
        for (word, expected) in [
            ("reestart", Some("restart")),
            ("exce", Some("exec")),
            ("Exec", Some("exec")),
            ("evn", Some("env")),
            ("umsak", Some("umask")),
            ("banana", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, known.into_iter()), expected, "{word}");
        }
        assert_eq!(nearest(&"e".repeat(100_000), known.into_iter()), None);
    }
}
