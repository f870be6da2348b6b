//! What was tried in order to start a process, for the output that say why it failed.

use crate::upgrade::os_text;
use mainstay_sys::{
    nonblocking,
    spawn::{Failure, Program, Step},
};
use mainstay_wire::link::Exec;
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsStr,
    io::{self, ErrorKind},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ExecContext {
    command: String,
    /// The files that the command may be, in the order of the search.
    #[serde(with = "os_text::list")]
    tried: Vec<PathBuf>,
    #[serde(default, with = "os_text::option", skip_serializing_if = "Option::is_none")]
    cwd: Option<PathBuf>,
    #[serde(default, with = "os_text::option", skip_serializing_if = "Option::is_none")]
    stdin: Option<PathBuf>,
}

const ENOEXEC: i32 = 8;

impl ExecContext {
    pub(crate) fn new(exec: &Exec, program: &Program) -> ExecContext {
        ExecContext {
            command: exec.argv.first().cloned().unwrap_or_default(),
            tried: program.tried().map(Path::to_owned).collect(),
            cwd: exec.cwd.clone(),
            stdin: program.stdin.as_deref().map(|path| OsStr::from_bytes(path.to_bytes()).into()),
        }
    }

    /// Of a file that is executed as it is.
    pub(crate) fn of_file(path: &Path) -> ExecContext {
        let command = path.display().to_string();
        ExecContext { command, tried: vec![path.to_owned()], cwd: None, stdin: None }
    }

    pub(crate) fn describe(&self, failed: Failure) -> String {
        let cause = io::Error::from_raw_os_error(failed.errno);
        let stdin = self.stdin.as_ref().filter(|_| failed.step == Step::Stdin);
        if let Some(path) = stdin {
            return format!("cannot open its input '{}': {cause}", path.display());
        }
        match (failed.step, &self.cwd) {
            (Step::Exec, _) => format!("cannot execute '{}': {}", self.command, self.why(&cause)),
            (Step::Cwd, Some(cwd)) => {
                format!("cannot enter its working directory '{}': {cause}", cwd.display())
            }
            (step, _) => format!("cannot {}: {cause}", step.text()),
        }
    }

    fn why(&self, cause: &io::Error) -> String {
        let found = self.tried.iter().find(|path| nonblocking::is_file(path));
        match (cause.kind(), found) {
            (ErrorKind::NotFound, None) if self.command.contains('/') => {
                "there is no such file".to_owned()
            }
            (ErrorKind::NotFound, None) => "not found in PATH".to_owned(),
            (ErrorKind::NotFound, Some(path)) => match interpreter(path) {
                Some(interpreter) => format!("its interpreter '{interpreter}' does not exist"),
                None => "its program loader does not exist on this machine".to_owned(),
            },
            (ErrorKind::PermissionDenied, None)
                if self.tried.iter().any(|path| nonblocking::is_directory(path)) =>
            {
                "it is a directory".to_owned()
            }
            (ErrorKind::PermissionDenied, _) => {
                "not executable for this user, or on a file system mounted noexec".to_owned()
            }
            _ if cause.raw_os_error() == Some(ENOEXEC) => {
                "neither a program for this machine nor a script with a #! line".to_owned()
            }
            _ => cause.to_string(),
        }
    }
}

fn interpreter(path: &Path) -> Option<String> {
    let mut start = [0; 256];
    let count = rustix::io::read(nonblocking::open_file(path).ok()?, &mut start).ok()?;
    let line = start[..count].split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    let text = String::from_utf8_lossy(line);
    text.split_ascii_whitespace().next().map(str::to_owned)
}
