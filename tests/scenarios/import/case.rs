//! A file of another supervisor, written in the shape of public ones, and what running it comes to.
//!
//! A case is a folder of `tests/corpus/FORMAT/`. Its `expected.txt` was made by hand, from what the
//! original does:
//!
//! ```text
//! files a.conf b.conf      what is given to `run --from`; else the usual name
//! set NAME=value           in the environment of the run
//! pass pg_isready          commands that end at once, with 0 if a job has been run by then
//! end migrate 3            what this job runs ends with this code; the others go on
//! notes 1                  how many notes there are; else none
//! starts db; web worker    which jobs start, group after group
//! exit 3                   the run ends by itself, with this code
//! state web FATAL          where a job comes to
//! runs-of web 2            how often it was run by then
//! stdout said web          a line of the run
//! stderr warned web
//! job web                  of this one:
//! runs node server.js      its command
//! env NAME=value
//! unset NAME
//! cwd sub
//! ```
//!
//! Every command is a stub that writes down how it was run. One that ends does so when all those
//! have been run that start with it or before: its end may be that of the run.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

#[derive(Debug, Default)]
pub(super) struct Case {
    pub(super) files: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) pass: Vec<String>,
    pub(super) ends: BTreeMap<String, i32>,
    pub(super) notes: usize,
    pub(super) starts: Vec<Vec<String>>,
    pub(super) exit: Option<i32>,
    pub(super) states: Vec<(String, String)>,
    pub(super) runs_of: Vec<(String, usize)>,
    pub(super) stdout: Vec<String>,
    pub(super) stderr: Vec<String>,
    pub(super) jobs: Vec<JobCase>,
}

#[derive(Debug, Default)]
pub(super) struct JobCase {
    pub(super) name: String,
    pub(super) runs: Option<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) unset: Vec<String>,
    pub(super) cwd: Option<String>,
}

impl Case {
    pub(super) fn read(folder: &Path) -> Case {
        let text = fs::read_to_string(folder.join("expected.txt")).expect("it says what to expect");
        let mut case = Case::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            case.line(line);
        }
        case
    }

    /// The jobs that have been run before this one ends.
    pub(super) fn run_before_end_of(&self, job: &str) -> Vec<String> {
        let group = self.starts.iter().position(|group| group.iter().any(|it| it == job));
        let groups = self.starts.iter().take(group.map_or(0, |at| at + 1));
        groups.flatten().cloned().collect()
    }

    fn line(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words = || rest.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let pair = |by: char| {
            let (name, value) = rest.split_once(by).unwrap_or_else(|| panic!("in '{line}'"));
            (name.to_owned(), value.to_owned())
        };
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("in '{line}'"));
        match word {
            "files" => self.files = words(),
            "set" => self.env.push(pair('=')),
            "pass" => self.pass = words(),
            "end" => {
                let (job, code) = pair(' ');
                self.ends.insert(job, number(&code));
            }
            "notes" => self.notes = rest.parse().expect("a number"),
            "starts" => {
                let group = |text: &str| text.split_whitespace().map(str::to_owned).collect();
                self.starts = rest.split(';').map(group).collect();
            }
            "exit" => self.exit = Some(number(rest)),
            "state" => self.states.push(pair(' ')),
            "runs-of" => {
                let (job, times) = pair(' ');
                self.runs_of.push((job, times.parse().expect("a number")));
            }
            "stdout" => self.stdout.push(rest.to_owned()),
            "stderr" => self.stderr.push(rest.to_owned()),
            "job" => self.jobs.push(JobCase { name: rest.to_owned(), ..JobCase::default() }),
            _ => {
                let job = self.jobs.last_mut().unwrap_or_else(|| panic!("'{line}' of no job"));
                match word {
                    "runs" => job.runs = Some(rest.to_owned()),
                    "env" => job.env.push(pair('=')),
                    "unset" => job.unset.push(rest.to_owned()),
                    "cwd" => job.cwd = Some(rest.to_owned()),
                    other => panic!("'{other}' is not known"),
                }
            }
        }
    }
}

/// What every command is: it writes down how it was run, once, and then ends or goes on for as long
/// as it is let (and, where that stays open, as its input lasts).
const STUB: &str = r#"#!/bin/sh
name=${0##*/}
case " $CORPUS_PASS " in *" $name "*) test -s "$CORPUS_SEEN.order"; exit ;; esac
seen=$CORPUS_SEEN/$MAINSTAY_JOB
echo >>"$CORPUS_SEEN/$MAINSTAY_JOB.runs"
if mkdir "$seen" 2>/dev/null; then
    echo "$name $*" >"$seen/runs"
    pwd >"$seen/cwd"
    env >"$seen/env"
    echo "$MAINSTAY_JOB" >>"$CORPUS_SEEN.order"
fi
echo "said $name"
echo "warned $name" >&2
if [ -e "$CORPUS_ENDS/$MAINSTAY_JOB" ]; then
    while read -r other; do
        until grep -qx -e "$other" "$CORPUS_SEEN.order"; do sleep 0.05; done
    done <"$CORPUS_ENDS/$MAINSTAY_JOB.after"
    exit "$(cat "$CORPUS_ENDS/$MAINSTAY_JOB")"
fi
if [ "$CORPUS_INPUT" = open ]; then read -r line; exit 99; fi
exec sleep 1000
"#;

const PROGRAMS: [&str; 25] = [
    "bundle",
    "celery",
    "gunicorn",
    "lnav",
    "make",
    "mix",
    "mypy",
    "nginx",
    "node",
    "npm",
    "pg_isready",
    "php",
    "php-cgi",
    "php-fpm",
    "postgres",
    "puma",
    "pytest",
    "python",
    "rake",
    "ruff",
    "stripe",
    "uvicorn",
    "vite",
    "yarn",
    "zed",
];

/// Copies a folder; a file that says `stub` is one.
pub(super) fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            fs::create_dir_all(&target).expect("a scratch directory can be written");
            copy(&path, &target);
        } else if fs::read_to_string(&path).is_ok_and(|text| text == "stub") {
            stub(&target);
        } else {
            fs::copy(&path, &target).expect("a scratch directory can be written");
        }
    }
}

/// A folder with all programs that the cases run.
pub(super) fn programs(dir: &Path) -> PathBuf {
    let path = dir.join("stubs");
    fs::create_dir(&path).expect("a scratch directory can be written");
    PROGRAMS.iter().for_each(|name| stub(&path.join(name)));
    path
}

fn stub(path: &Path) {
    fs::write(path, STUB).expect("a scratch directory can be written");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(path, executable).expect("a scratch directory can be written");
}
