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
    strsim::osa_distance(&a.to_ascii_lowercase(), &b.to_ascii_lowercase())
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
