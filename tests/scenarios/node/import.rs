//! Files of other supervisors, printed as ours or run as they are.

use mainstay_tests::{Scratch, Setup, binary};
use std::process::Command;

#[test]
fn a_procfile_is_imported_and_the_result_is_valid() {
    let scratch = Scratch::new();
    let procfile = scratch.path().join("Procfile");
    std::fs::write(&procfile, "web: sleep 1000\nworker: sh -c 'sleep 1000'\n").expect("a file");
    let run = |args: &[&str]| {
        let output = Command::new(binary()).args(args).output().expect("the binary can be started");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let toml = run(&["import", "procfile", &procfile.display().to_string()]);
    assert!(toml.contains("[jobs.web]") && toml.contains("[jobs.worker]"), "{toml}");
    let ours = scratch.path().join("mainstay.toml");
    std::fs::write(&ours, &toml).expect("a file");
    assert!(run(&["check", "-c", &ours.display().to_string()]).contains("2 jobs"));
}

#[test]
fn a_foreign_file_runs_as_it_is_and_is_read_again_on_reload() {
    let scratch = Scratch::new();
    let file = scratch.path().join("Procfile");
    std::fs::write(&file, "web: sleep 1000\n").expect("a file");
    let node = Setup::import("procfile", &file).launch_in(scratch);
    let web = node.running("web");
    std::fs::write(&file, "web: sleep 1000\nworker: sleep 1000\n").expect("a file");
    node.must(&["reload"]);
    node.running("worker");
    assert_eq!(node.running("web"), web);
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    let scratch = Scratch::new();
    let file = scratch.path().join("compose.yaml");
    std::fs::write(&file, "processes: [\n").expect("a file");
    let output = Command::new(binary())
        .args(["import", "process-compose", &file.display().to_string()])
        .output()
        .expect("the binary can be started");
    assert_eq!(output.status.code(), Some(78));
    assert!(String::from_utf8_lossy(&output.stderr).contains("compose.yaml"));
}
