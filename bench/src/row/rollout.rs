//! What a rollout costs: a file that reaches its job, many files at once, a refresh that finds
//! nothing, and the agent's memory with the sources in use.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::process::Pid;
use serde_json::Value;

use super::supervised::{SETTLE, Supervised};
use super::{Scene, or_gap};
use crate::appconfig::AppConfig;
use crate::failure::{Doing, Failure, Result};
use crate::figure::{Bound, Figure, Unit};
use crate::peer::mainstay::{self, Configured, Mainstay};
use crate::peer::{Place, Who, Work};
use crate::process::watch::Watch;
use crate::process::{Instant, tree};
use crate::sample::{median, percentile};

const TEMPLATES: usize = 1000;
const SERVICES: usize = 100;
const REFRESHES: usize = 5;
/// Polls of AppConfig that are waited for.
const POLLS: u64 = 10;
const LIMIT: Duration = Duration::from_secs(60);
const PROFILE: &str = "app.json";

pub(crate) fn measure(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(changes(scene, mainstay, watch));
    figures.extend(many(scene, mainstay, watch));
    figures.extend(appconfig(scene, mainstay, watch));
    figures
}

/// Where the files of a rollout are: on disk, since syncing them is what is measured.
fn directory(scene: &Scene) -> Result<PathBuf> {
    let dir = scene.options.state.join("rollout");
    let _was_not_there = fs::remove_dir_all(&dir);
    fs::create_dir_all(dir.join("out")).doing(format_args!("make {}", dir.display()))?;
    Ok(dir)
}

/// One job that a service tells by the smallest command there is.
fn job(scene: &Scene) -> String {
    let (job, quick) = (scene.job.display().to_string(), scene.quick.display().to_string());
    format!("\n[jobs.web]\nexec = [{job:?}, \"1000\"]\nreload = {{ exec = [{quick:?}] }}\n")
}

fn template(dir: &Path, name: &str) -> String {
    let (src, dst) = (dir.join("conf.j2"), dir.join("out").join(name));
    format!("\n[templates.{name}]\nsrc = {src:?}\ndst = {dst:?}\nprofiles = [\"app\"]\n")
}

fn file_profile(dir: &Path) -> String {
    format!("\n[profiles.app]\nsource = \"file\"\npath = {:?}\n", dir.join(PROFILE))
}

/// A node with this configuration, whose first version is in place.
fn start(
    scene: &Scene,
    mainstay: &Mainstay,
    watch: &mut Watch,
    dir: &Path,
    text: String,
    variables: Vec<(&'static str, String)>,
) -> Result<Supervised> {
    let template = dir.join("conf.j2");
    fs::write(&template, "port = {{ app.port }}\n").doing("write a template")?;
    put(dir, 0)?;
    let peer = Configured { variables, ..Configured::new(mainstay, text) };
    let work = Work { jobs: 1, job: scene.job.clone(), talker: None };
    let supervised = Supervised::start(scene, watch, &peer, &work)?;
    await_version(&supervised.place, None)?;
    std::thread::sleep(SETTLE);
    Ok(supervised)
}

/// Another version, in one piece.
fn put(dir: &Path, port: usize) -> Result<()> {
    let new = dir.join("app.json.new");
    fs::write(&new, format!("{{\"port\": {port}}}")).doing("write a profile")?;
    fs::rename(new, dir.join(PROFILE)).doing("put a profile in place")
}

/// What is applied, once it is another than this one and nothing is under way.
fn await_version(place: &Place, before: Option<&str>) -> Result<String> {
    let begun = Instant::now();
    loop {
        let rollout = mainstay::ask(place, "/v1/rollout").and_then(|text| read(&text));
        let idle = |it: &Value| it["doing"].is_null() && it["update"].is_null();
        let rollout = rollout.ok().filter(idle).unwrap_or_default();
        let applied = rollout["profiles"][0]["applied"]["digest"].as_str();
        match applied {
            Some(applied) if before != Some(applied) => return Ok(applied.to_owned()),
            _ if Instant::now().seconds_since(begun) > LIMIT.as_secs_f64() => {
                return Err(Failure::new(format!("no other version came: {rollout}")));
            }
            _ => std::thread::sleep(Duration::from_micros(500)),
        }
    }
}

fn read(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| Failure::new(format!("read an answer: {error}")))
}

fn agent(supervised: &Supervised) -> Result<Pid> {
    Mainstay::agent(supervised.root).ok_or_else(|| Failure::new("there is no agent"))
}

fn changes(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Vec<Figure> {
    let what = "a profile's file changed, its job reloaded and confirmed";
    let mut usual = Figure::new("rollout-p50", format!("{what}, p50"), Unit::Milliseconds);
    let mut worst = Figure::new("rollout-p99", format!("{what}, p99"), Unit::Milliseconds)
        .bound(Bound::AtMost(0.1));
    let mut memory =
        Figure::new("rollout-memory", "agent with a rollout from a file", Unit::Megabytes)
            .bound(Bound::AtMost(14e6));
    let mut run = || -> Result<()> {
        let dir = directory(scene)?;
        let service = "\n[services.web]\njob = \"web\"\ntemplates = [\"conf\"]\n";
        let text = file_profile(&dir) + &template(&dir, "conf") + service + &job(scene);
        let supervised = start(scene, mainstay, watch, &dir, text, Vec::new())?;
        let mut version = await_version(&supervised.place, None)?;
        let mut samples = Vec::new();
        for port in 1..=scene.options.samples {
            let begun = Instant::now();
            put(&dir, port)?;
            version = await_version(&supervised.place, Some(&version))?;
            samples.push(Instant::now().seconds_since(begun));
        }
        usual.set(Who::Mainstay, percentile(&samples, 50.0));
        worst.set(Who::Mainstay, percentile(&samples, 99.0));
        memory.set(Who::Mainstay, Some(tree::pss(&[agent(&supervised)?])));
        Ok(())
    };
    or_gap(Who::Mainstay, run());
    vec![usual, worst, memory]
}

fn many(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Vec<Figure> {
    let what = format!("{TEMPLATES} templates of {SERVICES} services");
    let mut switched =
        Figure::new("rollout-switch", format!("{what} rendered and switched"), Unit::Seconds)
            .bound(Bound::TimesAnd(Who::Floor, 1.5, 0.2));
    let mut told = Figure::new("rollout-told", format!("{what}, and all told"), Unit::Seconds);
    let mut idle = Figure::new(
        "rollout-refresh",
        format!("processor time of the agent for a refresh of {what} that finds nothing"),
        Unit::Milliseconds,
    )
    .bound(Bound::AtMost(0.02));
    let mut run = || -> Result<()> {
        let dir = directory(scene)?;
        let mut text = file_profile(&dir) + &job(scene);
        for number in 0..TEMPLATES {
            text += &template(&dir, &format!("t{number}"));
        }
        let quick = scene.quick.display().to_string();
        for service in 0..SERVICES {
            let of_it = (0..TEMPLATES).filter(|it| it % SERVICES == service);
            let of_it: Vec<String> = of_it.map(|it| format!("t{it}")).collect();
            let _infallible = write!(
                text,
                "\n[services.s{service}]\nreload = {{ exec = [{quick:?}] }}\ntemplates = {of_it:?}\n"
            );
        }
        let supervised = start(scene, mainstay, watch, &dir, text, Vec::new())?;
        let mut version = await_version(&supervised.place, None)?;
        let (mut ours, mut bare, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..scene.options.rounds {
            let out = dir.join("out");
            let mut renames = Renames::of(&out)?;
            let begun = Instant::now();
            put(&dir, round + 1)?;
            ours.push(renames.wait_for(TEMPLATES, begun)?);
            version = await_version(&supervised.place, Some(&version))?;
            all.push(Instant::now().seconds_since(begun));
            bare.push(bare_renames(&dir.join("bare"))?);
        }
        switched.set(Who::Mainstay, median(&ours));
        switched.set(Who::Floor, median(&bare));
        told.set(Who::Mainstay, median(&all));
        let agent = agent(&supervised)?;
        let before = tree::processor(agent);
        for _ in 0..REFRESHES {
            let mut command = mainstay.command("rollout", &supervised.place);
            let output = command.arg("refresh").output().doing("run mainstay rollout refresh")?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                return Err(Failure::new(format!("mainstay rollout refresh: {said}")));
            }
        }
        let used = tree::processor(agent) - before;
        idle.set(Who::Mainstay, Some(used / REFRESHES as f64));
        Ok(())
    };
    or_gap(Who::Mainstay, run());
    vec![switched, told, idle]
}

/// As many files, each written, synced and renamed, and their directory synced once.
fn bare_renames(dir: &Path) -> Result<f64> {
    let doing = "write, sync and rename files";
    fs::create_dir_all(dir).doing(doing)?;
    let begun = Instant::now();
    for number in 0..TEMPLATES {
        let (new, name) = (dir.join(format!(".t{number}.new")), dir.join(format!("t{number}")));
        let mut file = File::create(&new).doing(doing)?;
        file.write_all(b"port = 1\n").doing(doing)?;
        file.sync_all().doing(doing)?;
        fs::rename(new, name).doing(doing)?;
    }
    File::open(dir).and_then(|dir| dir.sync_all()).doing(doing)?;
    Ok(Instant::now().seconds_since(begun))
}

/// The renames into a directory, as the kernel tells them.
struct Renames(std::os::fd::OwnedFd);

impl Renames {
    fn of(dir: &Path) -> Result<Renames> {
        let doing = "watch a directory";
        let descriptor = inotify::init(inotify::CreateFlags::CLOEXEC).doing(doing)?;
        inotify::add_watch(&descriptor, dir, inotify::WatchFlags::MOVED_TO).doing(doing)?;
        Ok(Renames(descriptor))
    }

    /// Seconds from `begun` to the last of so many.
    fn wait_for(&mut self, count: usize, begun: Instant) -> Result<f64> {
        let doing = "wait for renames";
        let limit = Timespec { tv_sec: LIMIT.as_secs().cast_signed(), tv_nsec: 0 };
        let mut buffer = [MaybeUninit::uninit(); 64 << 10];
        let mut seen = 0;
        while seen < count {
            let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
            if poll(&mut ready, Some(&limit)).doing(doing)? == 0 {
                return Err(Failure::new(format!("{doing}: {seen} of {count} came")));
            }
            let mut events = inotify::Reader::new(&self.0, &mut buffer);
            events.next().doing(doing)?;
            seen += 1;
            while !events.is_buffer_empty() {
                events.next().doing(doing)?;
                seen += 1;
            }
        }
        Ok(Instant::now().seconds_since(begun))
    }
}

fn appconfig(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Vec<Figure> {
    let mut memory = Figure::new(
        "rollout-aws-memory",
        "agent with a rollout from AppConfig, with a secret",
        Unit::Megabytes,
    )
    .bound(Bound::AtMost(25e6));
    let mut polls = Figure::new(
        "rollout-polls",
        "requests to AppConfig for each interval that the server names",
        Unit::Count,
    )
    .bound(Bound::AtMost(1.0));
    let mut run = || -> Result<()> {
        let dir = directory(scene)?;
        let server = AppConfig::start()?;
        let text = format!(
            "\n[rollout]\nrefresh_interval = \"1s\"\n\n[profiles.app]\nsource = \"appconfig\"\n\
             application = \"shop\"\nenvironment = \"prod\"\nprofile = \"web\"\nregion = \"eu-west-1\"\n\
             {}\n[services.web]\njob = \"web\"\ntemplates = [\"conf\"]\n{}",
            template(&dir, "conf"),
            job(scene),
        );
        let variables = vec![
            ("AWS_ENDPOINT_URL", server.url()),
            ("AWS_ACCESS_KEY_ID", "bench".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "bench".to_owned()),
        ];
        let supervised = start(scene, mainstay, watch, &dir, text, variables)?;
        let begun = await_polls(&server, server.polls() + 1)?;
        let seconds = await_polls(&server, server.polls() + POLLS)?.seconds_since(begun);
        polls.set(Who::Mainstay, Some(POLLS as f64 * AppConfig::INTERVAL as f64 / seconds));
        memory.set(Who::Mainstay, Some(tree::pss(&[agent(&supervised)?])));
        Ok(())
    };
    or_gap(Who::Mainstay, run());
    vec![memory, polls]
}

/// When it has been asked so often.
fn await_polls(server: &AppConfig, count: u64) -> Result<Instant> {
    let begun = Instant::now();
    while server.polls() < count {
        if Instant::now().seconds_since(begun) > LIMIT.as_secs_f64() {
            return Err(Failure::new("AppConfig is not asked"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(Instant::now())
}
