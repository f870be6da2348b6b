//! Foreign files become configurations that load, with a word about what changes.
//! `MAINSTAY_GOLDEN=write` writes the expected ones anew.

use super::context;
use mainstay_config::parse;
use mainstay_import::{Format, Imported, import, import_file};
use proptest::prelude::*;
use std::{
    fs,
    path::{Path, PathBuf},
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
    let broken = imported.notes.iter().find(|note| note.message.contains("[program:broken]"));
    assert!(broken.is_some_and(|note| note.message.contains("single quote")));
    let stray = imported.notes.iter().find(|note| note.file.ends_with("extra.conf"));
    assert!(stray.is_some_and(|note| note.line == Some(5)));
}

#[test]
fn a_process_compose_file_becomes_jobs_that_wait_and_are_checked() {
    let imported = as_expected(Format::ProcessCompose, "process-compose.yaml");
    assert!(imported.toml.contains("instances = 3"));
    assert!(imported.toml.contains("main = true"));
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
            ctx.env.insert(word[..end].to_owned(), "x".to_owned());
        }
        if let Err(errors) = parse("x.toml", &imported.toml, &ctx) {
            panic!("{text:?}\n{}\n{errors}", imported.toml);
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
}

/// What these files become, of which the first is imported.
fn of_files(format: Format, files: &[(&str, &str)]) -> (PathBuf, Imported) {
    let dir = std::env::temp_dir().join(format!("mainstay-import-{}", std::process::id()));
    for (name, text) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let imported = import_file(format, &dir.join(files[0].0), &context());
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
    let (dir, imported) = of_files(Format::Supervisord, &files);
    let toml = &imported.toml;
    assert!(toml.contains(&format!("exec = \"{}/a\"", dir.display())), "{toml}");
    assert!(toml.contains(&format!("exec = \"{}/conf.d/b\"", dir.display())), "{toml}");
    assert!(toml.contains("start_seconds = 9") && !toml.contains("start_seconds = 7"), "{toml}");
    assert!(noted(&imported, "[program:a] is there again"), "{toml}");
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
fn a_group_says_which_of_its_programs_it_leaves_out() {
    let text = "[program:a]\ncommand=a\n[fcgi-program:f]\ncommand=f\n\
                [group:one]\nprograms=a,nope,f\n[group:two]\nprograms=a\n";
    let imported = import(Format::Supervisord, text, Path::new("/etc/x.conf"), &context()).unwrap();
    for part in [
        "[group:one]: 'nope' is left out: there is no such program",
        "[group:one]: 'f' is left out: it is a fcgi-program",
        "[group:two]: 'a' is left out: it is in [group:one] already",
        "[group:two] is left out: it has no programs",
    ] {
        assert!(noted(&imported, part), "{part}\n{}", imported.toml);
    }
    assert!(parse("x.toml", &imported.toml, &context()).is_ok(), "{}", imported.toml);
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
  never:
    command: z
    schedule: { cron: "every day" }
  leap:
    command: l
    schedule: { cron: "0 0 31 2 *" }
    readiness_probe:
      http_get: { port: 80, headers: { X-Token: "a ${b}", "no name": c } }
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
    for part in ["'max_concurrent' is not mapped", "schedule is left out", "header 'no name'"] {
        assert!(noted(&imported, part), "{part}\n{toml}");
    }
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
        "[group:g]\nprograms=a\n", "    replicas: 2\n", "    environment: [A=1]\n", "user=x\n", "directory=/\n",
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
