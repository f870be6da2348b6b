//! Procfiles (Heroku, foreman, overmind): `NAME: command`, each run by a shell.

use super::{
    Imported,
    draft::{Draft, Names, Table, list, literal, quoted},
};
use mainstay_config::{Diagnostic, Errors, Source};

const MOST: usize = 10_000;

pub(super) fn import(source: &Source) -> Result<Imported, Errors> {
    let mut draft = Draft::new("a Procfile", &source.name);
    draft.note(
        None,
        "a failed job is restarted and the others go on; with foreman they would end (a job with \
         main = true ends them all)",
    );
    draft.note(None, "variables of a .env file: add env_file = \".env\" to the jobs");
    let mut names = Names::default();
    let mut jobs = 0;
    let text = source.text.strip_prefix('\u{feff}').unwrap_or(&source.text);
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let Some((name, command)) = entry(text) else {
            draft.note(line, "left out: this is not NAME: command");
            continue;
        };
        if jobs == MOST {
            draft.note(line, format!("left out from here: more than {MOST} processes"));
            break;
        }
        jobs += 1;
        let taken = names.take(name, None);
        let mut table = Table::new(format!("jobs.{taken}"), &source.name);
        if taken != name {
            table.note(line, format!("'{name}' is renamed: it is no name here or is there twice"));
        }
        if name == "release" {
            table.note(
                line,
                "release runs before the others at Heroku: add when = { source = \"release\", once \
                 = \"exitSuccess\" } to them",
            );
        }
        if command.contains("$PORT") || command.contains("${PORT") {
            table.note(line, "PORT was given by foreman: set it in env");
            let port = 5000 + 100 * (jobs - 1).min(600);
            table.set("exec", shell(command));
            table.set("env", format!("{{ PORT = {port} }}"));
        } else {
            table.set("exec", shell(command));
        }
        if name == "release" {
            table.set("restart", quoted("never"));
        }
        draft.push(table);
    }
    if jobs == 0 {
        return Err(nothing(&source.name).into());
    }
    Ok(draft.finish())
}

/// A name and what is run.
fn entry(text: &str) -> Option<(&str, &str)> {
    let (name, command) = text.split_once(':')?;
    let (name, command) = (name.trim_end(), command.trim());
    let valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    (!name.is_empty() && name.bytes().all(valid) && !command.is_empty()).then_some((name, command))
}

/// A command line is written for a shell, so a shell it is.
fn shell(command: &str) -> String {
    list(["sh", "-c", command].map(literal))
}

fn nothing(file: &str) -> Diagnostic {
    Diagnostic::error("there is no process in this Procfile")
        .file(file)
        .help("a Procfile has lines like: web: ./server --port 8080")
}
