//! `mainstay import` and `mainstay run --from`.

use mainstay_tests::{Scratch, Setup, binary};
use std::{
    path::PathBuf,
    process::{Command, Output},
};

fn written(scratch: &Scratch, name: &str, text: &str) -> PathBuf {
    let path = scratch.path().join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

fn import(args: &[&str]) -> Output {
    Command::new(binary()).arg("import").args(args).output().expect("the binary can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_procfile_is_imported_and_the_result_is_valid() {
    let scratch = Scratch::new();
    let procfile = written(&scratch, "Procfile", "web: sleep 1000\nworker: sh -c 'sleep 1000'\n");
    let output = import(&["procfile", &procfile.display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let toml = text(&output.stdout);
    assert!(toml.contains("[jobs.web]") && toml.contains("[jobs.worker]"), "{toml}");
    let ours = written(&scratch, "mainstay.toml", &toml);
    let checked = Command::new(binary()).arg("check").arg("-c").arg(ours).output();
    assert!(text(&checked.expect("the binary can be started").stdout).contains("2 jobs"));
}

#[test]
fn what_differs_is_told_and_ends_with_3_unless_it_is_accepted() {
    let scratch = Scratch::new();
    let file = "[program:a]\ncommand=sleep 1000\nstdout_logfile=/var/log/a.log\n";
    let path = written(&scratch, "supervisord.conf", file).display().to_string();
    let output = import(&["supervisord", &path]);
    assert_eq!(output.status.code(), Some(3));
    let told = text(&output.stderr);
    assert!(told.starts_with(&format!("mainstay: {path}:3: stdout_logfile")), "{told}");
    assert!(text(&output.stdout).contains("# line 3: stdout_logfile"));
    assert_eq!(import(&["supervisord", &path, "--accept"]).status.code(), Some(0));
    let json = import(&["supervisord", &path, "--json"]);
    assert_eq!(json.status.code(), Some(3));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["notes"][0]["line"], 3);

    let node = Setup::import("supervisord", path.as_ref()).launch_in(scratch);
    node.running("a");
    assert!(node.stderr().contains(":3: stdout_logfile"), "{}", node.stderr());
}

#[test]
fn what_cannot_be_imported_is_told_with_its_place_and_nothing_is_run() {
    let scratch = Scratch::new();
    for (format, name, file, told) in [
        ("process-compose", "compose.yaml", "processes: [\n", "compose.yaml"),
        ("supervisord", "s.conf", "[program:a]\ncommand=id\nuser=%USER%\n", "s.conf:3"),
        (
            "supervisord",
            "n.conf",
            "[program:a]\ncommand=id\nnumprocs=%(ENV_GONE)s\n",
            "GONE is not set",
        ),
    ] {
        let path = written(&scratch, name, file);
        let output = import(&[format, &path.display().to_string()]);
        assert_eq!(output.status.code(), Some(78), "{name}");
        assert!(text(&output.stderr).contains(told), "{}", text(&output.stderr));
        assert_eq!(output.stdout, b"");
        let mut node = Setup::import(format, &path).launch();
        assert_eq!(node.wait().code(), Some(78), "{name}");
        assert!(node.stderr().contains(told), "{}", node.stderr());
    }
}

#[test]
fn a_foreign_file_runs_as_it_is_and_is_read_again_on_reload() {
    let scratch = Scratch::new();
    let file = written(&scratch, "Procfile", "web: sleep 1000\n");
    let node = Setup::import("procfile", &file).launch_in(scratch);
    let web = node.running("web");
    std::fs::write(&file, "web: sleep 1000\nworker: sleep 1000\n").expect("a file");
    node.must(&["reload"]);
    node.running("worker");
    assert_eq!(node.running("web"), web);
}

/// A list of nodes and rules become a fleet that `check` accepts once there is a key, and that runs.
#[test]
fn a_configuration_of_supvisors_is_imported_checked_and_run() {
    let scratch = Scratch::new();
    let pid = std::process::id();
    let net = format!("127.{}.{}", 201 + (pid >> 8 & 0x1f), pid & 0xff);
    let conf = "[rpcinterface:supvisors]\nsupvisors_list=<n1>NET.1:1,<n2>NET.2:1\n\
                core_identifiers=n1\nrules_files=rules.xml\n[program:web]\ncommand=sleep 1000\n\
                autostart=false\n[program:own]\ncommand=sleep 1000\n";
    let rules = "<root><application name=\"web\"><start_sequence>1</start_sequence><programs>\
                 <program name=\"web\"><start_sequence>1</start_sequence></program></programs>\
                 </application></root>";
    written(&scratch, "rules.xml", rules);
    let path =
        written(&scratch, "supervisord.conf", &conf.replace("NET", &net)).display().to_string();
    let output = import(&["supvisors", &path]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("mainstay fleet key"), "{}", text(&output.stderr));
    let toml = text(&import(&["supvisors", &path, "--accept"]).stdout);
    let ours = written(&scratch, "mainstay.toml", &toml);
    let check = |key: &std::path::Path| {
        let mut command = Command::new(binary());
        command.arg("check").arg("-c").arg(&ours).env("MAINSTAY_FLEET_KEY", key);
        command.output().expect("the binary can be started")
    };
    let key = scratch.path().join("key");
    let without = check(&key);
    assert_eq!(without.status.code(), Some(78));
    assert!(
        text(&without.stderr).contains("mainstay fleet key --out"),
        "{}",
        text(&without.stderr)
    );
    let made = Command::new(binary()).args(["fleet", "key", "--out"]).arg(&key).output();
    assert!(made.expect("the binary can be started").status.success());
    let checked = check(&key);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));

    let setup = Setup::import("supvisors", path.as_ref()).env("MAINSTAY_FLEET_KEY", &key);
    let node = setup.launch_in(scratch);
    node.running("own");
    node.running("web");
    assert!(node.stderr().contains("the nodes reach each other"), "{}", node.stderr());
}

/// The file and its templates are written side by side, pass `check`, and go over nothing.
#[test]
fn a_directory_of_config_o_mat_is_written_with_its_templates() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("configurator");
    std::fs::create_dir_all(dir.join("templates")).expect("a directory");
    let conf = "profiles: {app: {application: shop, environment: prod, profile: web}}\n\
                templates: {ini: {src: app.ini, dst: app.ini}}\n\
                services: {web: {systemd_unit: web, restart_mode: restart, templates: [ini]}}\n";
    std::fs::write(dir.join("a.conf"), conf).expect("a file");
    let erb = "port = <%= profiles[:app].contents[:port] %>\n";
    std::fs::write(dir.join("templates/app.ini"), erb).expect("a file");
    let (from, out) = (dir.display().to_string(), scratch.path().join("out"));
    let args = ["config-o-mat", &from, "--out", out.to_str().expect("UTF-8")];
    let output = import(&args);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("web.service is reloaded"), "{}", text(&output.stderr));
    assert_eq!(output.stdout, b"");
    let made = std::fs::read_to_string(out.join("templates/app.ini.j2")).expect("a file");
    assert_eq!(made, "port = {{ app.port }}\n");
    let checked = Command::new(binary()).arg("check").arg("-c").arg(&out).output();
    let checked = checked.expect("the binary can be started");
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));

    let again = import(&args);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("is there already"), "{}", text(&again.stderr));
    let printed = import(&["config-o-mat", &from]);
    assert!(text(&printed.stderr).contains("--out DIR"), "{}", text(&printed.stderr));
    assert!(text(&printed.stdout).contains("[templates.ini]"));
    let mut node = Setup::import("config-o-mat", &dir).launch();
    assert_eq!(node.wait().code(), Some(78));
    assert!(node.stderr().contains("mainstay import config-o-mat"), "{}", node.stderr());
}
