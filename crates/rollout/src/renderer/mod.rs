//! Rendering, in a process of its own: what a template makes on its way to its text has no bounds but
//! those of a process, and the agent needs its memory and its thread.
//!
//! ```text
//!  agent ── request: profiles, secrets, paths of templates ──► this program as `__render`
//!    ▲                                                          │ limits itself, reads, renders
//!    └──── answers: each file, or what failed ◄── pipe ─────────┘ one template after another
//! ```
//!
//! One process renders all templates of an update. What it is told goes through a pipe alone: its
//! arguments, its environment and the disk show no secret, and it leaves no core. If it dies, it is
//! the template that it was at which has died.

mod process;
mod protocol;
mod work;

pub use process::serve;
pub(crate) use work::files as template_files;

use crate::template::{Cause, Rendered, TemplateError};
use mainstay_core::rollout::{StageFailure, Trouble};
pub(crate) use protocol::{RenderRequest, TemplateRequest};
use std::{collections::BTreeMap, path::PathBuf};

/// The argument by which this program becomes the process that renders.
pub const ARGUMENT: &str = "__render";

/// What one template may need on top of what the process has at its start.
const MEMORY: u64 = 512 << 20;
/// What all templates of an update make: the agent has it in its memory.
const LARGEST_SET: usize = 256 << 20;
/// Of a processor, for one template.
const SECONDS: u64 = 10;

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
        match self {
            Renderer::Process { program } => process::render(program, &bytes, request),
            #[cfg(test)]
            Renderer::Here => {
                use protocol::{Broken, collect};
                let mut answers = Vec::new();
                work::serve(&bytes[..], &mut answers, || Ok(())).map_err(|error| broken(&error))?;
                collect(&answers[..], count).map_err(|it| match it {
                    Broken::Failed(failure) => failure,
                    Broken::Ended { .. } => broken(&"its answers break off"),
                    Broken::TooMuch { made } => too_much(request, made),
                    Broken::Garbled(error) => broken(&error),
                })
            }
        }
    }
}

/// No template is to blame.
fn broken(why: &dyn std::fmt::Display) -> StageFailure {
    StageFailure::Disk(Trouble(format!("cannot render templates: {why}")))
}

fn too_much(request: &RenderRequest, made: usize) -> StageFailure {
    let why = format!("with it the update makes more than {} MiB", LARGEST_SET >> 20);
    match request.templates.get(made) {
        Some(template) => died(template, Cause::Refused(why)),
        None => broken(&why),
    }
}

/// The template that was rendered is.
fn died(template: &TemplateRequest, cause: Cause) -> StageFailure {
    let template = template.name.clone();
    let error = TemplateError { template: template.clone(), place: None, cause };
    StageFailure::Render { template, trouble: Trouble(error.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitStatus;

    #[test]
    fn an_end_is_told_of_the_template_at_which_it_came() {
        use std::os::unix::process::ExitStatusExt;
        let name = |text: &str| mainstay_core::name::Name::new(text).expect("a name");
        let template = |it: &str| TemplateRequest {
            name: name(it),
            src: PathBuf::from(it),
            profiles: Vec::new(),
        };
        let request = RenderRequest {
            show: crate::template::ShowSecrets::Values,
            node: serde_json::Value::Null,
            profiles: BTreeMap::new(),
            templates: vec![template("one"), template("two")],
        };
        let told = |signal: i32, ready: bool, made: usize| match process::why_ended(
            &request,
            ready,
            made,
            ExitStatus::from_raw(signal),
        ) {
            StageFailure::Render { template, trouble } => (Some(template), trouble.0),
            StageFailure::Disk(trouble) => (None, trouble.0),
            StageFailure::Edited { .. } | StageFailure::Lost { .. } => panic!("nobody has"),
        };
        let (template, why) = told(6, true, 1);
        assert_eq!(template, Some(name("two")));
        assert_eq!(why, "template 'two': it needs more than 512 MiB of memory");
        let (template, why) = told(24, true, 0);
        assert_eq!(template, Some(name("one")));
        assert_eq!(why, "template 'one': it takes more than 10 s");
        assert_eq!(told(9, true, 0).0, Some(name("one")));
        let (template, why) = told(6, false, 0);
        assert!(template.is_none() && why.contains("the profiles need"), "{why}");
        let (template, why) = told(101 << 8, true, 1);
        assert!(template.is_none() && why.contains("101"), "{why}");
    }
}
