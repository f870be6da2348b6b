//! Foreign files become configurations that load, with a word about what changes.
//! `MAINSTAY_GOLDEN=write` writes the expected ones anew.

use super::context;
use mainstay_config::parse;
use mainstay_import::{Format, Imported, import, import_file, import_files};
use proptest::prelude::*;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata")
}

/// The outcome without the place where this happens to be.
fn imported(format: Format, name: &str) -> Imported {
    let mut imported =
        import_file(format, &dir().join(name), &context()).unwrap_or_else(|e| panic!("{e}"));
    let here = format!("{}/", dir().display());
    imported.toml = imported.toml.replace(&here, "").replace(here.trim_end_matches('/'), ".");
    imported
}

fn as_expected(format: Format, name: &str) -> Imported {
    let imported = imported(format, name);
    let mut ctx = context();
    for name in ["PATH", "USER", "HOSTNAME"] {
        ctx.env.insert(name.to_owned(), "x".to_owned());
    }
    let loaded = parse("imported.toml", &imported.toml, &ctx);
    assert!(loaded.is_ok(), "{}\n{}", imported.toml, loaded.unwrap_err());
    let path = dir().join(format!("{name}.expected.toml"));
    if std::env::var_os("MAINSTAY_GOLDEN").is_some_and(|it| it == "write") {
        fs::write(&path, &imported.toml).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(imported.toml == expected, "not as in {}:\n{}", path.display(), imported.toml);
    for note in &imported.notes {
        assert!(!note.message.is_empty());
    }
    imported
}

#[test]
fn a_procfile_becomes_jobs_run_by_a_shell() {
    let imported = as_expected(Format::Procfile, "Procfile");
    assert!(imported.notes.iter().any(|note| note.line == Some(7)));
}

#[test]
fn a_supervisord_file_with_its_includes_becomes_jobs_and_apps() {
    let imported = as_expected(Format::Supervisord, "supervisord.conf");
    for part in ["[jobs.worker_00]", "[jobs.worker_02]", "[jobs.extra]", "[apps.back]", "${PATH}"] {
        assert!(imported.toml.contains(part), "{part}");
    }
}

#[test]
fn a_process_compose_file_becomes_jobs_that_wait_and_are_checked() {
    let imported = as_expected(Format::ProcessCompose, "process-compose.yaml");
    assert!(imported.toml.contains("[jobs.web-2]"));
    assert!(imported.toml.contains("main = true"));
}

#[test]
fn what_is_called_otherwise_here_or_refused_by_a_strict_original_is_a_note() {
    let noted = |format: Format, text: &str| {
        let imported = import(format, text, Path::new("f"), &context());
        let imported = imported.unwrap_or_else(|e| panic!("{e}"));
        imported.notes.iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    let program = "[program:my web]\ncommand=/a\n[program:db]\ncommand=/b\n";
    let notes = noted(Format::Supervisord, program);
    assert_eq!(notes, ["f:1: 'my web' is called 'my-web' here"]);
    let process = "processes:\n  my web: { command: x }\n  db: { command: y, comand: z }\n";
    assert_eq!(noted(Format::ProcessCompose, process), ["f:2: 'my web' is called 'my-web' here"]);
    let strict = noted(Format::ProcessCompose, &format!("is_strict: true\n{process}"));
    assert!(strict.iter().any(|it| it.starts_with("f:4: is_strict") && it.contains("'comand'")));
}

/// What the original would refuse, or we cannot do: no file comes out.
#[test]
fn what_cannot_be_imported_is_an_error_that_says_where() {
    let compose = |text: &str| format!("processes:\n  a:\n    command: x\n{text}");
    for (format, text, told) in [
        (Format::Supervisord, "[program:a]\ncommand=/a 'x\n".to_owned(), "f:2"),
        (Format::Supervisord, "[program:a]\nautostart=true\n".to_owned(), "command: it is empty"),
        (
            Format::Supervisord,
            "[program:a]\ncommand=/a %(nope)s\n".to_owned(),
            "%(nope)s is not known",
        ),
        (Format::Supervisord, "[program:a]\ncommand=/a\nuser=%USER%\n".to_owned(), "user: a '%'"),
        (
            Format::Supervisord,
            "[program:a]\ncommand=/a\nuser=nobody-here\n".to_owned(),
            "[program:a] user: 'nobody-here' is not a user of this machine",
        ),
        (
            Format::Supervisord,
            "[supervisord]\nuser=nobody-here\n[program:a]\ncommand=/a\n".to_owned(),
            "'nobody-here' is not a user of this machine",
        ),
        (
            Format::ProcessCompose,
            "is_strict: true\nprocesses:\n  a:\n    command: x\n    depends_on: { b: {} }\n  b: { \
             command: y, disabled: true }\n"
                .to_owned(),
            "is_strict: 'a' depends on 'b', which is disabled",
        ),
        (
            Format::Supervisord,
            "[program:a]\ncommand=/a\nnumprocs=%(ENV_N)s\n".to_owned(),
            "variable N is not set here",
        ),
        (
            Format::Supervisord,
            "[program:a]\ncommand=/a\nnumprocs=2\n".to_owned(),
            "it needs %(process_num)d",
        ),
        (
            Format::Supervisord,
            "[program:a]\ncommand=/a\nstopsignal=NOPE\n".to_owned(),
            "'NOPE' is not a signal",
        ),
        (Format::Supervisord, "[program:a]\ncommand=/a\nstray\n".to_owned(), "f:3"),
        (
            Format::Supervisord,
            "[program:a]\ncommand=/a\n[group:g]\nprograms=a,b\n".to_owned(),
            "no program 'b'",
        ),
        (
            Format::ProcessCompose,
            compose("    depends_on: { b: { condition: process_started } }\n"),
            "'b', which is not there",
        ),
        (
            Format::ProcessCompose,
            compose("    depends_on: { a: { condition: process_started } }\n"),
            "wait for each other",
        ),
        (
            Format::ProcessCompose,
            compose("    depends_on: { b: { condition: process_healthy } }\n  b: { command: y }\n"),
            "has no probe",
        ),
        (Format::ProcessCompose, compose("    working_dir: \"{{if .A}}\"\n"), "is not understood"),
        (Format::ProcessCompose, compose("  b: { working_dir: / }\n"), "'b' has no command"),
        (
            Format::ProcessCompose,
            compose("    description: ${A^^}\n"),
            "line 4: '${A^^}' is not understood",
        ),
        (
            Format::ProcessCompose,
            compose("    readiness_probe: { http_get: { port: x } }\n"),
            "no URL that can be asked",
        ),
        (
            Format::ProcessCompose,
            compose("    schedule: { cron: \"every day\" }\n"),
            "no usable cron",
        ),
    ] {
        let errors = import(format, &text, Path::new("f"), &context()).unwrap_err().to_string();
        assert!(errors.contains(told), "{text}\n{errors}");
    }
}

#[test]
fn files_without_a_difference_have_no_note() {
    for (format, text) in [
        (Format::Procfile, "# all\nweb: bundle exec puma -p $PORT\n\nworker: bin/work\n"),
        (
            Format::Supervisord,
            "[unix_http_server]\nfile=/s\n[supervisord]\nnodaemon=true\nuser=root\nlogfile=/dev/null\n\
             [supervisorctl]\nserverurl=unix:///s\n[rpcinterface:supervisor]\nx=y\n\
             [program:a]\ncommand=/a\nautorestart=true\nstdout_logfile=/dev/stdout\n\
             stdout_logfile_maxbytes=0\nstderr_logfile=/dev/stderr\nstderr_logfile_maxbytes=0\n",
        ),
        (
            Format::ProcessCompose,
            "version: '0.5'\nprocesses:\n  a:\n    command: ./a ${X:-1}\n    availability: {restart: always}\n  \
             b:\n    command: ./b\n    namespace: n\n    depends_on: {a: {condition: process_started}}\n",
        ),
    ] {
        let imported = import(format, text, Path::new("/f"), &context()).unwrap();
        assert_eq!(imported.notes, [], "{}", imported.toml);
    }
}

#[test]
fn what_holds_for_many_lines_is_told_once() {
    let text = "[program:a]\ncommand=/a\nstdout_logfile=/var/log/a\n\
                [program:b]\ncommand=/b\nstdout_logfile=/var/log/b\n";
    let imported = import(Format::Supervisord, text, Path::new("/f"), &context()).unwrap();
    let notes: Vec<String> = imported.notes.iter().map(ToString::to_string).collect();
    let logs = "/f:3: stdout_logfile, stderr_logfile: the log is in files of mainstay's own: \
                mainstay logs NAME (also line 6)";
    assert_eq!(notes, [logs]);
}

#[test]
fn formats_are_named_as_on_the_command_line() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    let unknown = "docker".parse::<Format>().unwrap_err().to_string();
    assert!(unknown.contains("procfile, supervisord"), "{unknown}");
}

#[test]
fn a_file_without_anything_to_run_is_an_error_that_says_so() {
    for format in Format::ALL {
        for text in ["", "# nothing\n", "x = 1\n", "[program:x]\n", "processes:\n"] {
            let told = import(format, text, Path::new("f"), &context()).unwrap_err().to_string();
            assert!(told.contains("help: "), "{told}");
        }
        let large = "#".repeat((8 << 20) + 1);
        assert!(
            import(format, &large, Path::new("f"), &context())
                .unwrap_err()
                .to_string()
                .contains("too large")
        );
    }
    let told =
        import(Format::ProcessCompose, "a: [", Path::new("f"), &context()).unwrap_err().to_string();
    assert!(told.contains("line "), "{told}");
}

fn survives(format: Format, text: &str) {
    let begun = Instant::now();
    if let Ok(imported) = import(format, text, Path::new("/nonexistent/f"), &context()) {
        let again = import(format, text, Path::new("/nonexistent/f"), &context()).unwrap();
        assert_eq!(imported, again);
        let mut ctx = context();
        // Names of variables that the original took from the environment are not ours to judge.
        for word in imported.toml.split("${").skip(1) {
            let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(0);
            ctx.env.insert(word[..end].to_owned(), "1".to_owned());
        }
        ctx.env.extend(super::supvisors::with_key().env);
        if let Err(errors) = parse("x.toml", &imported.toml, &ctx) {
            panic!("{text:?}\n{}\n{errors}", imported.toml);
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
}

/// What these files become, of which the first `given` are imported.
fn of_files(format: Format, files: &[(&str, &str)], given: usize) -> (PathBuf, Imported) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("mainstay-import-{}-{number}", std::process::id()));
    for (name, text) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let paths: Vec<PathBuf> = files[..given].iter().map(|(name, _)| dir.join(name)).collect();
    let imported = import_files(format, &paths[0], &paths[1..], &context());
    fs::remove_dir_all(&dir).unwrap();
    (dir, imported.unwrap_or_else(|e| panic!("{e}")))
}

fn noted(imported: &Imported, part: &str) -> bool {
    imported.notes.iter().any(|note| note.message.contains(part))
}

#[test]
fn here_is_the_directory_of_the_file_that_says_so_and_keys_of_a_later_file_go_over() {
    let main = "[include]\nfiles = conf.d/*.ini\n\
                [program:a]\ncommand = %(here)s/a\nnumprocs = 1\nstartsecs = 7\n";
    let more = "[program:a]\nstartsecs = 9\n[program:b]\ncommand = %(here)s/b\n";
    let files = [("main.conf", main), ("conf.d/more.ini", more)];
    let (dir, imported) = of_files(Format::Supervisord, &files, 1);
    let toml = &imported.toml;
    assert!(toml.contains(&format!("exec = \"{}/a\"", dir.display())), "{toml}");
    assert!(toml.contains(&format!("exec = \"{}/conf.d/b\"", dir.display())), "{toml}");
    assert!(toml.contains("start_seconds = 9") && !toml.contains("start_seconds = 7"), "{toml}");
}

#[test]
fn a_shutdown_lasts_as_long_as_the_jobs_that_stop_one_after_the_other() {
    let text = |condition: &str| {
        format!(
            "processes:\n  a: {{command: a}}\n  b:\n    command: b\n    \
             shutdown: {{timeout_seconds: 30}}\n    depends_on: {{a: {{condition: {condition}}}}}\n"
        )
    };
    // Who waits for an end has nobody to stop before.
    let seconds = [
        ("process_started", 41),
        ("process_completed_successfully", 41),
        ("process_completed", 31),
    ];
    for (condition, seconds) in seconds {
        let text = text(condition);
        let (_, imported) = of_files(Format::ProcessCompose, &[("p.yaml", text.as_str())], 1);
        let loaded = parse("x.toml", &imported.toml, &context()).unwrap();
        let time = loaded.plan.node.stop_timeout;
        assert_eq!(time, Duration::from_secs(seconds), "{}", imported.toml);
    }
}

#[test]
fn several_files_are_one_configuration() {
    let files = [
        ("a.conf", "[program:a]\ncommand=/a\nstopwaitsecs=30\n"),
        ("b.conf", "[program:b]\ncommand=/b\n[program:a]\npriority=3\n"),
    ];
    let (_, imported) = of_files(Format::Supervisord, &files, 2);
    let loaded = parse("x.toml", &imported.toml, &context()).unwrap();
    let names: Vec<&str> = loaded.plan.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a", "b"], "{}", imported.toml);
    assert_eq!(loaded.plan.node.stop_timeout, Duration::from_secs(31));
    let files = [
        ("p.yaml", "processes: {a: {command: x, environment: [A=1, B=1]}}\n"),
        ("q.yaml", "processes: {a: {environment: [B=2]}, b: {command: y, extends: a}}\n"),
    ];
    let (_, imported) = of_files(Format::ProcessCompose, &files, 2);
    let loaded = parse("x.toml", &imported.toml, &context()).unwrap();
    let (a, b) = (&loaded.plan.jobs[0], &loaded.plan.jobs[1]);
    assert_eq!((&a.exec[2], &b.exec[2]), (&"x".to_owned(), &"y".to_owned()));
    for job in [a, b] {
        let value = |name: &str| job.env.iter().find(|it| it.0 == name).map(|it| it.1.clone());
        assert_eq!((value("A").as_deref(), value("B").as_deref()), (Some("1"), Some("2")));
    }
}

#[test]
fn a_second_file_is_refused_where_the_original_reads_one() {
    let (first, others) = (dir().join("Procfile"), vec![dir().join("Procfile")]);
    assert!(import_files(Format::Procfile, &first, &others, &context()).is_err());
}

#[test]
fn a_file_named_without_a_directory_is_in_the_one_we_are_in() {
    let text = "[program:a]\ncommand = %(here)s/a\n";
    let imported =
        import(Format::Supervisord, text, Path::new("supervisord.conf"), &context()).unwrap();
    let here = std::env::current_dir().unwrap();
    let wanted = format!("exec = \"{}/a\"", here.display());
    assert!(imported.toml.contains(&wanted), "{}", imported.toml);
}

#[test]
fn schedules_and_headers_of_process_compose_are_kept() {
    let text = r#"
processes:
  nightly:
    command: x
    schedule: { cron: "0 3 * * *", timezone: "UTC", max_concurrent: 2 }
  often:
    command: y
    schedule: { interval: "30s", run_on_start: true }
    depends_on: { nightly: { condition: process_completed } }
  leap:
    command: l
    readiness_probe:
      http_get: { port: 80, headers: { X-Token: "a $${b}" } }
"#;
    let imported = import(Format::ProcessCompose, text, Path::new("x.yaml"), &context()).unwrap();
    let toml = &imported.toml;
    for part in [
        r#"when = { cron = "0 3 * * *", tz = "UTC" }"#,
        r#"{ source = "nightly", once = "stopped" }, { interval = "30s" }"#,
        r#"headers = { X-Token = "a $${b}" }"#,
    ] {
        assert!(toml.contains(part), "{part}\n{toml}");
    }
    assert!(noted(&imported, "max_concurrent: a job runs once at a time"), "{toml}");
    assert!(parse("x.toml", toml, &context()).is_ok(), "{toml}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_text_gives_an_answer(text in any::<String>()) {
        for format in Format::ALL {
            survives(format, &text);
        }
    }

    #[test]
    fn any_tokens_give_a_file_that_loads_or_an_error(tokens in prop::collection::vec(prop::sample::select(vec![
        "[program:", "a", "b]", "]", "\n", "\n  ", "=", ":", ": ", "command", "numprocs=2\n", "%(", "process_num", ")d", "%%",
        "process_name", "environment", "\"", "'", ",", ";", " #", "processes:\n", "  x:\n", "    command: ", "sh", "depends_on:",
        "{", "}", "[", "- ", "&a ", "*a", "|", ">", "<<: ", "${", "$", "\\", "é", "\u{1}", "web: run\n", "autostart=false\n",
        "[group:g]\nprograms=a\n", "    replicas: 2\n", "    environment: [A=1]\n", "user=x\n", "directory=/\n", "[supvisors]\n", "address_list=a,b\n",
        "[rpcinterface:supvisors]\n", "supvisors_list=<n>h:1,", "core_identifiers=a\n", "stereotypes=b\n",
    ]), 0..50)) {
        for format in Format::ALL {
            survives(format, &tokens.concat());
        }
    }

    #[test]
    fn a_stretch_replaced_gives_a_file_that_loads_or_an_error(
        start in any::<prop::sample::Index>(), length in 0..30usize, put in "[ -~\n]{0,10}",
    ) {
        for (format, text) in [
            (Format::Procfile, include_str!("../testdata/Procfile")),
            (Format::Supervisord, include_str!("../testdata/supervisord.conf")),
            (Format::ProcessCompose, include_str!("../testdata/process-compose.yaml")),
        ] {
            let start = text.floor_char_boundary(start.index(text.len()));
            let end = text.ceil_char_boundary((start + length).min(text.len()));
            survives(format, &format!("{}{put}{}", &text[..start], &text[end..]));
        }
    }
}

#[test]
fn large_and_deep_files_end_in_reasonable_time() {
    for piece in
        ["a: b\n", "[program:x]\ncommand=x\n", "x=1\n", "- ", "[", "{a: ", "&a [*a, ", "web: x\n"]
    {
        let text = piece.repeat((256 << 10) / piece.len());
        for format in Format::ALL {
            survives(format, &text);
        }
    }
    let many: String = (0..3000).map(|n| format!("[program:p{n}]\ncommand=x\nk{n}=1\n")).collect();
    survives(Format::Supervisord, &many);
}
