//! Rendering and compiling, in a process of its own: what a template makes on its way to its text, and
//! how deep it goes, has no bounds but those of a process, and the agent needs its memory and its thread.
//!
//! ```text
//!  agent ── request: profiles, secrets, paths of templates ──► this program as `__render`
//!    ▲                                                          │ limits itself, reads, renders
//!    └──── answers: each file, or what failed ◄── pipe ─────────┘ one template after another
//! ```
//!
//! One process renders all templates of an update. What it is told goes through a pipe alone: its
//! arguments, its environment and the disk show no secret, and it leaves no core. If it dies of a limit,
//! it is the template that it was at which has died. What else ends it, or holds it up, is no template's
//! fault.

mod inside;
mod pieces;
mod process;
mod protocol;
mod work;

pub use inside::serve;
pub(crate) use work::files as template_files;

use crate::template::{Cause, Rendered, TemplateError};
use mainstay_core::{
    name::Name,
    rollout::{StageFailure, Trouble},
};
use process::{Patience, Process};
use protocol::{Broken, SourceFile, collect, compile_question, take_compiled};
pub(crate) use protocol::{RenderRequest, TemplateRequest};
use rustix::process::Signal;
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::ExitStatus,
    time::Duration,
};

/// The argument by which this program becomes the process that renders.
pub const ARGUMENT: &str = "__render";

/// What one template may need on top of what the process has at its start.
const MEMORY: u64 = 512 << 20;
/// What all templates of an update make: the agent has it in its memory.
const LARGEST_SET: usize = 256 << 20;
/// Of a processor, for one template.
const SECONDS: u64 = 10;
/// On the wall, for one template and for all of them: a disk may not answer.
const PATIENCE: Patience =
    Patience { silence: Duration::from_secs(30), all: Duration::from_secs(120) };

/// What a template makes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Output {
    File(Rendered),
    /// By paths below the destination.
    Tree(BTreeMap<PathBuf, Rendered>),
}

/// Where templates are rendered.
#[derive(Debug, Clone)]
pub enum Renderer {
    /// By this program, which understands [`ARGUMENT`].
    Process { program: PathBuf },
    /// In this process, without limits.
    #[cfg(test)]
    Here,
}

impl Renderer {
    /// A process of the program that this one is, whatever has become of its file.
    #[must_use]
    pub fn of_this_program() -> Renderer {
        Renderer::Process { program: PathBuf::from("/proc/self/exe") }
    }

    /// What each template makes, in their order; or the first that makes nothing.
    pub(crate) fn render(&self, request: &RenderRequest) -> Result<Vec<Output>, StageFailure> {
        let count = request.templates.len();
        if count == 0 {
            return Ok(Vec::new());
        }
        let bytes = request.to_bytes().map_err(|error| broken(&error))?;
        let (broke, process) = match self {
            Renderer::Process { program } => {
                let started = Process::start(program, &bytes, PATIENCE);
                let mut process = started.map_err(|error| broken(&error))?;
                match collect(&mut process.output, count) {
                    Ok(made) => return Ok(made),
                    Err(broke) => (broke, Some(process)),
                }
            }
            #[cfg(test)]
            Renderer::Here => {
                let mut answers = Vec::new();
                work::serve(&bytes[..], &mut answers, || Ok(())).map_err(|error| broken(&error))?;
                match collect(&answers[..], count) {
                    Ok(made) => return Ok(made),
                    Err(broke) => (broke, None),
                }
            }
        };
        Err(why_broken(request, broke, process))
    }

    /// The names that each template's scope has to have, or why it is none; in their order.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn compile(
        &self,
        templates: impl IntoIterator<Item = (Name, PathBuf)>,
    ) -> io::Result<Vec<Result<BTreeSet<String>, TemplateError>>> {
        let file = |(template, path)| SourceFile { template, path };
        let files: Vec<SourceFile> = templates.into_iter().map(file).collect();
        let mut compiled = Vec::new();
        // One of which the process dies is followed by another process for the rest.
        while let Some(rest) = files.get(compiled.len()..).filter(|rest| !rest.is_empty()) {
            let question = compile_question(rest)?;
            match self {
                Renderer::Process { program } => {
                    let mut process = Process::start(program, &question, PATIENCE)?;
                    while let Some(one) = take_compiled(&mut process.output)? {
                        compiled.push(one);
                    }
                    let Some(SourceFile { template, .. }) = files.get(compiled.len()) else {
                        break;
                    };
                    let status = process.status()?.ok_or(io::ErrorKind::TimedOut)?;
                    let cause = guilt(status).ok_or_else(|| io::Error::other(ended(status)))?;
                    let (template, place) = (template.clone(), None);
                    compiled.push(Err(TemplateError { template, place, cause }));
                }
                #[cfg(test)]
                Renderer::Here => {
                    let mut answers = Vec::new();
                    work::serve(&question[..], &mut answers, || Ok(()))?;
                    let mut answers = &answers[..];
                    while let Some(one) = take_compiled(&mut answers)? {
                        compiled.push(one);
                    }
                }
            }
        }
        Ok(compiled)
    }
}

/// No template is to blame.
fn broken(why: &dyn std::fmt::Display) -> StageFailure {
    StageFailure::Disk(Trouble(format!("cannot render templates: {why}")))
}

/// The template that was rendered is.
fn died(template: &TemplateRequest, cause: Cause) -> StageFailure {
    let template = template.name.clone();
    let error = TemplateError { template: template.clone(), place: None, cause };
    StageFailure::Render { template, trouble: Trouble(error.to_string()) }
}

fn why_broken(request: &RenderRequest, broke: Broken, process: Option<Process>) -> StageFailure {
    match broke {
        Broken::Failed(failure) => failure,
        Broken::TooMuch { made } => {
            let why = format!("with it the update makes more than {} MiB", LARGEST_SET >> 20);
            match request.templates.get(made) {
                Some(template) => died(template, Cause::Refused(why)),
                None => broken(&why),
            }
        }
        Broken::Garbled(error) => broken(&error),
        Broken::Late { made } => late(request, made),
        Broken::Ended { ready, made } => match process.map(Process::status) {
            Some(Ok(Some(status))) => why_ended(request, ready, made, status),
            Some(Ok(None)) => late(request, made),
            Some(Err(error)) => broken(&error),
            None => broken(&"its answers break off"),
        },
    }
}

fn late(request: &RenderRequest, made: usize) -> StageFailure {
    let Patience { silence, all } = PATIENCE;
    let at = request.templates.get(made).map(|it| format!(", at template '{}'", it.name));
    let (silence, all, at) = (silence.as_secs(), all.as_secs(), at.unwrap_or_default());
    broken(&format!(
        "nothing has come for {silence} s, or not all in {all} s{at}: is its disk slow?"
    ))
}

/// What its end says, after so many templates.
fn why_ended(
    request: &RenderRequest,
    ready: bool,
    made: usize,
    status: ExitStatus,
) -> StageFailure {
    let template = request.templates.get(made);
    match (guilt(status), template) {
        (Some(cause), Some(template)) if ready => died(template, cause),
        (Some(cause), _) => broken(&format!("the profiles are too large: {cause}")),
        (None, _) => broken(&ended(status)),
    }
}

/// Which limit it has died of. `None`: of something else, or of somebody else.
fn guilt(status: ExitStatus) -> Option<Cause> {
    let limits = [
        // An allocation that fails.
        (Signal::ABORT, Cause::Memory { bytes: MEMORY }),
        (Signal::XCPU, Cause::Slow { seconds: SECONDS }),
        (Signal::SEGV, Cause::Deep),
    ];
    let is = |signal: Signal| status.signal() == Some(signal.as_raw());
    limits.into_iter().find(|(signal, _)| is(*signal)).map(|(_, cause)| cause)
}

fn ended(status: ExitStatus) -> String {
    format!("the process that renders them ended: {status}")
}

#[cfg(test)]
mod tests;
