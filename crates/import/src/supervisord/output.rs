//! Where the output of a program goes.

use super::{
    program::{Program, Values},
    text::{ValueError, size, truth},
};
use crate::draft::{Draft, Table, inline, pair, quoted};

/// What a `…_logfile` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A file of supervisord's own choice.
    Automatic,
    None,
    Stdout,
    Stderr,
    /// Somewhere that we do not write to.
    Path,
    Syslog,
}

fn place(path: &str) -> Place {
    let descriptor = ["/dev/fd/", "/proc/self/fd/", "/proc/1/fd/"]
        .iter()
        .find_map(|start| path.strip_prefix(start));
    match (descriptor, path) {
        (Some("1"), _) | (_, "/dev/stdout") => Place::Stdout,
        (Some("2"), _) | (_, "/dev/stderr") => Place::Stderr,
        (_, "AUTO" | "auto") => Place::Automatic,
        (_, "NONE" | "none" | "off" | "/dev/null") => Place::None,
        (_, "syslog") => Place::Syslog,
        _ => Place::Path,
    }
}

impl Program<'_> {
    pub(super) fn output(
        &self,
        draft: &mut Draft,
        table: &mut Table,
        values: &Values<'_, '_>,
    ) -> Result<(), (String, ValueError)> {
        let joined = values.truth("redirect_stderr", false)?;
        let stdout = self.log_place(draft, values, "stdout")?;
        let stderr = if joined { stdout } else { self.log_place(draft, values, "stderr")? };
        let as_stdout = joined || (stdout == Place::Stdout && stderr == Place::Stdout);
        match (as_stdout, stderr) {
            (true, _) => {}
            (false, Place::Stderr) => table.set("stderr", quoted("inherit")),
            (false, _) => table.set("stderr", quoted("separate")),
        }
        let mut log = Vec::new();
        let elsewhere = as_stdout || matches!(stderr, Place::Stderr | Place::None);
        match stdout {
            Place::Automatic | Place::Path | Place::Syslog => {}
            Place::None if elsewhere => log.push(pair("file", quoted("none"))),
            Place::None => {}
            Place::Stdout | Place::Stderr => {
                if stdout == Place::Stderr {
                    let at = values.line("stdout_logfile");
                    draft.gather(
                        self.file(),
                        at,
                        "stdout_logfile: it goes to stdout, not to stderr",
                    );
                }
                log.push(pair("forward", "true"));
                log.push(pair("format", quoted("raw")));
                if elsewhere {
                    log.push(pair("file", quoted("none")));
                }
            }
        }
        let kept = matches!(stdout, Place::Automatic | Place::Path);
        let keep = self.keep(draft, values, kept)?;
        if kept && !keep.is_empty() {
            log.push(pair("keep", inline(&keep)));
        }
        if !log.is_empty() {
            table.set("log", inline(&log));
        }
        Ok(())
    }

    fn log_place(
        &self,
        draft: &mut Draft,
        values: &Values<'_, '_>,
        stream: &str,
    ) -> Result<Place, (String, ValueError)> {
        let key = format!("{stream}_logfile");
        let path = values.now_if_there(&key)?;
        let place = path.map_or(Place::Automatic, |path| place(path.trim()));
        let at = values.line(&key);
        match place {
            Place::Path => draft.gather(
                self.file(),
                at,
                "stdout_logfile, stderr_logfile: the log is in files of mainstay's own: mainstay \
                 logs NAME",
            ),
            Place::Syslog => draft.gather(self.file(), at, SYSLOG),
            Place::Automatic | Place::None | Place::Stdout | Place::Stderr => {}
        }
        if let Some(entry) = values.entry(&format!("{stream}_syslog"))
            && truth(&entry.value) == Some(true)
        {
            draft.gather(self.file(), entry.line, SYSLOG);
        }
        Ok(place)
    }

    fn keep(
        &self,
        draft: &mut Draft,
        values: &Values<'_, '_>,
        kept: bool,
    ) -> Result<Vec<(String, String)>, (String, ValueError)> {
        let mut keep = Vec::new();
        let key = "stdout_logfile_maxbytes";
        if let Some(text) = values.now_if_there(key)? {
            match size(&text).map_err(|why| (key.to_owned(), why))? {
                Some(size) => keep.push(pair("size", size)),
                None if kept => {
                    let message = "stdout_logfile_maxbytes = 0: logs are rotated here";
                    draft.gather(self.file(), values.line(key), message);
                }
                None => {}
            }
        }
        if values.entry("stdout_logfile_backups").is_some() {
            let files = values.number("stdout_logfile_backups", 10, 0, 1_000_000)?;
            keep.push(pair("files", files.to_string()));
        }
        Ok(keep)
    }
}

const SYSLOG: &str = "nothing is sent to syslog: the log is in files of mainstay's own";
