//! Arguments, environment and paths that are not UTF-8 reach a program as they were given.

use mainstay_tests::{Node, Scratch, Setup, binary, until};
use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::Path,
    process::Command,
};

/// Not UTF-8 in several ways, and a character that bytes are written with.
const ODD: &[u8] = b"caf\xe9 \xff\xfe\xf4\x8f\xbe \xf4\x8f\xbe\x80 \xc3\xa9";

fn odd() -> &'static OsStr {
    OsStr::from_bytes(ODD)
}

/// Writes its arguments and what it knows of itself into files where it is, with NULs between.
const TELL: &str =
    r#"printf '%s\0' "$@" >args; cat /proc/self/environ >env; pwd >cwd; exec sleep 1000"#;

fn nul_separated(path: &Path) -> Vec<Vec<u8>> {
    until("it has told", || {
        let bytes = fs::read(path).ok()?;
        bytes.ends_with(&[0]).then(|| bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect())
    })
}

fn has(node: &Node, file: &str, word: &[u8]) {
    let found = nul_separated(&node.path().join(file));
    assert!(found.iter().any(|it| it == word), "{word:?} in {found:?}");
}

fn variable(name: &str) -> Vec<u8> {
    [name.as_bytes(), b"=", ODD].concat()
}

#[test]
fn a_command_its_environment_and_its_directories_may_be_any_bytes() {
    let command: [&OsStr; 6] =
        ["sh".as_ref(), "-c".as_ref(), TELL.as_ref(), "sh".as_ref(), odd(), "\u{10ff80}".as_ref()];
    let setup = Setup::command(&command).env("ODD", odd());
    let node = setup.launch_in(Scratch::ending(b" caf\xe9\xff"));
    node.wait_until_ready();
    let pid = node.running("sh");
    has(&node, "args", ODD);
    has(&node, "args", "\u{10ff80}".as_bytes());
    has(&node, "env", &variable("ODD"));
    let cwd = fs::read(node.path().join("cwd")).expect("it has told");
    assert_eq!(cwd, [node.path().as_os_str().as_bytes(), b"\n"].concat());
    // What was stored and sent on the way.
    node.kill_agent();
    node.must(&["upgrade"]);
    node.kill_agent();
    assert_eq!(node.pid("sh"), Some(pid));
    for file in ["args", "env"] {
        fs::remove_file(node.path().join(file)).expect("it has told");
    }
    node.must(&["restart", "sh"]);
    has(&node, "args", ODD);
    has(&node, "env", &variable("ODD"));
}

#[test]
fn a_configuration_may_be_in_any_directory_and_use_any_variable() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.job]
        exec = ["sh", "-c", '''TELL''', "sh", "${ODD}"]
        env = { SECOND = "${ODD}", SECRET = "${file:./secret}" }
    "#;
    let scratch = Scratch::ending(b"\xff");
    fs::write(scratch.path().join("secret"), "told\n").expect("a scratch directory");
    let setup = Setup::config(config.replace("TELL", TELL)).env("ODD", odd());
    let node = setup.launch_in(scratch);
    node.wait_until_ready();
    has(&node, "args", ODD);
    has(&node, "env", &variable("SECOND"));
    has(&node, "env", b"SECRET=told");
    let mut restart = node.command(&["restart", "job", "--"]);
    let more = OsString::from_vec(vec![0xfe, b'x']);
    fs::remove_file(node.path().join("args")).expect("it has told");
    assert!(restart.arg(&more).status().expect("it can be started").success());
    has(&node, "args", more.as_bytes());
    fs::remove_file(node.path().join("args")).expect("it has told");
    node.kill_agent();
    let mut set = node.command(&["environ"]);
    let assignment = OsString::from_vec(variable("THIRD"));
    assert!(set.arg(&assignment).status().expect("it can be started").success());
    assert_eq!(fs::remove_file(node.path().join("env")).ok(), Some(()));
    node.must(&["restart", "job"]);
    has(&node, "env", &variable("THIRD"));
    node.must(&["reload"]);
    let status = node.must(&["status"]);
    assert!(!status.contains('\u{fffd}'), "{status}");
}

#[test]
fn what_is_held_may_be_called_with_any_bytes() {
    let scratch = Scratch::ending(b"\xff");
    let mut hold = Command::new(binary())
        .args(["hold", "--dir"])
        .arg(scratch.path())
        .args(["--", "sh", "-c", TELL, "sh"])
        .arg(odd())
        .env("ODD", odd())
        .current_dir(scratch.path())
        .spawn()
        .expect("the binary can be started");
    let args = nul_separated(&scratch.path().join("args"));
    let env = nul_separated(&scratch.path().join("env"));
    mainstay_tests::signal(hold.id(), rustix::process::Signal::TERM);
    hold.wait().expect("our own child");
    assert_eq!(args[0], ODD);
    assert!(env.contains(&variable("ODD")));
}
