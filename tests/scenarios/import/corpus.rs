//! The files of `tests/corpus`, run: what starts, in which order, with which environment.

use super::case::{Case, JobCase, copy, programs};
use mainstay_tests::{Node, Scratch, Setup, binary, until};
use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    thread,
};

/// Nodes at a time.
const ABREAST: usize = 4;
/// There are at least so many of each format.
const LEAST: usize = 10;

#[test]
fn procfiles_run_as_they_did() {
    run_all("procfile", "Procfile", true);
}

#[test]
fn files_of_process_compose_run_as_they_did() {
    run_all("process-compose", "process-compose.yaml", false);
}

#[test]
fn files_of_supervisord_run_as_they_did() {
    run_all("supervisord", "supervisord.conf", true);
}

fn run_all(format: &str, usual: &str, open_input: bool) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(format);
    let entries = fs::read_dir(&folder).expect("the corpus is there");
    let mut cases: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect();
    cases.sort();
    assert!(cases.len() >= LEAST, "{}", cases.len());
    let left = Mutex::new(cases);
    let next = || left.lock().expect("nobody panics with it").pop();
    thread::scope(|scope| {
        for _ in 0..ABREAST {
            scope.spawn(|| {
                while let Some(folder) = next() {
                    println!("{}", folder.display());
                    run(format, usual, open_input, &folder);
                }
            });
        }
    });
}

/// A port at which everything that is asked for is there, once a job has been run.
fn answering_port(order: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 4096]);
            let has_run = fs::read(&order).is_ok_and(|order| !order.is_empty());
            let code = if has_run { "200 OK" } else { "503 Service Unavailable" };
            let head = format!("HTTP/1.1 {code}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = client.write_all(head.as_bytes());
        }
    });
    port
}

fn run(format: &str, usual: &str, open_input: bool, folder: &Path) {
    let mut case = Case::read(folder);
    if case.files.is_empty() {
        case.files.push(usual.to_owned());
    }
    let scratch = Scratch::new();
    let dir = scratch.path().canonicalize().expect("it is there");
    copy(folder, &dir);
    let seen = dir.join("seen");
    fs::create_dir(&seen).expect("a scratch directory can be written");
    fs::create_dir(dir.join("ends")).expect("a scratch directory can be written");
    for (job, code) in &case.ends {
        let after: String =
            case.run_before_end_of(job).iter().map(|it| format!("{it}\n")).collect();
        fs::write(dir.join("ends").join(job), code.to_string()).expect("a file");
        fs::write(dir.join("ends").join(format!("{job}.after")), after).expect("a file");
    }
    let port = answering_port(seen.with_extension("order"));
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs(&dir).display());
    let mut env = vec![
        ("PATH".to_owned(), path),
        ("HTTP_PORT".to_owned(), port.to_string()),
        ("CORPUS_SEEN".to_owned(), seen.display().to_string()),
        ("CORPUS_ENDS".to_owned(), dir.join("ends").display().to_string()),
        ("CORPUS_PASS".to_owned(), case.pass.join(" ")),
        ("CORPUS_INPUT".to_owned(), if open_input { "open" } else { "" }.to_owned()),
    ];
    env.extend(case.env.clone());
    check_notes(&case, format, &dir, &env);
    let files: Vec<PathBuf> = case.files.iter().map(|file| dir.join(file)).collect();
    let setup =
        env.iter().fold(Setup::imports(format, &files), |it, (name, value)| it.env(name, value));
    let mut node = setup.launch_in(scratch);
    match case.exit {
        Some(code) => {
            assert_eq!(node.wait().code(), Some(code), "{}\n{}", folder.display(), node.stderr())
        }
        None => check_running(&case, &node, folder),
    }
    check_order(&case, &seen, folder);
    case.jobs.iter().for_each(|job| check_job(job, &seen, &dir, folder));
}

fn check_notes(case: &Case, format: &str, dir: &Path, env: &[(String, String)]) {
    let mut command = Command::new(binary());
    command.args(["import", format]).args(&case.files).current_dir(dir).envs(env.iter().cloned());
    let output = command.output().expect("the binary can be started");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(told.lines().count(), case.notes, "{}: {told}", dir.display());
    let code = if case.notes == 0 { 0 } else { 3 };
    assert_eq!(output.status.code(), Some(code), "{told}");
}

fn all_jobs(case: &Case) -> Vec<String> {
    case.starts.concat()
}

fn check_running(case: &Case, node: &Node, folder: &Path) {
    for job in all_jobs(case) {
        until(&format!("{job} of {} is run", folder.display()), || {
            node.path().join("seen").join(format!("{job}/env")).exists().then_some(())
        });
    }
    for (job, state) in &case.states {
        node.until_state(job, state);
    }
    for (job, times) in &case.runs_of {
        let runs = fs::read_to_string(node.path().join("seen").join(format!("{job}.runs")));
        assert_eq!(runs.unwrap_or_default().lines().count(), *times, "{job}");
    }
    let status = node.status();
    let jobs = status["jobs"].as_array().expect("a list of jobs");
    let listed: Vec<&str> = jobs.iter().filter_map(|job| job["name"].as_str()).collect();
    for group in &case.starts {
        let among = listed.iter().filter(|name| group.iter().any(|job| job == *name));
        let among: Vec<&str> = among.copied().collect();
        assert_eq!(among, *group, "the order of {}", folder.display());
    }
    let wanted = all_jobs(case);
    for job in jobs {
        let name = job["name"].as_str().unwrap_or_default();
        let goes_on = wanted.iter().any(|it| it == name) && !case.ends.contains_key(name);
        if goes_on {
            node.until_state(name, "RUNNING");
        }
    }
    for line in &case.stdout {
        until(&format!("stdout says {line}"), || {
            node.stdout().lines().any(|it| it == line).then_some(())
        });
        assert!(!node.stderr().lines().any(|it| it == line));
    }
    for line in &case.stderr {
        until(&format!("stderr says {line}"), || {
            node.stderr().lines().any(|it| it == line).then_some(())
        });
        assert!(!node.stdout().lines().any(|it| it == line));
    }
}

/// Who was run, group after group, and nobody else.
fn check_order(case: &Case, seen: &Path, folder: &Path) {
    let order = fs::read_to_string(seen.with_extension("order")).unwrap_or_default();
    let mut left = order.lines();
    for group in &case.starts {
        let mut ran: Vec<&str> = left.by_ref().take(group.len()).collect();
        let mut wanted: Vec<&str> = group.iter().map(String::as_str).collect();
        ran.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(ran, wanted, "{}: {order}", folder.display());
    }
    assert_eq!(left.next(), None, "{}", folder.display());
}

fn check_job(job: &JobCase, seen: &Path, dir: &Path, folder: &Path) {
    let file = |name: &str| {
        fs::read_to_string(seen.join(&job.name).join(name))
            .unwrap_or_default()
            .trim_end()
            .to_owned()
    };
    let at = format!("{} of {}", job.name, folder.display());
    if let Some(runs) = &job.runs {
        assert_eq!(&file("runs"), runs, "{at}");
    }
    if let Some(cwd) = &job.cwd {
        assert_eq!(file("cwd"), dir.join(cwd).display().to_string(), "{at}");
    }
    let env = file("env");
    let value = |name: &str| {
        env.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    };
    for (name, wanted) in &job.env {
        assert_eq!(value(name).as_deref(), Some(wanted.as_str()), "{name} of {at}");
    }
    for name in &job.unset {
        assert_eq!(value(name), None, "{name} of {at}");
    }
}
