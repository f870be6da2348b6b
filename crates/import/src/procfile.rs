//! Procfiles (Heroku, foreman, overmind): `NAME: command`, each run by a shell.
//!
//! What foreman does is written down: it runs in the directory of the file with the variables of
//! `.env`, gives each process a PORT (100 apart) and its name in PS, an input that stays open, and
//! ends with the first process that ends.

use super::{
    ForeignFile, Imported,
    draft::{Draft, Names, Table, inline, is_variable, list, literal, pair, quoted},
};
use mainstay_config::{Context, Diagnostic, Errors, env_file};
use std::path::Path;

const MOST: usize = 10_000;
/// The port of the first process, and how far the next is from it.
const FIRST_PORT: u32 = 5000;
const PORTS_APART: u32 = 100;
/// Heroku runs it before the others.
const RELEASE: &str = "release";

/// One line of the file.
struct ProcessLine<'a> {
    line: usize,
    name: &'a str,
    command: &'a str,
}

pub(super) fn import(file: &ForeignFile, ctx: &Context) -> Result<Imported, Errors> {
    let source = &file.source;
    let mut draft = Draft::new("a Procfile", &source.name);
    let entries = entries(&mut draft, &source.text);
    if entries.is_empty() {
        return Err(nothing(&source.name).into());
    }
    let given = Given::of(&mut draft, &file.directory(), ctx);
    let release = entries.iter().any(|entry| entry.name == RELEASE) && entries.len() > 1;
    let mut names = Names::default();
    let mut node = Table::new("node", &source.name);
    if !release {
        node.remark("as foreman, it ends with the first process that ends");
        node.set("exit", quoted("any"));
        draft.push(node);
    }
    let named: Vec<String> = entries.iter().map(|it| names.take(it.name, None)).collect();
    let first = entries.iter().zip(&named).find(|(it, _)| it.name == RELEASE);
    let first = first.map(|(_, name)| name.clone()).filter(|_| release);
    for ((index, entry), name) in (0..).zip(&entries).zip(&named) {
        let mut table = Table::new(format!("jobs.{name}"), &source.name);
        if name != entry.name {
            let message = format!("'{}' is called '{name}' here", entry.name);
            table.note(entry.line, message);
        }
        table.set("exec", list(["sh", "-c", entry.command].map(literal)));
        match &first {
            None => {}
            Some(first) if first == name => {
                let message = "release runs before the others, as at Heroku; foreman would start it \
                               beside them";
                table.note(entry.line, message);
                table.set("exit_on_failure", "true");
            }
            Some(first) => {
                let once = pair("once", quoted("exitSuccess"));
                table.set("when", inline(&[pair("source", quoted(first)), once]));
                table.set("main", "true");
            }
        }
        table.set("restart", quoted("never"));
        table.set("stdin", quoted("open"));
        given.write(&mut table, entry.name, index);
        draft.push(table);
    }
    Ok(draft.finish())
}

fn entries<'a>(draft: &mut Draft, text: &'a str) -> Vec<ProcessLine<'a>> {
    let mut all = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() || text.trim_start().starts_with('#') {
            continue;
        }
        let Some((name, command)) = entry(text.trim_end()) else {
            draft.note(line, "left out: this is not NAME: command");
            continue;
        };
        if all.len() == MOST {
            draft.note(line, format!("left out from here: more than {MOST} processes"));
            break;
        }
        all.push(ProcessLine { line, name, command });
    }
    all
}

/// A name and what is run.
fn entry(text: &str) -> Option<(&str, &str)> {
    let (name, command) = text.split_once(':')?;
    let command = command.trim();
    let valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    (!name.is_empty() && name.bytes().all(valid) && !command.is_empty()).then_some((name, command))
}

/// What every process of the file is given.
struct Given {
    /// Unless it is the directory we are in.
    cwd: Option<String>,
    env_file: Option<String>,
    /// Of a `.env` that we would read in another way.
    env: Vec<(String, String)>,
    port: u32,
}

impl Given {
    fn of(draft: &mut Draft, dir: &Path, ctx: &Context) -> Given {
        let here = std::env::current_dir().is_ok_and(|here| here == dir);
        let path = dir.join(".env");
        let shown = if here { ".env".to_owned() } else { path.to_string_lossy().into_owned() };
        let text = std::fs::read_to_string(&path);
        let variables = match &text {
            Ok(text) => variables(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                draft.note(None, format!("{shown} is left out: it cannot be read: {error}"));
                Vec::new()
            }
        };
        let said = variables.iter().find(|(name, _)| name == "PORT").map(|(_, value)| value);
        let port = said.or_else(|| ctx.env.get("PORT")).and_then(|port| port.trim().parse().ok());
        // As a file where we read the same in it: what is secret there stays there.
        let same = text.as_ref().is_ok_and(|text| {
            env_file::parse(text).is_ok_and(|ours| as_a_map(&ours) == as_a_map(&variables))
        });
        let (known, odd): (Vec<_>, Vec<_>) =
            variables.into_iter().partition(|(name, _)| is_variable(name));
        for (name, _) in odd {
            draft.note(None, format!("{shown}: {name} is left out: mainstay sets it itself"));
        }
        let as_file = same && !known.is_empty();
        Given {
            cwd: (!here).then(|| dir.to_string_lossy().into_owned()),
            env_file: as_file.then_some(shown),
            env: if as_file { Vec::new() } else { known },
            port: port.unwrap_or(FIRST_PORT),
        }
    }

    fn write(&self, table: &mut Table, name: &str, index: u32) {
        table.set_if_some("cwd", self.cwd.as_deref().map(literal));
        table.set_if_some("env_file", self.env_file.as_deref().map(literal));
        let port = self.port.saturating_add(index.saturating_mul(PORTS_APART));
        let mut env: Vec<(String, String)> =
            self.env.iter().map(|(name, value)| pair(name, literal(value))).collect();
        env.retain(|(name, _)| name != "PORT" && name != "PS");
        env.push(pair("PORT", port.to_string()));
        env.push(pair("PS", quoted(&format!("{name}.1"))));
        table.set("env", inline(&env));
    }
}

fn as_a_map(all: &[(String, String)]) -> std::collections::BTreeMap<&str, &str> {
    all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// A `.env` as foreman reads it: whatever is no NAME=value is passed over.
fn variables(text: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let Some((name, value)) = line.split_once('=') else { continue };
        let valid = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if name.is_empty() || !name.bytes().all(valid) || value.contains('\0') {
            continue;
        }
        let within = |quote: char| {
            let inside = value.strip_prefix(quote)?.strip_suffix(quote)?;
            (value.len() > 1).then_some(inside)
        };
        let value = match (within('\''), within('"')) {
            (Some(inside), _) => inside.to_owned(),
            (None, Some(inside)) => unescaped(&inside.replace("\\n", "\n")),
            (None, None) => value.to_owned(),
        };
        all.retain(|(other, _)| other != name);
        all.push((name.to_owned(), value));
    }
    all
}

/// A character after a backslash is itself.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    out
}

fn nothing(file: &str) -> Diagnostic {
    Diagnostic::error("there is no process in this Procfile")
        .file(file)
        .help("a Procfile has lines like: web: ./server --port 8080")
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn a_dotenv_is_read_as_foreman_reads_it() {
        let text =
            "# note\nA=1 # kept\nB='x y'\nC=\"a\\nb\\\"c\"\nexport D=1\nnothing\nA=2\nE=\n9=9\n";
        let read = variables(text);
        let read: Vec<(&str, &str)> = read.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(read, [("B", "x y"), ("C", "a\nb\"c"), ("A", "2"), ("E", ""), ("9", "9")]);
    }
}
