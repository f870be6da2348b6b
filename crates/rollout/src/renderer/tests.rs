//! Which ends of the process are told of a template, and which of none.

use super::*;
use crate::{template::ShowSecrets, test_dir::TestDir};
use std::time::Instant;

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn request() -> RenderRequest {
    let template =
        |it: &str| TemplateRequest { name: name(it), src: PathBuf::from(it), profiles: Vec::new() };
    RenderRequest {
        show: ShowSecrets::Values,
        node: serde_json::Value::Null,
        profiles: BTreeMap::new(),
        templates: vec![template("one"), template("two")],
    }
}

fn told(failure: StageFailure) -> (Option<Name>, String) {
    match failure {
        StageFailure::Render { template, trouble } => (Some(template), trouble.0),
        StageFailure::Disk(trouble) => (None, trouble.0),
        StageFailure::Edited { .. } | StageFailure::Lost { .. } => panic!("nobody has"),
    }
}

#[test]
fn a_limit_is_told_of_the_template_at_which_it_came_and_no_other_end_is() {
    let ended = |signal: i32, ready: bool, made: usize| {
        told(why_ended(&request(), ready, made, ExitStatus::from_raw(signal)))
    };
    let (template, why) = ended(6, true, 1);
    assert_eq!(template, Some(name("two")));
    assert_eq!(why, "template 'two': it needs more than 512 MiB of memory");
    let (template, why) = ended(24, true, 0);
    assert_eq!(template, Some(name("one")));
    assert_eq!(why, "template 'one': it takes more than 10 s");
    let (template, why) = ended(11, true, 1);
    assert_eq!(template, Some(name("two")));
    assert_eq!(why, "template 'two': its expressions or conditions are nested too deep");
    let (template, why) = ended(6, false, 0);
    assert!(template.is_none() && why.contains("profiles are too large"), "{why}");
    // Somebody has killed it, or memory was needed elsewhere.
    let (template, why) = ended(9, true, 0);
    assert!(template.is_none() && why.contains("signal: 9"), "{why}");
    let (template, why) = ended(101 << 8, true, 1);
    assert!(template.is_none() && why.contains("101"), "{why}");
}

/// A process that says nothing, does not read, or cannot go on: a script in its place.
#[test]
fn a_process_that_says_nothing_is_killed_in_its_time_and_so_is_one_that_does_not_listen() {
    let dir = TestDir::new("silent");
    dir.write("script", "#!/bin/sh\nexec sleep 1000\n");
    let (script, program) = (dir.path().join("script"), dir.path().join("silent"));
    // Written by another process: what a test beside this one starts must not hold it open.
    let install = std::process::Command::new("install").args([&script, &program]).status();
    assert!(install.is_ok_and(|it| it.success()), "installed");
    let patience = Patience { silence: Duration::from_millis(50), all: Duration::from_secs(60) };
    let began = Instant::now();
    let mut silent = Process::start(&program, b"little", patience).expect("started");
    let late = collect(&mut silent.output, 2);
    assert!(matches!(late, Err(Broken::Late { made: 0 })), "{late:?}");
    assert!(silent.status().expect("asked").is_none(), "it sleeps");
    let deaf = Process::start(&program, &vec![0; 1 << 20], patience).err().expect("it is deaf");
    assert_eq!(deaf.kind(), io::ErrorKind::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(60));
    let (template, why) = told(why_broken(&request(), Broken::Late { made: 1 }, None));
    assert!(template.is_none() && why.contains("at template 'two'"), "{why}");
}
