//! What a check has said, short enough for a status line.

use super::Verdict;
use mainstay_core::exit::Exit;

const LINES: usize = 4;
const LONGEST: usize = 400;

/// The first few lines of a text.
pub(super) fn short(text: &str) -> String {
    let mut lines = text.trim().lines().map(str::trim_end);
    let mut kept = lines.by_ref().take(LINES).collect::<Vec<_>>().join("\n");
    let cut = kept.char_indices().nth(LONGEST).map(|(at, _)| at);
    if let Some(at) = cut {
        kept.truncate(at);
    }
    if cut.is_some() || lines.next().is_some() {
        kept.push('…');
    }
    kept
}

/// What the exit of an exec check means.
pub(crate) fn of_task(exit: &Exit, output: &str) -> Verdict {
    let said = short(output);
    match exit {
        Exit::Code { code: 0 } => Verdict { passed: true, output: said },
        Exit::Code { .. } | Exit::Signal { .. } | Exit::Error { .. } => {
            let output = if said.is_empty() { exit.to_string() } else { format!("{exit}: {said}") };
            Verdict { passed: false, output }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_is_cut_and_says_so() {
        assert_eq!(short(" one\ntwo \n"), "one\ntwo");
        assert_eq!(short("1\n2\n3\n4\n5\n"), "1\n2\n3\n4…");
        assert_eq!(short(&"ä".repeat(1000)).chars().count(), LONGEST + 1);
    }

    #[test]
    fn only_code_zero_passes() {
        assert!(of_task(&Exit::Code { code: 0 }, "fine\n").passed);
        let failed = of_task(&Exit::Code { code: 3 }, "no room\n");
        assert!(!failed.passed && failed.output.contains("no room") && failed.output.contains('3'));
    }
}
