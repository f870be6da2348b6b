//! Tasks: short runs with a time limit, whose output comes back with their exit.

use crate::process::{exec_error::ExecContext, tree::Tree};
use mainstay_core::{name::Name, plan::Log};
use mainstay_wire::task::TaskKey;
use rustix::io::Errno;
use std::{borrow::Cow, os::fd::OwnedFd};

/// So much of the beginning of its output is kept, and of its end.
const KEPT: usize = 32 << 10;

#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) id: TaskKey,
    /// The incarnation of a job without which nobody wants to know its outcome.
    pub(crate) ends_with: Option<(Name, u64)>,
    pub(crate) pid: u32,
    pub(crate) tree: Tree,
    pub(crate) failure: Option<OwnedFd>,
    pub(crate) output: CapturedOutput,
    pub(crate) timed_out: bool,
    /// How what it writes is forwarded.
    pub(crate) forward: Option<Box<Log>>,
    /// The job that it is run for.
    pub(crate) job: Option<Name>,
    pub(crate) exec_context: ExecContext,
}

/// What a task has left behind: killed, and looked after until it is gone.
#[derive(Debug)]
pub(crate) struct Leftover {
    /// The number of the task.
    pub(crate) task: u64,
    /// `None`: it was handed over by the last image, which did not say.
    pub(crate) id: Option<TaskKey>,
    pub(crate) pid: u32,
    pub(crate) tree: Tree,
}

/// The output of a short run, as far as it is kept: what it begins with, and what it ends with, which
/// is where most say why they have failed.
#[derive(Debug)]
pub(crate) struct CapturedOutput {
    pub(crate) pipe: Option<OwnedFd>,
    text: Vec<u8>,
    /// What was between the beginning and the end is gone.
    truncated: bool,
}

impl CapturedOutput {
    pub(crate) fn from(pipe: OwnedFd) -> CapturedOutput {
        CapturedOutput { pipe: Some(pipe), text: Vec::new(), truncated: false }
    }

    /// As it was handed over by the last image.
    pub(crate) fn restore(pipe: Option<OwnedFd>, text: Vec<u8>, truncated: bool) -> CapturedOutput {
        CapturedOutput { pipe, text, truncated }
    }

    /// Reads what is there; false when there will be no more.
    pub(crate) fn read(&mut self) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let mut bytes = [0; 8 << 10];
        match rustix::io::read(pipe, &mut bytes) {
            Ok(0) => false,
            Ok(count) => {
                self.take(&bytes[..count]);
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        // Not for each few bytes: what is moved is less than what has come.
        if self.text.len() >= 4 * KEPT {
            self.text.drain(KEPT..self.text.len() - KEPT);
            self.truncated = true;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The beginning and the end, and whether something between them is gone.
    pub(crate) fn kept(&self) -> (Cow<'_, [u8]>, bool) {
        let length = self.text.len();
        match length > 2 * KEPT {
            true => ([&self.text[..KEPT], &self.text[length - KEPT..]].concat().into(), true),
            false => (Cow::Borrowed(&self.text), self.truncated),
        }
    }

    /// Reads what its pipe holds now, at most what a pipe can hold.
    pub(crate) fn read_rest(&mut self) {
        let left =
            self.pipe.as_ref().and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok()).unwrap_or(0);
        for _ in 0..left.div_ceil(8 << 10) {
            if !self.read() {
                break;
            }
        }
    }

    /// For people, and whether something is missing. Whole lines only where it is: half of one may be
    /// half of a secret, which nobody could hide.
    pub(crate) fn to_text(&self) -> (String, bool) {
        let (kept, truncated) = self.kept();
        if !truncated {
            return (String::from_utf8_lossy(&kept).into_owned(), false);
        }
        let (begins, ends) = kept.split_at(kept.len().min(KEPT));
        let last_end = memchr::memrchr(b'\n', begins).map_or(0, |at| at + 1);
        let first_begin = memchr::memchr(b'\n', ends).map_or(ends.len(), |at| at + 1);
        let text = [&begins[..last_end], "…\n".as_bytes(), &ends[first_begin..]].concat();
        (String::from_utf8_lossy(&text).into_owned(), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pieces: &[&str]) -> (String, bool) {
        let mut output = CapturedOutput::restore(None, Vec::new(), false);
        pieces.iter().for_each(|it| output.take(it.as_bytes()));
        output.to_text()
    }

    #[test]
    fn of_a_flood_its_beginning_and_its_end_are_kept_in_whole_lines() {
        assert_eq!(said(&["one\ntwo"]), ("one\ntwo".to_owned(), false));
        let fits = "x".repeat(2 * KEPT);
        assert_eq!(said(&[&fits]), (fits, false));
        let flood = "a line of a flood\n".repeat(200_000);
        let (text, truncated) = said(&["begin\n", &flood, "the reason\nwithout an end"]);
        assert!(truncated && text.len() <= 2 * KEPT + 4, "{}", text.len());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "begin");
        assert_eq!(lines[lines.len() - 2..], ["the reason", "without an end"]);
        let known = ["begin", "a line of a flood", "…", "the reason", "without an end"];
        assert!(lines.iter().all(|it| known.contains(it)), "no half of a line");
        assert_eq!(said(&[&"x".repeat(100 * KEPT)]), ("…\n".to_owned(), true));
    }

    #[test]
    fn a_secret_that_is_cut_shows_neither_half() {
        let secret = "hush-hush-hush";
        for shift in 0..secret.len() {
            let begin = format!("{}\n{secret}\n", "x".repeat(KEPT - 2 - shift));
            let end = format!("{secret}\n{}", "y".repeat(KEPT - shift));
            let (text, truncated) = said(&[&begin, &"z\n".repeat(KEPT), &end]);
            assert!(truncated);
            let hidden = text.replace(secret, "");
            assert!(!hidden.contains("hu") && !hidden.contains("sh"), "{shift}");
        }
    }

    #[test]
    fn what_is_handed_over_goes_on_as_if_it_had_not_been() {
        let flood = "a line of a flood\n".repeat(10_000);
        let mut output = CapturedOutput::restore(None, Vec::new(), false);
        output.take(flood.as_bytes());
        let (text, truncated) = output.kept();
        assert!(truncated && text.len() == 2 * KEPT);
        let mut next = CapturedOutput::restore(None, text.into_owned(), truncated);
        for output in [&mut output, &mut next] {
            output.take(b"the end");
        }
        assert_eq!(next.to_text(), output.to_text());
        assert!(next.to_text().0.ends_with("flood\nthe end"));
    }
}
