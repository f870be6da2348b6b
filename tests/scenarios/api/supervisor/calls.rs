//! Calls that `supervisorctl` does not make, and how each of them fails.

use super::{
    compare::{Said, differences, plain},
    sides::Side,
};
use std::thread;

/// Method and parameters; what differs on purpose is not among them.
const CALLS: &[(&str, &str)] = &[
    ("system.listMethods", "[]"),
    ("system.methodSignature", r#"["supervisor.startProcess"]"#),
    ("system.methodSignature", r#"["nope"]"#),
    ("system.methodHelp", r#"["nope"]"#),
    ("system.nope", "[]"),
    ("nope", "[]"),
    ("supervisor.nope", "[]"),
    ("supervisor._update", "[]"),
    ("supervisor.state.x", "[]"),
    ("supervisor.getAPIVersion", "[]"),
    ("supervisor.getVersion", "[]"),
    ("supervisor.getState", "[]"),
    ("supervisor.getState", "[1]"),
    ("supervisor.getProcessInfo", r#"["nobody"]"#),
    ("supervisor.getProcessInfo", r#"["shop:*"]"#),
    ("supervisor.startProcess", r#"["web"]"#),
    ("supervisor.startProcess", r#"["web", false]"#),
    ("supervisor.startProcess", r#"["nobody"]"#),
    ("supervisor.startProcess", r#"["missing"]"#),
    ("supervisor.startProcess", r#"["plain"]"#),
    ("supervisor.startProcess", "[]"),
    ("supervisor.startProcessGroup", r#"["nobody"]"#),
    ("supervisor.startProcessGroup", r#"["shop"]"#),
    ("supervisor.startProcess", r#"["manual", true]"#),
    ("supervisor.stopProcess", r#"["manual"]"#),
    ("supervisor.stopProcess", r#"["manual"]"#),
    ("supervisor.stopProcess", r#"["shop:*"]"#),
    ("supervisor.startProcess", r#"["shop:*", true]"#),
    ("supervisor.signalProcess", r#"["web", "NONSENSE"]"#),
    ("supervisor.signalProcess", r#"["manual", "CONT"]"#),
    ("supervisor.signalProcess", r#"["web", "CONT"]"#),
    ("supervisor.signalProcessGroup", r#"["shop", "NONSENSE"]"#),
    ("supervisor.readProcessStdoutLog", r#"["words", 0, 0]"#),
    ("supervisor.readProcessLog", r#"["words", 4, 2]"#),
    ("supervisor.readProcessLog", r#"["words", 100, 0]"#),
    ("supervisor.readProcessLog", r#"["words", -5, 0]"#),
    ("supervisor.readProcessLog", r#"["words", -5, 2]"#),
    ("supervisor.readProcessLog", r#"["words", 0, -1]"#),
    ("supervisor.readProcessStderrLog", r#"["words", 0, 0]"#),
    ("supervisor.readProcessLog", r#"["nobody", 0, 0]"#),
    ("supervisor.tailProcessStdoutLog", r#"["words", 0, 100]"#),
    ("supervisor.tailProcessStdoutLog", r#"["words", 0, 5]"#),
    ("supervisor.tailProcessLog", r#"["words", 8, 5]"#),
    ("supervisor.tailProcessLog", r#"["words", 3, 100]"#),
    ("supervisor.tailProcessStderrLog", r#"["words", 0, 3]"#),
    ("supervisor.tailProcessLog", r#"["nobody", 0, 100]"#),
    ("supervisor.tailProcessLog", r#"["missing", 0, 100]"#),
    ("supervisor.clearProcessLog", r#"["nobody"]"#),
    ("supervisor.sendProcessStdin", r#"["nobody", "x"]"#),
    ("supervisor.sendProcessStdin", r#"["manual", "x"]"#),
    ("supervisor.sendProcessStdin", r#"["web", 5]"#),
    ("supervisor.sendProcessStdin", r#"["cat", "sent \u00fc\n"]"#),
    ("supervisor.addProcessGroup", r#"["web"]"#),
    ("supervisor.addProcessGroup", r#"["nobody"]"#),
    ("supervisor.removeProcessGroup", r#"["web"]"#),
    ("supervisor.removeProcessGroup", r#"["nobody"]"#),
    ("supervisor.reloadConfig", "[]"),
    (
        "system.multicall",
        r#"[[{"methodName": "supervisor.getState", "params": []},
             {"methodName": "supervisor.startProcess", "params": ["nobody"]},
             {"methodName": "system.multicall", "params": [[]]},
             {"params": []},
             {"methodName": "supervisor.getAPIVersion"}]]"#,
    ),
];

#[test]
fn every_call_and_every_fault_is_as_supervisord_has_it() {
    let theirs = thread::spawn(|| answers(&Side::supervisord()));
    let ours = answers(&Side::mainstay());
    let differ = differences(&theirs.join().expect("supervisord plays along"), &ours);
    assert!(differ.is_empty(), "{} calls differ:\n\n{}", differ.len(), differ.join("\n"));
}

fn answers(side: &Side) -> Vec<Said> {
    settled(side);
    let one = |(method, params): &(&str, &str)| Said {
        step: format!("{method} {params}"),
        text: without_supvisors(&plain(&side.call(method, params), side.dir())),
    };
    CALLS.iter().map(one).collect()
}

/// A supervisord without its plugin has no such methods.
fn without_supvisors(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("'supvisors.")).collect();
    lines.join("\n")
}

fn settled(side: &Side) {
    mainstay_tests::until("every process is where it is going", || {
        let told = side.ctl("status").text;
        (!["STARTING", "BACKOFF"].iter().any(|state| told.contains(state))).then_some(())
    });
}

/// What nobody reads waits in the pipe, which has room for so much.
#[test]
fn a_process_that_reads_nothing_is_sent_64_kib_and_no_more() {
    let side = Side::mainstay();
    settled(&side);
    let send = |bytes: usize| {
        let params = format!("[\"web\", \"{}\"]", "x".repeat(bytes));
        side.call("supervisor.sendProcessStdin", &params)
    };
    let refused = |told: &str| told.starts_with("fault 30: FAILED");
    let told = send((64 << 10) + 1);
    assert!(refused(&told), "{told}");
    // Nothing of that was sent: all of the room is left.
    assert_eq!(send(64 << 10), "True");
    let told = send(1);
    assert!(refused(&told), "{told}");
}
