//! Much output into a rotated file: lines of 100 bytes, files of 10 MB, all of them kept, and
//! counted afterwards: whoever lost a line gets no figure.
//!
//! Loggers that are programs (`cat`, `s6-log`, `svlogd`) read the generator's pipe and are done
//! when they exit. Supervisors that capture output run the generator as a job and are done when
//! their files grow no more.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::{Scene, TALKER, or_gap};
use crate::failure::{Doing, Failure, Result};
use crate::figure::{Bound, Figure, Unit};
use crate::peer::mainstay::{self, Filed, Mainstay};
use crate::peer::supervisord::Supervisord;
use crate::peer::{Peer, Who};
use crate::process::watch::Watch;
use crate::process::{Instant, tree};
use crate::role::LINE;
use crate::sample::median;

const LIMIT: Duration = Duration::from_secs(120);
const STILL: Duration = Duration::from_millis(300);
/// More files than the output fills.
const KEEP: usize = 1000;

pub(crate) fn measure(scene: &Scene, watch: &mut Watch) -> Vec<Figure> {
    let megabytes = scene.options.megabytes;
    let mut figures = Vec::new();
    for (filed, id, how) in
        [(Filed::Raw, "lines-raw", "raw"), (Filed::Stamped, "lines-stamped", "stamped")]
    {
        let work = format!("{megabytes} MB of {LINE}-byte lines into a rotated file, {how}");
        let bound = match filed {
            Filed::Raw => Bound::Times(Who::Floor, 1.0),
            Filed::Stamped => Bound::Times(Who::S6, 0.1),
        };
        let mut figure = Figure::new(id, work, Unit::Seconds).bound(bound);
        let contenders: Vec<Contender> = contenders(scene, filed)
            .into_iter()
            .filter(|c| scene.options.wants_peer(c.who().name()))
            .collect();
        let mut times = vec![Vec::new(); contenders.len()];
        for _ in 0..scene.options.rounds {
            for (contender, times) in contenders.iter().zip(&mut times) {
                times.extend(or_gap(contender.who(), contender.run(scene, watch)));
            }
        }
        for (contender, times) in contenders.iter().zip(&times) {
            figure.set(contender.who(), median(times));
        }
        eprintln!("{figure}");
        figures.push(figure);
    }
    figures
}

#[derive(Debug)]
enum Contender {
    Pipe { who: Who, program: &'static str, arguments: Vec<&'static str> },
    Mainstay { mainstay: Mainstay, filed: Filed },
    Supervisord,
}

fn contenders(scene: &Scene, filed: Filed) -> Vec<Contender> {
    let pipe = |who, program, arguments: &[&'static str]| Contender::Pipe {
        who,
        program,
        arguments: arguments.to_vec(),
    };
    let mut all = vec![pipe(Who::Floor, "cat", &[])];
    all.extend(scene.mainstay.clone().map(|mainstay| Contender::Mainstay { mainstay, filed }));
    match filed {
        Filed::Raw => all.extend([
            pipe(Who::S6, "s6-log", &["n1000", "s10000000", "."]),
            pipe(Who::Runit, "svlogd", &["."]),
            Contender::Supervisord,
        ]),
        Filed::Stamped => all.extend([
            pipe(Who::S6, "s6-log", &["n1000", "s10000000", "T", "."]),
            pipe(Who::Runit, "svlogd", &["-ttt", "."]),
        ]),
    }
    all
}

impl Contender {
    fn who(&self) -> Who {
        match self {
            Contender::Pipe { who, .. } => *who,
            Contender::Mainstay { .. } => Who::Mainstay,
            Contender::Supervisord => Who::Supervisord,
        }
    }

    /// Seconds from the generator's start until all its lines are filed.
    fn run(&self, scene: &Scene, watch: &mut Watch) -> Result<f64> {
        let place = scene.place("lines")?;
        let log = place.state.join("log");
        fs::create_dir_all(&log).doing("make a directory for lines")?;
        let count = scene.options.megabytes * 1_000_000 / LINE as u64;
        let talk = scene.talk(&["__lines", &count.to_string()]);
        let outcome = match self {
            Contender::Pipe { program, arguments, .. } => {
                through_pipe(&log, &talk, program, arguments).map(|seconds| (seconds, log))
            }
            Contender::Mainstay { mainstay, filed } => {
                let jobs = [("lines", talk.as_slice(), false)];
                Mainstay::configure(&place, *filed, KEEP, jobs.into_iter())?;
                let command = mainstay.launch(&place, &scene.work(0));
                captured(watch, command, mainstay::log_dir(&place, "lines"))
            }
            Contender::Supervisord => {
                let program = Supervisord::program(&place, "lines", &talk.join(" "), KEEP, true);
                Supervisord::configure(&place, &program)?;
                let command = Supervisord.launch(&place, &scene.work(0));
                captured(watch, command, log)
            }
        };
        let outcome = outcome.and_then(|(seconds, log)| {
            let found = count_lines(&log)?;
            if found == count {
                Ok(seconds)
            } else {
                Err(Failure::new(format!("{found} lines of {count} were filed")))
            }
        });
        tree::kill_all();
        place.remove();
        outcome
    }
}

fn through_pipe(log: &Path, talk: &[String], program: &str, arguments: &[&str]) -> Result<f64> {
    fs::write(log.join("config"), format!("s10000000\nn{KEEP}\n")).doing("configure svlogd")?;
    let start = Instant::now();
    let mut generator = tree::marked(&talk[0], log)
        .args(&talk[1..])
        .stdout(Stdio::piped())
        .spawn()
        .doing("start the generator")?;
    let pipe = generator.stdout.take().expect("its stdout was asked for as a pipe");
    let mut logger = tree::marked(program, log);
    logger.args(arguments).current_dir(log).stdin(pipe).stderr(Stdio::null());
    if program == "cat" {
        logger.stdout(File::create(log.join("current")).doing("make a log")?);
    }
    let status = logger.status().doing(format_args!("run {program}"))?;
    let seconds = Instant::now().seconds_since(start);
    generator.wait().doing("wait for the generator")?;
    if status.success() { Ok(seconds) } else { Err(Failure::new(format!("{program}: {status}"))) }
}

fn captured(watch: &mut Watch, mut command: Command, log: PathBuf) -> Result<(f64, PathBuf)> {
    watch.drain();
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .doing("start a supervisor")?;
    let (generator, start) = watch
        .wait_for_exec(TALKER, LIMIT)
        .ok_or_else(|| Failure::new("the generator never started"))?;
    watch.wait_for_exits(&[generator], LIMIT)?;
    let mut changed = Instant::now();
    let mut size = size(&log);
    while Instant::now().seconds_since(changed) < STILL.as_secs_f64() {
        std::thread::sleep(Duration::from_millis(1));
        let now = self::size(&log);
        if now != size {
            (size, changed) = (now, Instant::now());
        }
    }
    tree::kill(Pid::from_child(&child), Signal::TERM);
    Ok((changed.seconds_since(start), log))
}

fn files(log: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(log).into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            !["lock", "state", "config", ".keep"].iter().any(|no| entry.file_name() == *no)
        })
        .map(|entry| entry.path())
        .collect()
}

fn size(log: &Path) -> u64 {
    files(log).iter().filter_map(|path| path.metadata().ok()).map(|data| data.len()).sum()
}

fn count_lines(log: &Path) -> Result<u64> {
    let mut lines = 0;
    let mut block = vec![0; 1 << 20];
    for path in files(log) {
        let doing = format!("count the lines of {}", path.display());
        let mut file = File::open(&path).doing(&doing)?;
        loop {
            let length = file.read(&mut block).doing(&doing)?;
            if length == 0 {
                break;
            }
            lines += block[..length].iter().filter(|byte| **byte == b'\n').count() as u64;
        }
    }
    Ok(lines)
}
