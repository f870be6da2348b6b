//! Percent-coding of what others have named: never more than one segment of a path or one value.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Whatever is not certain to mean itself. A dot may mean a directory.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');
const FILE_NAME: &AsciiSet = &SEGMENT.remove(b'.');

/// A segment of a path, or a value of a query.
#[must_use]
pub fn segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// The name of a file: never hidden, never a path.
#[must_use]
pub fn file_name(text: &str) -> String {
    match text.strip_prefix('.') {
        Some(rest) => format!("%2E{}", utf8_percent_encode(rest, FILE_NAME)),
        None => utf8_percent_encode(text, FILE_NAME).to_string(),
    }
}

/// What has a file of this name; none for one that [`file_name`] does not give.
#[must_use]
pub fn of_file_name(name: &str) -> Option<String> {
    let text = percent_decode_str(name).decode_utf8().ok()?;
    (file_name(&text) == name).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_never_becomes_another_path() {
        assert_eq!(segment("web-1_b"), "web-1_b");
        assert_eq!(segment("../a b?x=ö&y"), "%2E%2E%2Fa%20b%3Fx%3D%C3%B6%26y");
    }

    #[test]
    fn every_name_has_a_file_of_its_own() {
        for (name, file) in [
            ("web", "web"),
            ("a.b", "a.b"),
            ("../etc", "%2E.%2Fetc"),
            (".lock", "%2Elock"),
            ("a%2F", "a%252F"),
            ("ö", "%C3%B6"),
        ] {
            assert_eq!(file_name(name), file);
            assert_eq!(of_file_name(file).as_deref(), Some(name));
        }
        for strange in ["%2", "%zz", ".web", "%61"] {
            assert_eq!(of_file_name(strange), None, "{strange}");
        }
    }
}
