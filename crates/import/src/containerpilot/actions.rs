//! Whether what a template opens is closed: the engine takes the end of the file for the end of
//! whatever is open, and what follows an `end` too many for nothing. Of an action that is not closed
//! it says where it noticed, which may be many lines later.

use super::template::RenderError;

/// The first thing that is open at the end, or closed without having been opened.
pub(super) fn unbalanced(file: &str) -> Option<RenderError> {
    let mut open: Vec<(usize, &str)> = Vec::new();
    for (at, word) in first_words(file) {
        let too_many = match word {
            "if" | "range" | "with" | "define" | "block" => {
                open.push((at, word));
                false
            }
            "end" => open.pop().is_none(),
            "else" => open.is_empty(),
            _ => false,
        };
        if too_many {
            let message = format!("{{{{ {word} }}}} stands here, and nothing is open");
            let help = "remove it, or open an if, range or with before it".to_owned();
            return Some(RenderError { span: at..at + 2, message, help });
        }
    }
    let (at, word) = open.pop()?;
    let message = format!("{{{{ {word} }}}} is opened here and never closed");
    Some(RenderError { span: at..at + 2, message, help: "close it with {{ end }}".to_owned() })
}

/// The first action that is not closed.
pub(super) fn unended(file: &str) -> Option<RenderError> {
    let (at, why) = walk(file, |_, _| {}).err()?;
    let help = "close it with }}; files are Go templates, {{ .NAME }} is a variable".to_owned();
    Some(RenderError { span: at..at + 2, message: format!("not a template: {why}"), help })
}

/// The first word of every action, and where the action begins.
fn first_words(file: &str) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    let _ = walk(file, |at, word| all.push((at, word)));
    all
}

/// Calls with every action and its first word; an error is where one begins that is not closed.
fn walk<'a>(
    file: &'a str,
    mut each: impl FnMut(usize, &'a str),
) -> Result<(), (usize, &'static str)> {
    let mut at = 0;
    while let Some(found) = file.get(at..).and_then(|rest| rest.find("{{")) {
        let begin = at + found;
        let inside = file.get(begin + 2..).unwrap_or_default();
        let trimmed = match inside.strip_prefix("- ").or_else(|| inside.strip_prefix("-\n")) {
            Some(rest) => rest.trim_start(),
            None => inside.trim_start(),
        };
        let length = match trimmed.strip_prefix("/*") {
            Some(comment) => {
                let end = comment.find("*/");
                end.ok_or((begin, "a comment is opened here and never closed"))? + 4
            }
            None => {
                let end =
                    trimmed.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(trimmed.len());
                each(begin, trimmed.get(..end).unwrap_or_default());
                length(trimmed).map_err(|why| (begin, why))?
            }
        };
        at = file.len() - trimmed.len() + length;
    }
    Ok(())
}

/// Up to the end of an action, past what is quoted in it; or why it has none.
fn length(action: &str) -> Result<usize, &'static str> {
    const OPEN: &str = "{{ is opened here and never closed";
    const QUOTE: &str = "a quote in this action is not closed";
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in action.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some('"' | '\'') if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some('"' | '\'') if c == '\n' => return Err(QUOTE),
            Some(_) => {}
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None if action.get(at..).is_some_and(|rest| rest.starts_with("}}")) => {
                return Ok(at + 2);
            }
            None if action.get(at..).is_some_and(|rest| rest.starts_with("{{")) => {
                return Err(OPEN);
            }
            None => {}
        }
    }
    Err(if quote.is_some() { QUOTE } else { OPEN })
}

#[cfg(test)]
mod tests {
    use super::{unbalanced, unended};

    #[test]
    fn what_is_not_closed_is_found_where_it_begins() {
        for (file, at, why) in [
            ("a {{ .X", 2, "never closed"),
            ("a\n {{ .X }\n b {{ .Y }}", 3, "never closed"),
            ("{{ .X }} {{ .Y \"b }},\n jobs: {}}\n", 9, "a quote"),
            ("{{ .X }} {{ `b }}\n{{ .Z }}\n", 9, "a quote"),
            ("{{ .X }}\n{{/* b }}\n{{ .Z }}\n", 9, "a comment"),
        ] {
            let bad = unended(file).expect(file);
            assert_eq!(bad.span.start, at, "{file}");
            assert!(bad.message.contains(why), "{file}: {}", bad.message);
        }
        for file in
            ["", "{{ \"}}\" }}", "{{ `\n{{` }}", "{{- /* {{ */ -}}", "{{ \"\\\"}}\" }} {{ '{' }}"]
        {
            assert!(unended(file).is_none(), "{file}");
        }
    }

    #[test]
    fn what_is_open_or_closed_too_often_is_found() {
        for (file, at) in [
            ("a {{ if .X }} b", Some(2)),
            ("{{ range .X }}{{ if .Y }}{{ end }}", Some(0)),
            ("a {{ end }} b", Some(2)),
            ("{{ if .X }}{{ end }}{{- else }}", Some(20)),
            ("{{ define \"x\" }}", Some(0)),
            ("{{- if .X -}} {{ else if .Y }} {{- end -}}", None),
            ("{{ printf \"{{ if\" }}", None),
            ("{{ `}} {{ if` }}", None),
            ("{{/* if */}} {{- /* {{ if */ -}}", None),
            ("{{ .end }}{{ $if }}{{ endless }}", None),
            ("{{ \"\\\"\" }}{{ with 1 }}{{ end }}", None),
            ("{{", None),
            ("{{ \"", None),
            ("{{/*", None),
        ] {
            assert_eq!(unbalanced(file).map(|bad| bad.span.start), at, "{file}");
        }
    }
}
