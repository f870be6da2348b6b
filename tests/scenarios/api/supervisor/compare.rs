//! What differs between what two sides have said, but for pids and times.

use std::path::Path;

/// What one side has said to a step of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) struct Said {
    pub(in crate::api) step: String,
    pub(in crate::api) text: String,
}

/// Without what differs from run to run: where it lies, pids, and times.
pub(in crate::api) fn plain(text: &str, dir: &Path) -> String {
    let text = text.replace(&dir.display().to_string(), "DIR");
    let lines: Vec<String> = text.lines().map(plain_line).collect();
    lines.join("\n")
}

fn plain_line(line: &str) -> String {
    let mut words: Vec<String> = line.split(' ').map(plain_word).collect();
    // `Nov 16 07:41 PM`
    for at in 0..words.len().saturating_sub(3) {
        let is_time = words[at + 2] == "TIME" && matches!(words[at + 3].as_str(), "AM" | "PM");
        if is_time {
            words.splice(at..at + 4, ["DATE".to_owned()]);
            break;
        }
    }
    words.join(" ")
}

/// Numbers of three digits and more, and times of day.
fn plain_word(word: &str) -> String {
    let bare = word.trim_matches([',', '}', ']', ')', '\'', '"']);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = bare.contains(':') && bare.split(':').all(digits);
    let is_pid = bare.len() >= 3 && digits(bare) && bare != "1000";
    match (is_time, is_pid) {
        (true, _) => word.replace(bare, "TIME"),
        (false, true) => word.replace(bare, "NUMBER"),
        (false, false) => word.to_owned(),
    }
}

/// The steps that were answered differently, both answers with them.
pub(in crate::api) fn differences(theirs: &[Said], ours: &[Said]) -> Vec<String> {
    let differ = theirs.iter().zip(ours).filter(|(theirs, ours)| theirs != ours);
    let mut all: Vec<String> = differ
        .map(|(theirs, ours)| {
            format!(
                "{}\n--- supervisord\n{}\n--- mainstay\n{}\n",
                theirs.step, theirs.text, ours.text
            )
        })
        .collect();
    if theirs.len() != ours.len() {
        all.push(format!("{} steps and {} steps", theirs.len(), ours.len()));
    }
    all
}

#[test]
fn only_pids_and_times_may_differ() {
    let said = |text: &str, dir: &str| Said {
        step: "$ status".to_owned(),
        text: plain(&text.replace("AT", dir), Path::new(dir)),
    };
    let compared =
        |theirs: &str, ours: &str| differences(&[said(theirs, "/a")], &[said(ours, "/b/c")]);
    let theirs =
        "web   RUNNING   pid 4711, uptime 0:00:05\nat AT/x\nmanual  STOPPED  Nov 16 07:41 PM";
    let ours = "web   RUNNING   pid 123, uptime 1:10:05\nat AT/x\nmanual  STOPPED  Nov 17 11:59 AM";
    assert_eq!(compared(theirs, ours), [""; 0]);
    for planted in [
        ours.replace("RUNNING", "STARTING"),
        ours.replace("manual", "manuel"),
        ours.replace("\nat AT/x", ""),
        ours.replace("Nov 17 11:59 AM", "Not started"),
        format!("{ours}\n"),
        format!("{ours} "),
    ] {
        let differs = planted.trim_end_matches('\n') != ours;
        assert_eq!(compared(theirs, &planted).len(), usize::from(differs), "{planted}");
    }
    let one = [said(theirs, "/a")];
    assert_eq!(differences(&one, &[]).len(), 1);
}
