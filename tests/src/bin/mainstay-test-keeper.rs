//! A keeper whose agent is in the hands of a test: the agent only passes bytes on between the link
//! and the socket named by `MAINSTAY_TEST_AGENT`, where the test says what an agent would say.
//!
//! What it does as a new binary in an upgrade depends on the name of its file: `…-refuses` does not
//! pass the check, `…-gives-back` passes it and then cannot take over, `…-starves` takes over where
//! it may have no thread but its first.

use mainstay_keeper::RunOptions;
use mainstay_sys::fd;
use mainstay_wire::link::LINK_FD;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{io, net::Shutdown, os::unix::net::UnixStream, path::PathBuf, process::exit, thread};

fn main() {
    let own = std::env::current_exe().expect("there is /proc");
    let is = |kind: &str| own.to_string_lossy().ends_with(kind);
    if is("-gives-back") && std::env::var_os("MAINSTAY_HANDOVER").is_some() {
        panic!("{}", mainstay_keeper::give_back("it has lost its memory"));
    }
    if is("-starves") && std::env::var_os("MAINSTAY_HANDOVER").is_some() {
        let limit = Rlimit { current: Some(1), ..getrlimit(Resource::Nproc) };
        setrlimit(Resource::Nproc, limit).expect("less is always allowed");
    }
    if let Some(code) = mainstay_keeper::take_over() {
        exit(code);
    }
    if let Some(code) = mainstay_keeper::spare() {
        exit(code);
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("__agent") => pass_on(),
        Some("__check") if is("-refuses") => {
            eprintln!("it does not want to");
            exit(1);
        }
        Some("__check") => mainstay_keeper::check().expect("the snapshot can be read"),
        Some(run_dir) => {
            let run_dir = PathBuf::from(run_dir);
            let state_dir = run_dir.with_file_name("state");
            let agent_args = vec!["__agent".into()];
            let (run_parent, project) = (None, None);
            let options = RunOptions { run_dir, state_dir, run_parent, project, agent_args };
            exit(mainstay_keeper::run(options, None));
        }
        None => panic!("RUN_DIR"),
    }
}

fn pass_on() {
    let path = std::env::var_os("MAINSTAY_TEST_AGENT").expect("a test");
    let link = UnixStream::from(fd::take(LINK_FD).expect("started by a keeper"));
    link.set_nonblocking(false).expect("a socket");
    let Ok(test) = UnixStream::connect(path) else { exit(1) };
    let copy = |from: &UnixStream, to: &UnixStream| {
        let (mut from, mut to) = (from.try_clone().expect("fds"), to.try_clone().expect("fds"));
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        })
    };
    let (out, back) = (copy(&test, &link), copy(&link, &test));
    let _ = (out.join(), back.join());
}
