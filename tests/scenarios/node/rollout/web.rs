//! Profiles that come over HTTP: from a URL, and from an AppConfig Agent.

use super::{rendered, until_rollout};
use mainstay_tests::{Node, RolledOut, until};
use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// A server of one document, on loopback, until the test is over.
#[derive(Debug, Clone)]
struct Web {
    address: SocketAddr,
    state: Arc<Mutex<Served>>,
}

#[derive(Debug, Default)]
struct Served {
    status: u16,
    port: u16,
    /// Paths, and whether they were asked for with the tag of what is served.
    asked: Vec<(String, bool)>,
}

impl Web {
    fn serving(port: u16) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its own");
        let state = Arc::new(Mutex::new(Served { status: 200, port, asked: Vec::new() }));
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever goes away has not asked.
                let _ = answer(stream, &shared);
            }
        });
        Web { address, state }
    }

    fn change(&self, change: impl FnOnce(&mut Served)) {
        change(&mut self.state.lock().expect("no panic"));
    }

    fn asked(&self) -> Vec<(String, bool)> {
        self.state.lock().expect("no panic").asked.clone()
    }

    fn node(&self, profile: &str) -> Node {
        let node = RolledOut::of_profile(profile)
            .template("conf", "web.conf", "port = {{ app.port }}\n", "")
            .with("[rollout]\nrefresh_interval = \"200ms\"\n[jobs.other]\nexec = \"sleep 1000\"\n")
            .launch();
        node.wait_until_ready();
        node
    }
}

fn answer(stream: TcpStream, state: &Mutex<Served>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut path, mut tag) = (String::new(), String::new(), String::new());
    while reader.read_line(&mut line)? > 0 && !line.trim().is_empty() {
        if let Some(rest) = line.strip_prefix("GET ") {
            path = rest.split(' ').next().unwrap_or_default().to_owned();
        } else if let Some(rest) = line.to_ascii_lowercase().strip_prefix("if-none-match:") {
            tag = rest.trim().to_owned();
        }
        line.clear();
    }
    let mut served = state.lock().expect("no panic");
    let etag = format!("\"{}\"", served.port);
    served.asked.push((path, tag == etag));
    let (status, body) = match served.status {
        200 if tag == etag => (304, String::new()),
        200 => (200, format!(r#"{{"port": {}}}"#, served.port)),
        status => (status, String::new()),
    };
    write!(
        &stream,
        "HTTP/1.1 {status} So\r\nContent-Type: application/json\r\nETag: {etag}\r\n\
         Configuration-Version: v{}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        served.port,
        body.len()
    )
}

#[test]
fn a_profile_at_a_url_is_followed_by_its_tag_and_an_outage_leaves_the_files() {
    let web = Web::serving(80);
    let profile = format!("source = \"http\"\nurl = \"http://{}/app\"", web.address);
    let node = web.node(&profile);
    until("it is in place", || (rendered(&node) == "port = 80\n").then_some(()));
    until("it is asked by its tag", || {
        web.asked().last().is_some_and(|it| *it == ("/app".to_owned(), true)).then_some(())
    });
    web.change(|served| served.port = 81);
    until("it has changed", || (rendered(&node) == "port = 81\n").then_some(()));
    web.change(|served| served.status = 503);
    until_rollout(&node, "pending");
    assert_eq!(rendered(&node), "port = 81\n");
    web.change(|served| (served.status, served.port) = (200, 82));
    until("it has changed", || (rendered(&node) == "port = 82\n").then_some(()));
    until_rollout(&node, "running");
}

#[test]
fn a_profile_of_an_appconfig_agent_has_the_version_that_the_agent_names() {
    let web = Web::serving(80);
    let profile = format!(
        "source = \"agent\"\napplication = \"shop\"\nenvironment = \"prod\"\n\
         profile = \"web\"\nurl = \"http://{}\"",
        web.address
    );
    let node = web.node(&profile);
    until("it is in place", || (rendered(&node) == "port = 80\n").then_some(()));
    let path = "/applications/shop/environments/prod/configurations/web";
    assert_eq!(web.asked()[0].0, path);
    web.change(|served| served.port = 81);
    until("it has changed", || (rendered(&node) == "port = 81\n").then_some(()));
    let rollout = until_rollout(&node, "running");
    assert_eq!(rollout["profiles"][0]["applied"]["label"], "v81", "{rollout}");
}
