//! ContainerPilot files: what each becomes, and what is said about those that are wrong.
//! `MAINSTAY_GOLDEN=write` writes both anew.

use mainstay_config::{Context, parse};
use mainstay_import::{Format, Imported, import, import_file};
use proptest::prelude::*;
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/containerpilot")
}

/// What the files are rendered over.
fn context() -> Context {
    let mut ctx = super::context();
    for (name, value) in [
        ("CONSUL", "consul.example"),
        ("BACKENDS", "api,auth"),
        ("PORT", "8080"),
        ("BAD_PORT", "eighty"),
        ("JAVA_OPTS", "-Xmx=1g -Dx=y"),
    ] {
        ctx.env.insert(name.to_owned(), value.to_owned());
    }
    ctx
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "json5"));
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

/// The differences to what is written beside each file.
fn compared(dir: &Path, ending: &str, told: impl Fn(&Path) -> String) {
    let write = std::env::var_os("MAINSTAY_GOLDEN").is_some_and(|it| it == "write");
    let mut different = Vec::new();
    for path in files(dir) {
        let told = told(&path).replace(&format!("{}/", dir.display()), "");
        let expected = path.with_extension(ending);
        if write {
            fs::write(&expected, &told).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != told {
            different.push(format!("{}:\n{told}", path.display()));
        }
    }
    assert!(different.is_empty(), "not as expected:\n{}", different.join("\n"));
}

#[test]
fn files_become_configurations_that_load() {
    compared(&dir(), "expected.toml", |path| {
        let imported = import_file(Format::ContainerPilot, path, &context());
        let imported = imported.unwrap_or_else(|errors| panic!("{}:\n{errors}", path.display()));
        assert!(imported.notes.iter().all(|note| !note.message.is_empty()));
        loads(&imported);
        imported.toml.replace(env!("CARGO_PKG_VERSION"), "VERSION")
    });
}

#[test]
fn every_mistake_is_told_at_its_place_in_the_file() {
    for kind in ["jobs", "text", "when"] {
        compared(&dir().join("wrong").join(kind), "expected", told);
    }
}

fn told(path: &Path) -> String {
    let errors = import_file(Format::ContainerPilot, path, &context())
        .expect_err(&path.display().to_string());
    for error in &errors {
        assert!(error.help.is_some() && error.spot.is_some(), "{error:?}");
    }
    format!("{errors}\n")
}

#[test]
fn the_example_is_one_that_runs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/containerpilot.json5");
    let imported = import_file(Format::ContainerPilot, &path, &context());
    let imported = imported.unwrap_or_else(|errors| panic!("{errors}"));
    loads(&imported);
    assert!(imported.toml.contains("[jobs.report-2]"), "{}", imported.toml);
}

fn loads(imported: &Imported) {
    if let Err(errors) = parse("imported.toml", &imported.toml, &context()) {
        panic!("{}\n{errors}", imported.toml);
    }
}

fn imported(text: &str) -> Imported {
    import(Format::ContainerPilot, text, Path::new("f.json5"), &context())
        .unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}

/// The lines of the job made of this, without its name.
fn job(text: &str) -> String {
    let toml = imported(&format!(
        "{{ consul: 'c:8500', jobs: [ {{ name: 'x', {text} }}, {{ name: 'a', exec: 'a' }} ] }}"
    ))
    .toml;
    let (_, rest) = toml.split_once("[jobs.x]\n").unwrap();
    rest.split("\n\n").next().unwrap().trim_end().to_owned()
}

#[test]
fn restarts_mean_what_they_meant() {
    for (text, expected) in [
        ("", "restart = \"never\""),
        ("restarts: 'never'", "restart = \"never\""),
        ("restarts: 0", "restart = \"never\""),
        ("restarts: 3", "restart = { on = \"any\", limit = 3 }"),
        ("restarts: '3'", "restart = { on = \"any\", limit = 3 }"),
        ("restarts: 2.9", "restart = { on = \"any\", limit = 2 }"),
        ("restarts: 'unlimited'", "restart = \"always\""),
    ] {
        let expected = format!("exec = [\"a\"]\n{expected}");
        assert_eq!(job(&format!("exec: 'a', {text}")), expected, "{text}");
    }
}

#[test]
fn types_are_weak_and_keys_are_found_in_any_case() {
    for (text, expected) in [
        ("exec: ['a', 1, true, 1.5]", "exec = [\"a\", \"1\", \"true\", \"1.5\"]"),
        ("exec: ' a  b '", "exec = [\"a\", \"\", \"b\"]"),
        ("EXEC: 'a'", "exec = [\"a\"]"),
        ("exec: 'a', timeout: '90'", "timeout = \"1m30s\""),
        ("exec: 'a', timeout: 90", "timeout = \"1m30s\""),
        ("exec: 'a', timeout: '1.5s'", "timeout = \"1s500ms\""),
        ("exec: 'a', Timeout: '100us1s'", "timeout = \"1s1ms\""),
        ("exec: 'a', timeout: ''", "exec = [\"a\"]\nrestart = \"never\""),
        ("exec: 'a', logging: { RAW: '1' }", "log = { format = \"raw\", output = \"same\" }"),
        ("exec: 'a', logging: { raw: 0 }", "restart = \"never\""),
        (
            "exec: 'a', health: { exec: 'b', interval: '2', ttl: 5.9 }",
            "health = { exec = [\"b\"], interval = \"2s\", output = \"forward\" }",
        ),
        ("exec: 'a', uid: 1000, gid: '5'", "user = 1000\ngroup = 5"),
        ("exec: 'a', when: null, port: 0", "restart = \"never\""),
        ("exec: 'a${b}'", "exec = [\"a$${b}\"]"),
    ] {
        assert!(job(text).contains(expected), "{text}:\n{}", job(text));
    }
}

#[test]
fn when_is_read_in_all_its_forms() {
    for (text, expected) in [
        (
            "{ source: 'a', once: 'exitSuccess', timeout: '60s' }",
            "when = { source = \"a\", once = \"exitSuccess\", timeout = \"1m\" }",
        ),
        ("{ source: 'a', event: 'healthy' }", "when = { source = \"a\", once = \"healthy\" }"),
        ("{ source: 'a', each: 'exitFailed' }", "when = { source = \"a\", each = \"exitFailed\" }"),
        (
            "{ source: 'a', once: 'stopping', timeout: 5 }",
            "when = { source = \"a\", once = \"stopping\" }",
        ),
        (
            "{ source: 'a', once: 'timerExpired' }",
            "when = { source = \"a\", once = \"timerExpired\" }",
        ),
        ("{ source: 'SIGHUP' }", "when = { each = \"SIGHUP\" }"),
        ("{ source: 'SIGUSR2', once: 'healthy' }", "when = { each = \"SIGUSR2\" }"),
        ("{ interval: '10s' }", "when = { interval = \"10s\" }\ntimeout = \"10s\""),
        ("{ interval: 10, source: 'a' }", "when = { interval = \"10s\" }"),
        ("{ each: 'enterMaintenance' }", "when = { each = \"enterMaintenance\" }"),
        ("{ source: 'global', once: 'exitMaintenance' }", "when = { once = \"exitMaintenance\" }"),
        ("{ event: 'startup' }", "restart = \"never\""),
        ("{ once: 'startup', timeout: '1s' }", "when = { once = \"startup\", timeout = \"1s\" }"),
    ] {
        let told = job(&format!("exec: 'b', when: {text}"));
        assert!(told.contains(expected), "{text}:\n{told}");
        assert_eq!(told.contains("when ="), expected.contains("when ="), "{text}:\n{told}");
    }
}

#[test]
fn an_interval_with_restarts_runs_so_often() {
    let told = job("exec: 'b', when: { interval: '10s' }, restarts: 2");
    assert!(!told.contains("when"), "{told}");
    assert!(
        told.contains(
            "restart = { on = \"any\", delay = \"10s\", max_delay = \"10s\", limit = 2, from = \"start\" }"
        )
    );
    assert!(
        job("exec: 'b', when: { interval: '10s' }, restarts: 'unlimited'").contains("when = {")
    );
    assert!(!job("exec: 'b', when: { interval: '10s' }, restarts: 0").contains("when"));
}

#[test]
fn consul_is_found_as_before() {
    let discovery = |consul: &str, env: &[(&str, &str)]| {
        let mut ctx = context();
        ctx.env.extend(env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
        let text = format!("{{ consul: {consul}, jobs: [{{ name: 'a', exec: 'a' }}] }}");
        let told = import(Format::ContainerPilot, &text, Path::new("f"), &ctx).unwrap().toml;
        let (_, rest) = told.split_once("[discovery]\nengine = \"consul\"\n").unwrap();
        rest.split("\n\n").next().unwrap().to_owned()
    };
    for (consul, expected) in [
        ("'localhost:8500'", "address = \"localhost:8500\""),
        ("'http://c:1/'", "address = \"c:1\""),
        ("'https://c:8501'", "address = \"c:8501\"\nscheme = \"https\""),
        ("'[::1]:8500'", "address = \"[::1]:8500\""),
        ("'c'", "address = \"c:80\""),
        ("':8500'", "address = \"127.0.0.1:8500\""),
        ("''", "address = \"127.0.0.1:8500\""),
        ("{}", "address = \"127.0.0.1:8500\""),
        ("{ address: 'c:1', scheme: 'https' }", "address = \"c:1\"\nscheme = \"https\""),
        ("{ address: 'c:1', token: 't' }", "address = \"c:1\"\ntoken = \"t\""),
        (
            "{ address: 'https://c:1', tls: { cafile: '/a', capath: '/b', clientcert: '/c', clientkey: '/d', servername: 'e', verify: true } }",
            "address = \"c:1\"\nscheme = \"https\"\ntls = { ca_file = \"/a\", ca_path = \"/b\", cert = \"/c\", key = \"/d\", server_name = \"e\", verify = true }",
        ),
    ] {
        assert_eq!(discovery(consul, &[]), expected, "{consul}");
    }
    let env = [
        ("CONSUL_HTTP_TOKEN", "secret"),
        ("CONSUL_CACERT", "/ca"),
        ("CONSUL_HTTP_SSL_VERIFY", "0"),
        ("CONSUL_HTTP_ADDR", "https://other:8501"),
    ];
    // The variable stays a variable: nothing that is secret is printed.
    assert_eq!(
        discovery("{ token: 't', tls: { verify: true } }", &env),
        "address = \"other:8501\"\nscheme = \"https\"\ntoken = \"${CONSUL_HTTP_TOKEN:-t}\"\n\
         tls = { ca_file = \"${CONSUL_CACERT}\", verify = false }"
    );
}

#[test]
fn a_file_without_consul_runs_unless_something_needs_it() {
    for consul in ["", "consul: false,", "consul: null,"] {
        let told = imported(&format!("{{ {consul} jobs: [{{ name: 'a', exec: 'a' }}] }}")).toml;
        assert!(!told.contains("[discovery]"), "{told}");
    }
}

#[test]
fn the_stop_timeout_is_a_limit_for_all() {
    for (text, expected) in [
        ("", "stop_timeout = \"5s\""),
        ("stopTimeout: 0,", "stop_timeout = \"5s\""),
        ("stopTimeout: '30',", "stop_timeout = \"30s\""),
        ("stopTimeout: -1,", "stop_timeout = \"0s\""),
    ] {
        let told = imported(&format!("{{ {text} jobs: [{{ name: 'a', exec: 'a' }}] }}")).toml;
        assert!(told.contains(expected), "{text}\n{told}");
    }
    // A job that runs when another one stops has its own time on top.
    let told = imported(
        "{ jobs: [ { name: 'a', exec: 'a', stopTimeout: '20s' }, \
         { name: 'b', exec: 'b', timeout: '1m', when: { source: 'a', once: 'stopping' } } ] }",
    );
    assert!(told.toml.contains("stop_timeout = \"25s\""), "{}", told.toml);
    assert!(told.toml.contains("timeout = \"20s\""), "{}", told.toml);
}

#[test]
fn names_that_are_none_here_are_mapped_and_found() {
    let told = imported(
        "{ consul: 'c:1', jobs: [ { name: 'my.job 1', exec: 'a' }, \
         { name: 'global', exec: 'a', port: 1, health: { interval: 1, ttl: 2 } }, \
         { name: '/bin/to/test-Case--now.sh', exec: 'a' }, \
         { name: 'b', exec: 'b', when: { source: 'my.job 1', once: 'exitSuccess' } } ] }",
    )
    .toml;
    for part in [
        "[jobs.my-job-1]",
        "source = \"my-job-1\"",
        "[jobs.global_job]",
        "service = \"global\"",
        "[jobs.test-Case--now]",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
}

#[test]
fn the_second_of_one_name_gets_another_and_that_is_said() {
    let told = imported(
        "{ consul: 'c:1', jobs: [ { name: 'web', exec: 'a' },\n\
         { name: 'web', exec: 'b', port: 80, health: { interval: 1, ttl: 5 } },\n\
         { name: 'c', exec: 'c', when: { source: 'web', once: 'exitSuccess' } } ],\n\
         watches: [ { name: 'db', interval: 1 }, { name: 'db', interval: 1, tag: 'a' } ] }",
    )
    .toml;
    for part in [
        "[jobs.web]\nexec = [\"a\"]",
        "[jobs.web_2]\nexec = [\"b\"]",
        "service = \"web\"",
        "when = { source = \"web\", once = \"exitSuccess\" }",
        "# line 2: there is a job 'web' already, at f.json5:1: this one is 'web_2' here",
        "[watches.db_2]\nservice = \"db\"",
        "there is a watch 'db' already",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
}

#[test]
fn a_check_with_a_mistake_is_told_alone() {
    let text = "{ jobs: [ { name: 'a', health: { exec: 'b', interval: 1 } } ] }";
    let errors = import(Format::ContainerPilot, text, Path::new("f"), &context()).unwrap_err();
    let told: Vec<String> = errors.iter().map(|error| error.message.clone()).collect();
    assert_eq!(told, ["health of job 'a' has no ttl"]);
}

#[test]
fn a_directory_is_one_configuration() {
    let dir = std::env::temp_dir().join(format!("mainstay-pilot-d-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let put = |name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
    put("10-web.json5", "{ control: { socket: '/s' }, jobs: [\n { name: 'web', exec: 'web' } ] }");
    put(
        "20-job.json",
        "{ jobs: [\n\n { name: 'job', exec: ['{{ .PORT }}'], when: { source: 'web', once: 'healthy' } } ] }",
    );
    put(".hidden.json5", "nonsense");
    put("README", "nonsense");
    let whole = || import_file(Format::ContainerPilot, &dir, &context());
    let told = whole().unwrap();
    loads(&told);
    for part in ["[jobs.web]", "[jobs.job]\nexec = [\"8080\"]", "source = \"web\""] {
        assert!(told.toml.contains(part), "{part}\n{}", told.toml);
    }
    let written: Vec<&String> = told.places.iter().map(|(_, at)| at).collect();
    assert!(written.iter().any(|at| at.ends_with("20-job.json:3")), "{written:?}");
    let found = mainstay_import::containerpilot_socket(&dir, &context()).unwrap();
    assert_eq!(found, Path::new("/s"));
    // A mistake is told in the file that has it, and a key that is in two of them is one.
    put("30-more.json5", "{ control: { socket: '/t' },\n jobs: [ { name: 'x', exce: 'x' } ] }");
    let told = whole().unwrap_err().to_string();
    for part in ["30-more.json5:1:", "'control'", "30-more.json5:2:", "'exce'"] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_secret_in_a_variable_is_not_cut_and_that_is_said() {
    let told = imported("{ jobs: [{ name: 'a', exec: ['java', '{{ .JAVA_OPTS }}'] }] }").toml;
    assert!(told.contains("\"-Xmx=1g -Dx=y\"") && told.contains("3.8.0 cut it"), "{told}");
}

#[test]
fn the_socket_is_found_however_broken_the_file_is() {
    let dir = std::env::temp_dir().join(format!("mainstay-socket-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join("f.json5");
    for (text, expected) in [
        ("{ control: { socket: '/s' }, jobs: [{ nme: 1 }] }", "/s"),
        ("{ control: { socket: '/{{ .PORT }}' } }", "/8080"),
        ("{ jobs: [", "/var/run/containerpilot.socket"),
        ("{ jobs: [ } , control: { socket: '/s' }", "/s"),
        ("{ \"control\": { \"socket\": \"/s\" }, {{ if }}", "/s"),
        ("{}", "/var/run/containerpilot.socket"),
        ("{ control: { socket: '' } }", "/var/run/containerpilot.socket"),
    ] {
        fs::write(&path, text).unwrap();
        let found = mainstay_import::containerpilot_socket(&path, &context()).unwrap();
        assert_eq!(found, Path::new(expected), "{text}");
    }
    fs::remove_dir_all(&dir).unwrap();
}

fn survives(text: &str) {
    let begun = Instant::now();
    match import(Format::ContainerPilot, text, Path::new("f"), &context()) {
        Ok(imported) => loads(&imported),
        Err(errors) => {
            for error in &errors {
                if let Some(spot) = &error.spot {
                    assert!(spot.line <= text.split('\n').count(), "{text:?} {error:?}");
                }
            }
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
}

const WHOLE: &str = include_str!("../containerpilot/every-key.json5");

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_text_gives_an_answer(text in any::<String>()) {
        survives(&text);
    }

    #[test]
    fn any_tokens_give_an_answer(tokens in prop::collection::vec(prop::sample::select(vec![
        "{", "}", "[", "]", ":", ",", "'", "\"", "\n", "//", "/*", "*/", "jobs", "name", "exec", "when", "source", "once",
        "each", "interval", "port", "health", "ttl", "consul", "{{", "}}", "{{ .A }}", "{{ if .A }}", "{{ end }}", "{{ range loop 3 }}",
        "{{- ", " -}}", "1", "-1", "1e309", "0x", "null", "true", "'10s'", "\\", "\\u", "é", "\u{0}", "$", "${", "{ name: 'a', exec: 'a' }",
    ]), 0..60)) {
        survives(&tokens.concat());
    }

    #[test]
    fn any_tokens_in_a_job_give_an_answer(tokens in prop::collection::vec(prop::sample::select(vec![
        "port: 1,", "port: '{{ .PORT }}',", "exec: 'a',", "exec: ['a', 'b'],", "restarts: 3,", "restarts: 'unlimited',",
        "timeout: '1s',", "stopTimeout: '1s',", "when: { interval: 1 },", "when: { source: 'w', each: 'stopping' },",
        "when: { source: 'watch.db', once: 'healthy' },", "when: {},", "health: { interval: 1, ttl: 2 },",
        "health: { exec: 'c', interval: 1, ttl: 2 },", "tags: ['a'],", "tags: '${A}',", "initial_status: 'passing',",
        "interfaces: 'eth1',", "logging: { raw: true },", "meta: { a: 'b' },", "consul: {},", "uid: 1,",
    ]), 0..8)) {
        survives(&format!("{{ consul: 'c:1', watches: [{{ name: 'db', interval: 1 }}], jobs: [ {{ name: 'web', {} }}, {{ name: 'w', exec: 'w' }} ] }}", tokens.concat()));
    }

    #[test]
    fn a_stretch_replaced_gives_an_answer(
        start in any::<prop::sample::Index>(), length in 0..30usize, put in "[ -~\n]{0,10}",
    ) {
        let start = WHOLE.floor_char_boundary(start.index(WHOLE.len()));
        let end = WHOLE.ceil_char_boundary((start + length).min(WHOLE.len()));
        survives(&format!("{}{put}{}", &WHOLE[..start], &WHOLE[end..]));
    }
}

#[test]
fn large_files_end_in_reasonable_time() {
    for piece in
        ["{", "[", "{{ .A }}", "{{ if .A }}", "// x\n", "'", "{ name: 'a' },", "{{ end }}", "\\"]
    {
        survives(&piece.repeat((256 << 10) / piece.len()));
    }
    let jobs: String = (0..5000)
        .map(|n| {
            format!(
                "{{ name: 'j{n}', exec: 'x', when: {{ source: 'j{}', once: 'healthy' }} }},\n",
                n + 1
            )
        })
        .collect();
    survives(&format!("{{ jobs: [{jobs}] }}"));
    survives("{ jobs: [ {{ range loop 9000 }} { name: 'j{{ . }}', exec: 'x' }, {{ end }} ] }");
}
