//! Bytes as a `String`, and back again without loss.
//!
//! Unix knows no encoding: an argument may hold any byte but NUL. What is valid UTF-8 stays as it
//! is. Each other byte becomes a character of the last private plane (byte 0xff is U+10FFFF), so
//! that the whole is text that JSON can carry and whoever knows nothing of this can read. Should
//! one of these characters itself come in, its bytes are written the same way: what comes out is
//! always what went in.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Byte 0x80 becomes the character after so many.
const BASE: u32 = 0x10_ff00;

#[must_use]
pub fn to_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match byte_of(c) {
                None => text.push(c),
                Some(_) => {
                    let mut room = [0; 4];
                    text.extend(c.encode_utf8(&mut room).bytes().map(char_of));
                }
            }
        }
        text.extend(chunk.invalid().iter().copied().map(char_of));
    }
    text
}

#[must_use]
pub fn of_text(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut room = [0; 4];
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut room).as_bytes()),
        }
    }
    bytes
}

#[must_use]
pub fn from_os(text: &OsStr) -> String {
    to_text(text.as_bytes())
}

#[must_use]
pub fn to_os(text: &str) -> Cow<'_, OsStr> {
    match text.contains(|c| byte_of(c).is_some()) {
        true => Cow::Owned(OsString::from_vec(of_text(text))),
        false => Cow::Borrowed(OsStr::new(text)),
    }
}

/// The byte that a character stands for.
pub(super) fn byte_of(c: char) -> Option<u8> {
    u32::from(c).checked_sub(BASE).and_then(|byte| u8::try_from(byte).ok()).filter(|it| *it >= 0x80)
}

fn char_of(byte: u8) -> char {
    match byte {
        0x80.. => char::from_u32(BASE + u32::from(byte)).expect("the last plane has all of them"),
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_of_bytes_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        let odd: [&[u8]; 7] = [
            b"",
            b"plain",
            "ü 日本 \u{10ff80}\u{10ffff}\u{10feff}".as_bytes(),
            b"\xff\xfe caf\xe9",
            b"\xf4\x8f\xbe",
            b"\xf4\x8f\xbe\x80\xf4",
            &all,
        ];
        for bytes in odd {
            let text = to_text(bytes);
            assert_eq!(of_text(&text), bytes, "{text:?}");
            assert!(!text.contains('\u{fffd}'));
        }
        for one in 0..=255 {
            for two in 0..=255 {
                assert_eq!(of_text(&to_text(&[0xf4, one, two])), [0xf4, one, two]);
            }
        }
    }

    #[test]
    fn what_is_utf_8_is_itself() {
        for text in ["", "a=b", "日本\u{fffd}\u{10fe00}\u{e000}\n"] {
            assert_eq!(to_text(text.as_bytes()), text);
            assert_eq!(of_text(text), text.as_bytes());
        }
        assert_eq!(to_text(b"caf\xe9"), "caf\u{10ffe9}");
    }
}
