//! The process that renders, from both sides.

use super::{
    ARGUMENT, MEMORY, Output, RenderRequest, SECONDS, TemplateRequest, broken, died,
    protocol::{Broken, collect},
    too_much, work,
};
use crate::template::Cause;
use mainstay_core::rollout::{StageFailure, Trouble};
use mainstay_sys::memory::set_oom_score;
use rustix::{
    process::{
        DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior,
        set_parent_process_death_signal, setrlimit,
    },
    time::{ClockId, clock_gettime},
};
use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Write},
    os::{fd::AsFd, unix::process::ExitStatusExt},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

/// Of a process that ends by itself, and has not done what it was told.
const FAILED: i32 = 1;
/// Of one that has found a mistake of ours.
const PANICKED: i32 = 101;

/// When memory runs out, this process goes before all others.
const FIRST_TO_GO: i32 = 1000;

/// Killed and reaped, whatever comes.
struct Renders(Child);

impl Drop for Renders {
    fn drop(&mut self) {
        // Both fail only of one that is reaped.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts one, tells it what to do and takes what it makes.
pub(super) fn render(
    program: &Path,
    bytes: &[u8],
    request: &RenderRequest,
) -> Result<Vec<Output>, StageFailure> {
    let mut renders = Command::new(program)
        .arg(ARGUMENT)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map(Renders)
        .map_err(|error| broken(&error))?;
    // It reads all before it answers. If it dies first, why is found below.
    let told = renders.0.stdin.take().map(|mut it| it.write_all(bytes));
    let answers = renders.0.stdout.take().map(BufReader::new);
    let (Some(_), Some(answers)) = (told, answers) else { return Err(broken(&"it has no pipes")) };
    match collect(answers, request.templates.len()) {
        Ok(made) => Ok(made),
        Err(Broken::Failed(failure)) => Err(failure),
        Err(Broken::TooMuch { made }) => Err(too_much(request, made)),
        Err(Broken::Garbled(error)) => Err(broken(&error)),
        Err(Broken::Ended { ready, made }) => match renders.0.wait() {
            Ok(status) => Err(why_ended(request, ready, made, status)),
            Err(error) => Err(broken(&error)),
        },
    }
}

/// What its end says, after so many templates.
pub(super) fn why_ended(
    request: &RenderRequest,
    ready: bool,
    made: usize,
    status: ExitStatus,
) -> StageFailure {
    let template: Option<&TemplateRequest> = request.templates.get(made).filter(|_| ready);
    let is = |signal: Signal| status.signal() == Some(signal.as_raw());
    match template {
        // An allocation that fails.
        Some(template) if is(Signal::ABORT) => died(template, Cause::Memory { bytes: MEMORY }),
        Some(template) if is(Signal::XCPU) => died(template, Cause::Slow { seconds: SECONDS }),
        Some(template) if status.signal().is_some() => {
            died(template, Cause::Refused(format!("the process that renders it died: {status}")))
        }
        None if is(Signal::ABORT) => StageFailure::Disk(Trouble(format!(
            "cannot render templates: the profiles need more than {} MiB of memory",
            MEMORY >> 20
        ))),
        Some(_) | None => broken(&format!("the process that renders them ended: {status}")),
    }
}

/// The process `mainstay __render`: from its limits to an exit code.
#[must_use]
pub fn serve() -> i32 {
    // What it would tell may be a secret, and an abort means something else.
    std::panic::set_hook(Box::new(|_| std::process::exit(PANICKED)));
    let served = limit().and_then(|()| {
        let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        work::serve(io::stdin().lock(), BufWriter::new(output), limit_time)
    });
    match served {
        Ok(()) => 0,
        Err(_) => FAILED,
    }
}

/// Before anything is read: what it is given is for nobody else, and no more than this is taken.
fn limit() -> io::Result<()> {
    // A container may have less than the limit. First: to what cannot be dumped its own /proc is not
    // open either.
    set_oom_score(FIRST_TO_GO);
    limit_to(Resource::As, address_space()?.saturating_add(MEMORY))?;
    limit_to(Resource::Core, 0)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// For the template that is next.
fn limit_time() -> io::Result<()> {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or(0);
    let maximum = getrlimit(Resource::Cpu).maximum;
    let current = used.saturating_add(SECONDS).min(maximum.unwrap_or(u64::MAX));
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(current), maximum })?)
}

fn limit_to(resource: Resource, most: u64) -> io::Result<()> {
    let most = most.min(getrlimit(resource).maximum.unwrap_or(u64::MAX));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// What the program takes by itself.
fn address_space() -> io::Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split(' ').next().and_then(|it| it.parse::<u64>().ok());
    let size = u64::try_from(rustix::param::page_size()).unwrap_or(u64::MAX);
    pages.map(|it| it.saturating_mul(size)).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
