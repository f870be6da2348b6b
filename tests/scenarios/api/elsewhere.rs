//! `[api] listen` and `--url`.

use mainstay_tests::{Command, Node, Scratch, Setup, binary, until};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use serde_json::Value;
use std::{
    fs,
    net::{SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Output, Stdio},
};

const JOB: &str = "[jobs.web]\nexec = [\"sh\", \"-c\", \"echo hello; exec sleep 1000\"]\n";

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port")
}

fn private(path: &Path, text: &str) {
    fs::write(path, text).expect("a scratch directory");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("our own file");
}

/// A command that knows of a node only what is typed.
fn command(url: &str, args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).args(["--url", url]).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn ask(url: &str, args: &[&str]) -> Output {
    command(url, args).output().expect("the binary can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn with_token(address: SocketAddr, more: &str) -> (Node, String) {
    let scratch = Scratch::new();
    let token = scratch.path().join("token");
    private(&token, "a-token-of-this-scenario\n");
    let api = format!("[api]\nlisten = \"{address}\"\ntoken_file = \"token\"\n");
    let node = Setup::config(format!("{api}{more}{JOB}")).launch_in(scratch);
    node.wait_until_ready();
    (node, token.display().to_string())
}

#[test]
fn every_command_works_from_elsewhere_with_the_token() {
    let address = free();
    let (mut node, token) = with_token(address, "");
    let url = format!("http://{address}");
    let must = |args: &[&str]| {
        let mut all = args.to_vec();
        all.extend(["--token-file", &token]);
        let output = ask(&url, &all);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    node.until_logged("web", "hello");
    assert!(must(&["status"]).contains("RUNNING"));
    assert_eq!(must(&["logs", "web"]), "hello\n");
    assert_eq!(must(&["stop", "web"]), "web: STOPPED\n");
    assert!(must(&["why", "web"]).contains("shall rest"));
    assert!(must(&["start", "web"]).starts_with("web: RUNNING"));
    assert!(must(&["events"]).contains("healthy"));
    assert!(must(&["plan"]).contains("nothing would change"));
    assert!(must(&["disable", "web"]).contains("STOPPED"));
    assert!(must(&["enable", "web"]).contains("RUNNING"));
    assert_eq!(must(&["shutdown"]), "the run has ended\n");
    node.wait();

    let output = ask(&url, &["status", "--token-file", &token]);
    assert_eq!(output.status.code(), Some(4), "nobody is there any more");
}

#[test]
fn who_has_no_token_is_told_how_to_name_one() {
    let address = free();
    let (_node, _) = with_token(address, "");
    let output = ask(&format!("http://{address}"), &["status"]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("token") && told.contains("--token-file"), "{told}");
    let output = Command::new(binary()).args(["status", "--ca", "x"]).output().expect("started");
    assert_eq!(output.status.code(), Some(2), "--ca without --url");
}

#[test]
fn certificates_prove_both_sides() {
    let scratch = Scratch::new();
    let file = |name: &str| scratch.path().join(name).display().to_string();
    let mut params = CertificateParams::new(Vec::<String>::new()).expect("params");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"));
    let ca = ca.expect("an authority");
    fs::write(file("ca.pem"), ca.pem()).expect("a scratch directory");
    let issue = |name: &str, host: &str, usage| {
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("params");
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &ca).expect("a certificate").pem();
        fs::write(file(&format!("{name}.pem")), cert).expect("a scratch directory");
        private(Path::new(&file(&format!("{name}.key"))), &key.serialize_pem());
    };
    issue("node", "127.0.0.1", ExtendedKeyUsagePurpose::ServerAuth);
    issue("me", "me", ExtendedKeyUsagePurpose::ClientAuth);
    let (address, [authority, cert, key]) = (free(), ["ca.pem", "me.pem", "me.key"].map(file));
    let node = Setup::config(format!(
        "[api]\nlisten = \"{address}\"\n\
         tls = {{ cert = \"node.pem\", key = \"node.key\", client_ca = \"ca.pem\" }}\n{JOB}"
    ));
    let node = node.launch_in(scratch);
    node.wait_until_ready();
    node.running("web");
    let url = format!("https://{address}");
    let with = |more: &[&str]| ask(&url, &[&["status"][..], more].concat());
    let fine = with(&["--ca", &authority, "--cert", &cert, "--key", &key]);
    assert!(fine.status.success(), "{}", text(&fine.stderr));
    let nameless = with(&["--ca", &authority]);
    assert_eq!(nameless.status.code(), Some(1));
    assert!(text(&nameless.stderr).contains("--cert"), "{}", text(&nameless.stderr));
    // The authority of the client is no authority of this machine.
    let trustless = with(&["--cert", &cert, "--key", &key]);
    assert_eq!(trustless.status.code(), Some(1));
    assert!(text(&trustless.stderr).contains("--ca"), "{}", text(&trustless.stderr));
}

#[test]
fn a_node_with_a_certificate_that_does_not_serve_is_not_taken_for_an_absent_one() {
    for (is_ca, host, hint) in [
        (IsCa::Ca(BasicConstraints::Unconstrained), "127.0.0.1", "CA:FALSE"),
        (IsCa::ExplicitNoCa, "elsewhere", "not valid for name"),
    ] {
        let scratch = Scratch::new();
        let file = |name: &str| scratch.path().join(name);
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("params");
        params.is_ca = is_ca;
        let own = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"));
        let own = own.expect("a certificate");
        fs::write(file("node.pem"), own.pem()).expect("a scratch directory");
        private(&file("node.key"), &own.key().serialize_pem());
        private(&file("token"), "0123456789abcdef\n");
        let (address, cert, token) = (free(), file("node.pem"), file("token"));
        let node = Setup::config(format!(
            "[api]\nlisten = \"{address}\"\ntoken_file = \"token\"\n\
             tls = {{ cert = \"node.pem\", key = \"node.key\" }}\n{JOB}"
        ));
        let node = node.launch_in(scratch);
        node.wait_until_ready();
        let [cert, token] = [cert, token].map(|path| path.display().to_string());
        let url = format!("https://{address}");
        let refused = ask(&url, &["status", "--ca", &cert, "--token-file", &token]);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{told}");
        assert!(told.contains(hint), "{told}");
    }
}

#[test]
fn a_client_elsewhere_hardly_notices_that_an_agent_dies() {
    let address = free();
    let (node, token) = with_token(address, "");
    let url = format!("http://{address}");
    for _ in 0..3 {
        node.kill_agent();
        let output = ask(&url, &["status", "--json", "--token-file", &token]);
        let status: Value = serde_json::from_slice(&output.stdout).expect("an answer");
        assert_eq!(status["node"], node.status()["node"]);
    }
}

#[test]
fn a_port_in_use_keeps_no_job_from_running_and_is_taken_once_it_is_free() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let (node, token) = with_token(address, "");
    node.running("web");
    node.until_told("in use");
    drop(taken);
    node.until_told(&format!("listens on {address}"));
    let output = ask(&format!("http://{address}"), &["status", "--token-file", &token]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_node_that_listens_does_not_end_with_its_jobs() {
    let address = free();
    let (node, _) = with_token(address, "[jobs.short]\nexec = \"true\"\n");
    node.until_state("short", "EXITED");
    node.must(&["stop", "web"]);
    until("it is still there", || (node.status()["state"] == "running").then_some(()));
}
