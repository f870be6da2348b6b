//! A command line split into words as a POSIX shell would, by a shell that knows nothing else:
//! no variables, globs, comments or operators.
//!
//! Outside quotes a backslash keeps the next character; `'…'` keeps everything; `"…"` keeps
//! everything but a backslash before `$`, a backquote, `"`, `\` or a line end. A backslash before a
//! line end removes both.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// Some of it was in quotes or escaped: it is meant as it is.
    pub quoted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unclosed {
    Single,
    Double,
    Backslash,
}

impl Unclosed {
    pub fn what(self) -> &'static str {
        match self {
            Unclosed::Single => "a single quote (') is not closed",
            Unclosed::Double => "a double quote (\") is not closed",
            Unclosed::Backslash => "it ends in a backslash with nothing to escape",
        }
    }
}

pub fn split(line: &str) -> Result<Vec<Word>, Unclosed> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => single(&mut rest, begun(&mut word))?,
            '"' => double(&mut rest, begun(&mut word))?,
            '\\' => match rest.next() {
                Some('\n') => {}
                Some(kept) => begun(&mut word).text.push(kept),
                None => return Err(Unclosed::Backslash),
            },
            plain => word.get_or_insert_default().text.push(plain),
        }
    }
    words.extend(word);
    Ok(words)
}

fn begun(word: &mut Option<Word>) -> &mut Word {
    let word = word.get_or_insert_default();
    word.quoted = true;
    word
}

fn single(rest: &mut std::str::Chars<'_>, word: &mut Word) -> Result<(), Unclosed> {
    for c in rest {
        match c {
            '\'' => return Ok(()),
            kept => word.text.push(kept),
        }
    }
    Err(Unclosed::Single)
}

fn double(rest: &mut std::str::Chars<'_>, word: &mut Word) -> Result<(), Unclosed> {
    while let Some(c) = rest.next() {
        match c {
            '"' => return Ok(()),
            '\\' => match rest.next() {
                Some('\n') => {}
                Some(kept @ ('$' | '`' | '"' | '\\')) => word.text.push(kept),
                Some(other) => word.text.extend(['\\', other]),
                None => return Err(Unclosed::Double),
            },
            kept => word.text.push(kept),
        }
    }
    Err(Unclosed::Double)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Result<Vec<String>, Unclosed> {
        Ok(split(line)?.into_iter().map(|word| word.text).collect())
    }

    #[test]
    fn words_are_split_as_a_shell_would() {
        let cases: [(&str, &[&str]); 16] = [
            ("", &[]),
            ("  \t\n ", &[]),
            ("a b", &["a", "b"]),
            ("  a   b\n", &["a", "b"]),
            ("'a b' c", &["a b", "c"]),
            ("\"a b\" c", &["a b", "c"]),
            ("a'b'\"c\"d", &["abcd"]),
            ("''", &[""]),
            ("a \"\" b", &["a", "", "b"]),
            (r"a\ b", &["a b"]),
            (r#""a\"b\\c\n""#, &[r#"a"b\c\n"#]),
            (r"'a\b'", &[r"a\b"]),
            ("a\\\nb", &["ab"]),
            ("\"a\\\nb\"", &["ab"]),
            ("sh -c 'echo \"$x\"'", &["sh", "-c", "echo \"$x\""]),
            ("é\u{a0}ü # no comment", &["é\u{a0}ü", "#", "no", "comment"]),
        ];
        for (line, expected) in cases {
            assert_eq!(texts(line).as_deref(), Ok(expected.map_owned().as_slice()), "{line:?}");
        }
    }

    trait MapOwned {
        fn map_owned(&self) -> Vec<String>;
    }
    impl MapOwned for &[&str] {
        fn map_owned(&self) -> Vec<String> {
            self.iter().map(|word| (*word).to_owned()).collect()
        }
    }

    #[test]
    fn what_is_left_open_is_named() {
        assert_eq!(split("a 'b"), Err(Unclosed::Single));
        assert_eq!(split("a \"b"), Err(Unclosed::Double));
        assert_eq!(split("a \"b\\"), Err(Unclosed::Double));
        assert_eq!(split("a\\"), Err(Unclosed::Backslash));
    }

    #[test]
    fn quoting_is_remembered() {
        let words = split(r#"a && '&&' \&"#).expect("closed");
        let quoted: Vec<bool> = words.iter().map(|word| word.quoted).collect();
        assert_eq!(quoted, [false, false, true, true]);
    }
}
