//! User, groups, environment, directory, mask, priority, limits.

use mainstay_tests::{Setup, needs_root, proc, until};

/// Runs a script as a job with these settings, and gives its lines.
fn lines_of(settings: &str, script: &str) -> Vec<String> {
    let config = format!("[jobs.one]\nexec = [\"sh\", \"-c\", '''{script}''']\n{settings}\n");
    let mut node = Setup::config(config).launch();
    assert_eq!(node.wait().code(), Some(0), "{}", node.stderr());
    node.log("one")
}

#[test]
fn a_user_brings_its_groups_and_its_home() {
    needs_root();
    let script = "id -u; id -g; id -G; echo $HOME $USER $LOGNAME; echo text >/dev/stdout";
    let lines = lines_of("user = \"nobody\"", script);
    assert_eq!(lines, ["65534", "65534", "65534", "/nonexistent nobody nobody", "text"]);
}

#[test]
fn group_groups_and_env_override_what_the_user_brings() {
    needs_root();
    let settings = "user = \"nobody\"\ngroup = \"daemon\"\ngroups = [\"games\", \"4321\"]\n\
                    env = { HOME = \"/srv\" }";
    let lines = lines_of(
        settings,
        "id -u; id -g; id -G | tr ' ' '\\n' | sort -n | xargs; echo $HOME $USER",
    );
    let games = std::process::Command::new("getent").args(["group", "games"]).output();
    let games = String::from_utf8(games.expect("getent can be started").stdout).expect("text");
    let games = games.split(':').nth(2).expect("a gid").to_owned();
    assert_eq!(lines, ["65534", "1", &format!("1 {games} 4321"), "/srv nobody"]);
}

#[test]
fn the_environment_is_inherited_and_added_to() {
    let config = r#"
        [jobs.one]
        exec = ["sh", "-c", "echo $GIVEN $ADDED $OVER $MAINSTAY_JOB; env"]
        env = { ADDED = "two", OVER = "new" }
    "#;
    let mut node = Setup::config(config)
        .env("GIVEN", "one")
        .env("OVER", "old")
        .env("NOTIFY_SOCKET", "/not/for/jobs")
        .env("LISTEN_FDS", "3")
        .launch();
    node.wait();
    let lines = node.log("one");
    assert_eq!(lines[0], "one two new one");
    for name in ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "MAINSTAY_HANDOVER"] {
        assert!(!lines.iter().any(|line| line.starts_with(&format!("{name}="))), "{name}");
    }
}

#[test]
fn when_memory_runs_out_jobs_go_before_keeper_and_agent() {
    let lower = "echo -900 2>/dev/null >/proc/self/oom_score_adj";
    if !std::process::Command::new("sh").args(["-c", lower]).status().is_ok_and(|it| it.success()) {
        return eprintln!("skipped: it cannot be lowered here");
    }
    let score = |pid: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).expect("it runs");
        text.trim().to_owned()
    };
    let config = r#"
        [node]
        exit = "never"
        [jobs.one]
        exec = "sleep 1000"
        [jobs.two]
        exec = "sleep 1000"
        user = "nobody"
    "#;
    let node = Setup::config(config).start();
    let ours = score("self");
    for _ in 0..2 {
        for pid in [node.keeper(), node.agent()] {
            assert_eq!(score(&pid.to_string()), "-900");
        }
        for job in ["one", "two"] {
            assert_eq!(score(&node.running(job).to_string()), ours, "{job}");
        }
        node.must(&["upgrade"]);
        node.must(&["restart", "one"]);
    }
}

#[test]
fn directory_mask_and_priority_are_as_declared() {
    let settings = "cwd = \"/usr\"\numask = \"027\"\nnice = 7";
    assert_eq!(lines_of(settings, "pwd; umask; nice"), ["/usr", "0027", "7"]);
}

#[test]
fn limits_are_set_and_open_files_are_as_we_found_them() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.plain]
        exec = "sleep 1000"
        [jobs.limited]
        exec = "sleep 1000"
        limits = { nofile = 333, core = 0, nproc = 1000, memory = "1G", cpus = 0.5, pids = 50 }
    "#;
    let node = Setup::config(config).after("ulimit -Sn 200; ulimit -Hn 4000").start();
    let (plain, limited) = (node.running("plain"), node.running("limited"));
    let pair = |soft: &str, hard: &str| (soft.to_owned(), hard.to_owned());
    assert_eq!(proc::limit(node.keeper(), "Max open files"), pair("4000", "4000"));
    assert_eq!(proc::limit(plain, "Max open files"), pair("200", "4000"));
    assert_eq!(proc::limit(limited, "Max open files"), pair("333", "333"));
    assert_eq!(proc::limit(limited, "Max core file size"), pair("0", "0"));
    assert_eq!(proc::limit(limited, "Max processes"), pair("1000", "1000"));

    // Where no controller is at hand the job runs, and what is not enforced is said.
    let job = node.job("limited");
    let group = std::fs::read_to_string(format!("/proc/{limited}/cgroup")).expect("it runs");
    let here = group.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
    let enforced = |file: &str| {
        ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
            .iter()
            .any(|root| std::fs::exists(format!("{root}{here}/{file}")).unwrap_or(false))
    };
    let expected: Vec<&str> = [("memory", "memory.max"), ("cpus", "cpu.max"), ("pids", "pids.max")]
        .into_iter()
        .filter(|(_, file)| job["tree"] != "cgroup" || !enforced(file))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(job["unenforced"], serde_json::json!(expected));
    let text = String::from_utf8(node.ask(&["status"]).stdout).expect("text");
    assert_eq!(text.contains("not enforced here"), !expected.is_empty(), "{text}");

    // Over an upgrade too.
    node.must(&["upgrade"]);
    node.must(&["restart", "plain"]);
    let plain = until("it runs again", || node.pid("plain"));
    assert_eq!(proc::limit(plain, "Max open files"), pair("200", "4000"));
}
