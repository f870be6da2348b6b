//! Why a template came to nothing, and where.

use super::mask::Mask;
use crate::profile;
use mainstay_core::name::Name;
use minijinja::ErrorKind;
use serde::{Deserialize, Serialize};
use std::{error::Error as _, fmt};

/// For people, without any secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateError {
    pub template: Name,
    /// The file that it is in, which may be included, with line and column from 1.
    pub place: Option<(String, usize, usize)>,
    pub cause: Cause,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Cause {
    #[error("cannot be read: {0}")]
    Unreadable(String),
    #[error("{0}")]
    Refused(String),
    #[error("it takes more than {steps} steps")]
    Endless { steps: u64 },
    #[error("it makes more than {bytes} bytes")]
    TooLarge { bytes: usize },
    #[error("it needs more than {} MiB of memory", bytes >> 20)]
    Memory { bytes: u64 },
    #[error("it takes more than {seconds} s")]
    Slow { seconds: u64 },
    #[error("its expressions or conditions are nested too deep")]
    Deep,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "template '{}'", self.template)?;
        if let Some((file, line, column)) = &self.place {
            write!(f, ", {file}:{line}:{column}")?;
        }
        write!(f, ": {}", self.cause)
    }
}

impl std::error::Error for TemplateError {}

/// What the engine says, told of the file in which it happened.
pub(super) fn of_engine(
    template: &Name,
    error: &minijinja::Error,
    mask: &Mask,
    limits: (u64, usize),
) -> TemplateError {
    let innermost = innermost(error);
    let cause = match innermost.kind() {
        ErrorKind::OutOfFuel => Cause::Endless { steps: limits.0 },
        ErrorKind::WriteFailure => Cause::TooLarge { bytes: limits.1 },
        kind => {
            let what = match innermost.detail() {
                Some(detail) => format!("{kind}: {detail}"),
                None => kind.to_string(),
            };
            Cause::Refused(mask.apply(&what))
        }
    };
    TemplateError { template: template.clone(), place: place(innermost), cause }
}

/// An include that fails has the failure itself as its source.
fn innermost(error: &minijinja::Error) -> &minijinja::Error {
    let mut innermost = error;
    while let Some(source) = innermost.source().and_then(|it| it.downcast_ref()) {
        innermost = source;
    }
    innermost
}

fn place(error: &minijinja::Error) -> Option<(String, usize, usize)> {
    let (file, line) = (error.name()?.to_owned(), error.line()?);
    let column = match (error.template_source(), error.range()) {
        (Some(source), Some(range)) => profile::place(source, range.start).1,
        (None, _) | (_, None) => 1,
    };
    Some((file, line, column))
}
