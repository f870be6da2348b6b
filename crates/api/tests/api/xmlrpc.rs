//! XML-RPC: who gets in, and what is no call.

use crate::driven::{CONFIG, Node};
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(10);
/// `admin:a good password`
const LOGIN: &str = "Authorization: Basic YWRtaW46YSBnb29kIHBhc3N3b3Jk\r\n";
const STATE: &str = "<methodCall><methodName>supervisor.getState</methodName></methodCall>";

fn password(dir: &Path, text: &str) {
    let path = dir.join("password");
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("our own file");
}

fn node(address: SocketAddr) -> Node {
    Node::with(|dir| {
        password(dir, "a good password\n");
        let socket = dir.join("rpc.sock");
        format!(
            "{CONFIG}\n[api.xmlrpc]\nlisten = \"{address}\"\nsocket = \"{}\"\nuser = \"admin\"\n\
             password_file = \"password\"\n",
            socket.display()
        )
    })
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port")
}

fn connect(address: SocketAddr) -> TcpStream {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
                return stream;
            }
            Err(error) if Instant::now() > deadline => panic!("nobody listens: {error}"),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// The whole answer to a request.
fn answer(mut stream: impl Read + Write, path: &str, headers: &str, body: &str) -> (u16, String) {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{headers}\
         Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    // One that is too long may be refused before all of it is sent.
    let _ = stream.write_all(body.as_bytes());
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), text)
}

#[test]
fn nobody_gets_in_without_the_password_and_a_reload_reads_it_again() {
    let address = free();
    let node = node(address);
    let ask = |headers: &str| answer(connect(address), "/RPC2", headers, STATE);
    for headers in ["", "Authorization: Basic YWRtaW46bm8=\r\n", "Authorization: Basic %\r\n"] {
        let (status, text) = ask(headers);
        assert_eq!(status, 401, "{headers}");
        assert!(text.contains("Basic realm"), "{text}");
    }
    let (status, text) = ask(LOGIN);
    assert!(status == 200 && text.contains("<string>RUNNING</string>"), "{text}");
    assert_eq!(ask(&format!("{LOGIN}Origin: https://evil.example\r\n")).0, 403);
    // At the socket as well, where a login was asked for.
    let socket = || UnixStream::connect(node.0.join("rpc.sock")).expect("it listens");
    assert_eq!(answer(socket(), "/RPC2", "", STATE).0, 401);
    assert_eq!(answer(socket(), "/RPC2", LOGIN, STATE).0, 200);

    password(&node.0, "another\n");
    assert_eq!(node.post("/v1/reload", "").0, 200);
    let deadline = Instant::now() + PATIENCE;
    while ask(LOGIN).0 != 401 {
        assert!(Instant::now() < deadline, "the old password still lets in");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ask("Authorization: Basic YWRtaW46YW5vdGhlcg==\r\n").0, 200);
    let (_, status) = node.get("/v1/status");
    assert_eq!(status["xmlrpc"].as_array().map(Vec::len), Some(2), "{status}");
}

#[test]
fn what_is_no_call_is_refused_and_nothing_else_is_there() {
    let address = free();
    let _node = node(address);
    let ask = |path: &str, body: &str| answer(connect(address), path, LOGIN, body).0;
    let deep = format!(
        "<methodCall><methodName>x</methodName><params><param>{}{}</param></params></methodCall>",
        "<value><array><data>".repeat(30),
        "</data></array></value>".repeat(30)
    );
    for body in [
        "",
        "not xml",
        "<methodCall/>",
        "<!DOCTYPE x [<!ENTITY a 'b'>]><methodCall><methodName>&a;</methodName></methodCall>",
        "<methodCall><methodName>&nbsp;</methodName></methodCall>",
        "<methodCall><methodName>x</methodName><params><param><value><nil/></value></param></params></methodCall>",
        &deep,
    ] {
        assert_eq!(ask("/RPC2", body), 400, "{body}");
    }
    let long = format!("<methodCall><methodName>{}</methodName></methodCall>", "x".repeat(1 << 20));
    assert_eq!(ask("/RPC2", &long), 413);
    assert_eq!(ask("/RPC2", STATE), 200);
    for path in ["/", "/v1/status", "/v3/reload", "/logtail"] {
        assert_eq!(ask(path, STATE), 404, "{path}");
    }
    assert_eq!(ask("/mainlogtail", STATE), 405);
}
