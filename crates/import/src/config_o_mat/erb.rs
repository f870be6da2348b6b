//! ERB as config_o_mat reads it: `<% %>`, `<%= %>`, `<%# %>`, and the end of a line that begins and
//! ends with a tag belongs to the tag (trim mode `<>`).

/// A stretch of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ErbPiece {
    Text(String),
    Tag(Tag),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) kind: TagKind,
    pub(super) code: String,
    /// Counted from 1.
    pub(super) line: usize,
    /// The end of its line is not in what is made.
    pub(super) trims: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagKind {
    /// `<% %>`
    Run,
    /// `<%= %>`
    Print,
    /// `<%# %>`
    Comment,
}

/// A tag that does not end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OpenTag {
    pub(super) line: usize,
}

/// In the order in which they are tried at one place.
const MARKS: [&str; 9] = ["%>\r\n", "%>\n", "<%%", "<%=", "<%#", "<%", "%%>", "%>", "\n"];

pub(super) fn pieces(text: &str) -> Result<Vec<ErbPiece>, OpenTag> {
    let mut scan =
        ErbScan { pieces: Vec::new(), content: String::new(), tag: None, line: 1, begins: None };
    let mut rest = text;
    while !rest.is_empty() {
        let (at, mark) = next_mark(rest);
        let (before, after) = rest.split_at(at);
        if !before.is_empty() {
            scan.text(before);
        }
        if let Some(mark) = mark {
            scan.mark(mark);
        }
        rest = &after[mark.map_or(0, str::len)..];
    }
    match scan.tag {
        Some((_, line)) => Err(OpenTag { line }),
        None => {
            scan.flush();
            Ok(scan.pieces)
        }
    }
}

fn next_mark(text: &str) -> (usize, Option<&'static str>) {
    let found = text.bytes().enumerate().find_map(|(at, byte)| {
        let possible = matches!(byte, b'<' | b'%' | b'\n');
        let here = &text.as_bytes()[at..];
        let mark = MARKS.into_iter().find(|it| possible && here.starts_with(it.as_bytes()))?;
        Some((at, mark))
    });
    found.map_or((text.len(), None), |(at, mark)| (at, Some(mark)))
}

struct ErbScan {
    pieces: Vec<ErbPiece>,
    content: String,
    /// The tag we are in, and where it began.
    tag: Option<(TagKind, usize)>,
    line: usize,
    /// Whether this line begins with a tag; `None`: there is nothing in it so far.
    begins: Option<bool>,
}

impl ErbScan {
    fn text(&mut self, text: &str) {
        self.begins.get_or_insert(false);
        self.content.push_str(text);
    }

    fn mark(&mut self, mark: &'static str) {
        let begins = *self.begins.get_or_insert(matches!(mark, "<%=" | "<%#" | "<%"));
        match mark {
            "%>\n" | "%>\r\n" => {
                self.close(begins);
                if !begins {
                    self.content.push('\n');
                }
                self.next_line();
            }
            "\n" => {
                self.content.push('\n');
                self.next_line();
            }
            "%>" => self.close(false),
            "<%" | "<%=" | "<%#" if self.tag.is_none() => {
                self.flush();
                let kind = match mark {
                    "<%=" => TagKind::Print,
                    "<%#" => TagKind::Comment,
                    _ => TagKind::Run,
                };
                self.tag = Some((kind, self.line));
            }
            "<%%" if self.tag.is_none() => self.content.push_str("<%"),
            "%%>" if self.tag.is_some() => self.content.push_str("%>"),
            _ => self.content.push_str(mark),
        }
    }

    fn close(&mut self, trims: bool) {
        let code = std::mem::take(&mut self.content);
        match self.tag.take() {
            Some((kind, line)) => self.pieces.push(ErbPiece::Tag(Tag { kind, code, line, trims })),
            None => self.content = code + "%>",
        }
    }

    fn flush(&mut self) {
        let content = std::mem::take(&mut self.content);
        if !content.is_empty() {
            self.pieces.push(ErbPiece::Text(content));
        }
    }

    fn next_line(&mut self) {
        self.line += 1;
        self.begins = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let piece = |piece| match piece {
            ErbPiece::Text(text) => format!("{text:?}"),
            ErbPiece::Tag(Tag { kind, code, line, trims }) => {
                format!("{kind:?} {code:?} {line}{}", if trims { " trims" } else { "" })
            }
        };
        pieces(text).expect("tags that end").into_iter().map(piece).collect()
    }

    #[test]
    fn a_line_of_tags_alone_ends_with_them() {
        assert_eq!(shown("<% a %>\nb"), ["Run \" a \" 1 trims", "\"b\""]);
        assert_eq!(shown(" <% a %>\nb"), ["\" \"", "Run \" a \" 1", "\"\\nb\""]);
        assert_eq!(
            shown("<%= a %>x<%= b %>\n"),
            ["Print \" a \" 1", "\"x\"", "Print \" b \" 1 trims"]
        );
        assert_eq!(shown("<% a\n b %>\nc"), ["Run \" a\\n b \" 1", "\"\\nc\""]);
        assert_eq!(shown("<%# a %>\r\nb"), ["Comment \" a \" 1 trims", "\"b\""]);
    }

    #[test]
    fn doubled_signs_are_text() {
        assert_eq!(shown("<%% x %%> <%= '%%>' %>"), ["\"<% x %%> \"", "Print \" '%>' \" 1"]);
        assert_eq!(shown("a %> b"), ["\"a %> b\""]);
        assert_eq!(pieces("a\n<% b"), Err(OpenTag { line: 2 }));
    }
}
