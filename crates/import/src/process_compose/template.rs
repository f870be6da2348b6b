//! `{{.NAME}}` in the texts of a process: what `vars` says.

use std::collections::BTreeMap;

/// The text with values in place of its actions; or the first action that is not understood.
pub(super) fn render(text: &str, vars: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((action, tail)) = after.split_once("}}") else {
            return Err(format!("'{{{{{after}' is not closed"));
        };
        let (cut_before, inside) = match action.strip_prefix("- ") {
            Some(inside) => (true, inside),
            None => (false, action),
        };
        let (cut_after, inside) = match inside.strip_suffix(" -") {
            Some(inside) => (true, inside),
            None => (false, inside),
        };
        out.push_str(if cut_before { before.trim_end() } else { before });
        out.push_str(&value(inside.trim(), vars).ok_or_else(|| {
            format!("'{{{{{action}}}}}' is not understood: only {{{{.NAME}}}} is")
        })?);
        rest = if cut_after { tail.trim_start() } else { tail };
    }
    out.push_str(rest);
    Ok(out)
}

fn value(action: &str, vars: &BTreeMap<String, String>) -> Option<String> {
    let quoted = |quote: char| action.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(text) = quoted('`').or_else(|| quoted('"')).filter(|it| !it.contains(['"', '\\'])) {
        return Some(text.to_owned());
    }
    let name = action.strip_prefix('.')?;
    let valid = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    valid.then(|| vars.get(name).map_or("<no value>", String::as_str).to_owned())
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn names_become_their_values() {
        let vars = [("A".to_owned(), "1".to_owned())].into();
        for (text, expected) in [
            ("x {{.A}} {{ .A }}", "x 1 1"),
            ("x {{- .A -}} y", "x1y"),
            ("{{.B}}", "<no value>"),
            ("{{`{{`}}x", "{{x"),
        ] {
            assert_eq!(render(text, &vars).as_deref(), Ok(expected));
        }
        for text in ["{{.A", "{{if .A}}", "{{.A | upper}}", "{{}}"] {
            assert!(render(text, &vars).is_err(), "{text}");
        }
    }
}
