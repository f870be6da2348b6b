//! `session`, `stdin` and `tty` of a job: what it reads, and what it is attached to.

use crate::{
    keys::job::Job,
    reader::{Reader, Value},
};
use mainstay_core::plan::{Stderr, Stdin};

/// One of three words, or a path: one without a slash is most likely a misspelt word.
pub(crate) fn stdin(v: Value<'_>, r: &mut Reader<'_>) -> Option<Stdin> {
    let text = r.filled(v)?;
    match text.as_str() {
        "null" => Some(Stdin::Null),
        "inherit" => Some(Stdin::Inherit),
        "open" => Some(Stdin::Open),
        path if path.contains('\0') => r.wrong(v.span, "not a path", "remove the NUL byte"),
        path if path.contains('/') => Some(Stdin::File(path.into())),
        other => r.wrong(
            v.span,
            format!("'{other}' is not an input"),
            format!("write \"null\", \"open\", \"inherit\", or a path with a slash: \"./{other}\""),
        ),
    }
}

/// A terminal belongs to a session, and what is written to it is one stream.
pub(crate) fn check_tty(r: &mut Reader<'_>, job: &Job) {
    let Some(span) = job.tty else { return };
    let wrong = |r: &mut Reader<'_>, message: &str, help: &str| {
        r.within("tty", |r| r.wrong::<()>(span, message, help));
    };
    if !job.plan.session {
        wrong(r, "a terminal needs a session of its own", "remove session = false, or tty");
    }
    match job.plan.stderr {
        Stderr::Joined => {}
        Stderr::Separate | Stderr::Inherit => {
            wrong(r, "what a terminal shows is one stream", "remove stderr, or tty");
        }
    }
}
