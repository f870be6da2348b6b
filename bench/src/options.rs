//! What the user asked for.

use std::path::PathBuf;

use crate::role::Role;

pub(crate) const HELP: &str = "\
mainstay-bench: Mainstay beside its peers and the floor, in one run

  --mainstay FILE   the binary to measure (without it, peers and floor only)
  --dir DIR         where to work, best in memory as /run is; removed at the end
  --state DIR       where logs go, best on disk; removed at the end
  --docs DIR        where performance.md, .svg and .json are kept
  --write           write them even after --quick, --only or --jobs
  --quick           100 jobs, 50 MB, one round: does the harness work?
  --jobs N          how many jobs (1000)
  --rounds N        how often each peer has its turn (3)
  --megabytes N     how much output (500)
  --samples N       how many crashes per peer (200)
  --only ROW        start memory crash idle lines meanwhile agent upgrade
                    chain checks reload fleet rollout scrape step
                    register discovery frozen alarms; may be repeated; register, discovery
                    and frozen need consul; alarms takes ten minutes, and is left out unless named
  --peer NAME       mainstay s6 runit supervisord pm2 horust supvisors floor; may be repeated
";

#[derive(Debug)]
pub(crate) enum Asked {
    Help,
    Role(Role),
    Measure(Options),
}

#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub mainstay: Option<PathBuf>,
    pub dir: PathBuf,
    pub state: PathBuf,
    pub docs: Option<PathBuf>,
    pub jobs: usize,
    pub rounds: usize,
    pub megabytes: u64,
    pub samples: usize,
    pub only: Vec<String>,
    pub peers: Vec<String>,
    /// Figures of a shortened run are printed, not published.
    pub publish: bool,
}

const ROWS: [&str; 19] = [
    "start",
    "memory",
    "crash",
    "idle",
    "lines",
    "meanwhile",
    "agent",
    "upgrade",
    "chain",
    "checks",
    "reload",
    "fleet",
    "rollout",
    "scrape",
    "step",
    "register",
    "discovery",
    "frozen",
    "alarms",
];
const PEERS: [&str; 8] =
    ["mainstay", "s6", "runit", "supervisord", "pm2", "horust", "supvisors", "floor"];

impl Options {
    pub(crate) fn wants(&self, row: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == row)
    }

    pub(crate) fn wants_peer(&self, peer: &str) -> bool {
        self.peers.is_empty() || self.peers.iter().any(|only| only == peer)
    }
}

pub(crate) fn parse(arguments: &[String]) -> Result<Asked, String> {
    if let Some(first) = arguments.first().filter(|first| first.starts_with("__")) {
        return Role::parse(first, &arguments[1..]).map(Asked::Role);
    }
    let mut options = Options {
        mainstay: None,
        dir: std::env::temp_dir().join(format!("mainstay-bench-{}", std::process::id())),
        state: std::env::temp_dir().join(format!("mainstay-bench-{}-state", std::process::id())),
        docs: None,
        jobs: 1000,
        rounds: 3,
        megabytes: 500,
        samples: 200,
        only: Vec::new(),
        peers: Vec::new(),
        publish: true,
    };
    let mut write = false;
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let mut value = || rest.next().cloned().ok_or_else(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--help" | "-h" => return Ok(Asked::Help),
            "--mainstay" => options.mainstay = Some(value()?.into()),
            "--dir" => options.dir = value()?.into(),
            "--state" => options.state = value()?.into(),
            "--docs" => options.docs = Some(value()?.into()),
            "--write" => write = true,
            "--quick" => {
                (options.jobs, options.rounds, options.megabytes, options.samples) =
                    (100, 1, 50, 30);
                options.publish = false;
            }
            "--jobs" => {
                options.jobs = number(flag, &value()?)? as usize;
                options.publish = false;
            }
            "--rounds" => options.rounds = number(flag, &value()?)? as usize,
            "--megabytes" => options.megabytes = number(flag, &value()?)?,
            "--samples" => options.samples = number(flag, &value()?)? as usize,
            "--only" => {
                options.only.push(one_of(flag, value()?, &ROWS)?);
                options.publish = false;
            }
            "--peer" => {
                options.peers.push(one_of(flag, value()?, &PEERS)?);
                options.publish = false;
            }
            _ => return Err(format!("unknown option {flag}; --help lists them")),
        }
    }
    options.publish |= write;
    let able = |peer: &String| peer == "mainstay" || peer == "floor";
    if options.jobs > 1000 && (options.peers.is_empty() || !options.peers.iter().all(able)) {
        return Err("--jobs: more than 1000 only with --peer mainstay --peer floor".into());
    }
    Ok(Asked::Measure(options))
}

fn number(flag: &str, text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{flag}: {text:?} is not a number above 0")),
    }
}

fn one_of(flag: &str, text: String, known: &[&str]) -> Result<String, String> {
    if known.contains(&text.as_str()) {
        Ok(text)
    } else {
        Err(format!("{flag}: {text:?} is none of {}", known.join(" ")))
    }
}
