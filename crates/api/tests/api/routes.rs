//! What can be asked over the unix socket.

use crate::driven::{CONFIG, Node, RUN};
use serde_json::Value;
use std::{
    fs,
    io::{Read, Write},
};

fn events(text: &str) -> Vec<(&str, &str)> {
    text.split("\n\n")
        .filter_map(|block| {
            let id = block.lines().find_map(|line| line.strip_prefix("id: "))?;
            let kind = block.lines().find_map(|line| line.strip_prefix("event: ")).unwrap_or("");
            Some((id, kind))
        })
        .collect()
}

#[test]
fn status_tells_of_node_jobs_and_keeper() {
    let node = Node::start();
    node.post("/v1/jobs/web/start", "");
    let (status, body) = node.get("/v1/status");
    assert_eq!((status, body["state"].as_str()), (200, Some("running")));
    assert_eq!(body["strays"][0]["command"], "lost");
    let names: Vec<_> =
        body["jobs"].as_array().expect("jobs").iter().map(|job| &job["name"]).collect();
    assert_eq!(names, ["web", "broken", "stubborn"]);
    let (status, job) = node.get("/v1/jobs/web");
    assert_eq!(
        (status, job["state"].as_str(), job["pid"].as_u64()),
        (200, Some("RUNNING"), Some(42))
    );
    assert_eq!((&job["tree"], &job["unenforced"][0]), (&"group".into(), &"memory".into()));
}

#[test]
fn what_a_query_says_and_nobody_asked_for_is_refused() {
    let node = Node::start();
    for path in ["/v1/upgrade?binary=/bin/true", "/v1/shutdown?now=1", "/v1/maintenance?x=1"] {
        let (status, problem) = node.post(path, "");
        assert_eq!(status, 400, "{path}: {problem}");
    }
    assert_eq!(node.get("/v1/status").0, 200);
}

#[test]
fn requests_wait_for_what_they_lead_to() {
    let node = Node::start();
    let (status, job) = node.post("/v1/jobs/web/stop", "");
    assert_eq!((status, job["state"].as_str()), (200, Some("STOPPED")));
    let (status, job) = node.post("/v1/jobs/web/start", "{}");
    assert_eq!((status, job["incarnation"].as_u64()), (200, Some(2)));
    let (status, job) = node.post("/v1/jobs/web/restart", "");
    assert_eq!((status, job["incarnation"].as_u64()), (200, Some(3)));
    let (status, problem) = node.post("/v1/jobs/broken/restart", "");
    assert_eq!(status, 409);
    assert!(
        problem["detail"].as_str().is_some_and(|text| text.contains("cannot execute")),
        "{problem}"
    );
    let (status, problem) = node.post("/v1/jobs/stubborn/stop?wait=50ms", "");
    assert_eq!((status, problem["job"]["state"].as_str()), (504, Some("STOPPING")));
    let (status, job) = node.post("/v1/jobs/stubborn/stop?wait=0", "");
    assert_eq!((status, job["state"].as_str()), (200, Some("STOPPING")));
}

#[test]
fn what_is_not_understood_is_refused_as_a_problem_document() {
    let node = Node::start();
    for (method, path, body, wanted) in [
        ("GET", "/v1/nothing", "", 404),
        ("POST", "/v1/status", "", 405),
        ("GET", "/v1/status?verbose=1", "", 400),
        ("POST", "/v1/jobs/none/start", "", 404),
        ("POST", "/v1/jobs/%2e%2e/start", "", 404),
        ("POST", "/v1/jobs/web/stop?wait=soon", "", 400),
        ("POST", "/v1/jobs/web/stop", r#"{"force":true}"#, 400),
        ("POST", "/v1/jobs/web/signal", r#"{"signal":"SIGNOPE"}"#, 400),
        ("POST", "/v1/jobs/web/signal", r#"{"signal":"HUP","whom":"all"}"#, 400),
        ("POST", "/v1/upgrade", "", 409),
        ("POST", "/v1/maintenance", "", 400),
        ("POST", "/v1/maintenance", r#"{"on":"yes"}"#, 400),
        ("POST", "/v1/jobs/web/start", r#"{"args":"one"}"#, 400),
        ("POST", "/v1/jobs/web/reload", "", 409),
        ("GET", "/v1/jobs/none/why", "", 404),
        ("POST", "/v1/apps/none/start", "", 404),
        ("POST", "/v1/apps/%2e/stop", "", 404),
        ("GET", "/v1/reload", "", 405),
        ("GET", "/v1/jobs/%ff", "", 400),
        ("POST", "/v1/jobs/%ff/stop", "", 400),
        ("POST", "/v1/apps/%ff/stop", "", 400),
        ("POST", "/v1/jobs/web/start", r#"[["-v"], true]"#, 400),
        ("POST", "/v1/jobs/web/signal", r#"["HUP", "leader"]"#, 400),
        ("POST", "/v1/jobs/web/start", r#"{"args":["a\u0000b"]}"#, 400),
        ("GET", "/v1/events?since=999999", "", 400),
        ("GET", "/v1/events?since=-1", "", 400),
        ("GET", "/v1/jobs/none/log", "", 404),
        ("GET", "/v1/jobs/%2e%2e/log", "", 404),
        ("GET", "/v1/jobs/web?here=perhaps", "", 400),
        ("GET", "/v1/nodes/web-2/status", "", 404),
        ("GET", "/v1/nodes/web-2/nodes/web-3/status", "", 400),
        ("GET", "/v1/events?fleet=1", "", 404),
        ("GET", "/v1/events?fleet=1&since=7", "", 400),
        ("GET", "/v1/jobs/web/log?lines=few", "", 400),
        ("GET", "/v1/jobs/web/log?since=yesterday", "", 400),
    ] {
        let length = body.len();
        let request = format!("{method} {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}");
        let (status, body) = node.ask(&request);
        let problem: Value = serde_json::from_str(&body).expect("a problem document");
        assert_eq!(
            (status, problem["status"].as_u64()),
            (wanted, Some(wanted.into())),
            "{request}"
        );
        assert!(problem["detail"].is_string() && problem["title"].is_string(), "{problem}");
    }
}

#[test]
fn a_stream_is_taken_up_again_where_it_broke() {
    let node = Node::start();
    node.post("/v1/jobs/web/restart", "");
    let (_, all) = node.ask("GET /v1/events?since=0&follow=false HTTP/1.0\r\n\r\n");
    let all = events(&all);
    assert_eq!(all[0], (format!("{RUN}:0").as_str(), ""), "where the client is");
    assert_eq!(all[1], (format!("{RUN}:1").as_str(), "startup"));
    let resume = |id: &str| {
        let header = format!("Last-Event-ID: {id}\r\n");
        node.ask(&format!("GET /v1/events?follow=false HTTP/1.0\r\n{header}\r\n")).1
    };
    let rest = resume(&format!("{RUN}:3"));
    assert_eq!(events(&rest)[1].0, format!("{RUN}:4"));
    for id in [format!("{RUN}:999999"), "fedcba9876543210:3".into()] {
        let text = resume(&id);
        assert!(events(&text).iter().any(|(_, kind)| *kind == "gap"), "{text}");
        assert!(events(&text).iter().any(|(_, kind)| *kind == "startup"), "{text}");
    }
    assert_eq!(node.ask("GET /v1/events HTTP/1.0\r\nLast-Event-ID: x\r\n\r\n").0, 400);
}

#[test]
fn a_stream_can_be_about_one_job() {
    let node = Node::start();
    node.post("/v1/jobs/web/restart", "");
    let (_, all) = node.ask("GET /v1/events?since=0&follow=false&job=web HTTP/1.0\r\n\r\n");
    let sources: Vec<Value> = all
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .map(|event| event["source"].clone())
        .collect();
    assert!(sources.len() > 3 && sources.iter().all(|source| source == "web"), "{all}");
}

#[test]
fn a_stream_ends_with_the_last_event_of_the_run() {
    let node = Node::start();
    let mut stream = node.connect();
    stream.write_all(b"GET /v1/events?since=0 HTTP/1.0\r\n\r\n").expect("sent");
    assert_eq!(node.post("/v1/shutdown", "").0, 202);
    let (status, body) = node.get("/v1/status");
    assert_eq!((status, body["state"].as_str()), (200, Some("stopping")));
    // Who asks a second time is impatient: what does not stop is killed.
    assert_eq!(node.post("/v1/shutdown", "").0, 202);
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("events up to the end");
    let stopped = text.matches("event: stopped\n").count();
    assert_eq!(stopped, 3, "{text}");
}

#[test]
fn silent_clients_keep_nobody_out() {
    let node = Node::start();
    let silent: Vec<_> = (0..600).map(|_| node.connect()).collect();
    let mut half = node.connect();
    half.write_all(b"GET /v1/sta").expect("sent");
    let mut nonsense = node.connect();
    nonsense.write_all(&[0xff; 4096]).expect("sent");
    assert_eq!(node.get("/v1/status").0, 200);
    drop(silent);
}

#[test]
fn a_reload_does_what_plan_says_and_an_invalid_file_changes_nothing() {
    let node = Node::start();
    node.post("/v1/jobs/web/start", "");
    let edited = CONFIG.replace("stubborn", "fresh").replace("exec = \"web\"", "exec = \"web -v\"");
    fs::write(node.0.join("mainstay.toml"), edited).expect("edited");
    let (status, plan) = node.get("/v1/plan");
    assert_eq!(
        (status, &plan["added"][0], &plan["removed"][0]),
        (200, &"fresh".into(), &"stubborn".into())
    );
    assert_eq!(
        (&plan["changed"][0]["job"], &plan["changed"][0]["effect"]),
        (&"web".into(), &"restart".into())
    );
    let (_, job) = node.get("/v1/jobs/web");
    assert_eq!(job["incarnation"], 1, "a plan changes nothing");
    let (status, done) = node.post("/v1/reload?wait=0", "");
    assert_eq!((status, done), (200, plan));
    let (status, _) = node.post("/v1/jobs/web/start", "");
    let (_, job) = node.get("/v1/jobs/web");
    assert_eq!((status, job["incarnation"].as_u64()), (200, Some(2)));

    fs::write(node.0.join("mainstay.toml"), "[jobs.web]\nexce = 1\n").expect("edited");
    let (status, problem) = node.post("/v1/reload", "");
    assert_eq!(status, 422);
    assert!(problem["detail"].as_str().is_some_and(|text| text.contains("exce")), "{problem}");
    assert_eq!(node.get("/v1/jobs/fresh").0, 200);
}

#[test]
fn why_answers_in_five_lines_and_what_was_disabled_is_refused() {
    let node = Node::start();
    let (status, job) = node.post("/v1/jobs/web/disable", "");
    assert_eq!((status, job["desired"].as_str()), (200, Some("disabled")));
    let (status, problem) = node.post("/v1/jobs/web/start", "");
    assert_eq!(status, 409, "{problem}");
    assert_eq!(problem["detail"], "job 'web' is disabled: enable it first");
    let (status, why) = node.get("/v1/jobs/web/why");
    let lines = why["lines"].as_array().expect("lines");
    assert!(status == 200 && (1..=5).contains(&lines.len()), "{why}");
    assert!(why.to_string().contains("mainstay enable web"), "{why}");
    assert_eq!(node.post("/v1/jobs/web/enable", "").0, 200);
    let (status, body) = node.post("/v1/maintenance", r#"{"on":true}"#);
    assert_eq!((status, body["state"].as_str()), (200, Some("maintenance")));
}

#[test]
fn the_description_names_every_route() {
    let (status, document) = Node::start().get("/v1/openapi.json");
    assert_eq!(status, 200);
    let paths = document["paths"].as_object().expect("paths");
    for path in ["/v1/status", "/v1/reload", "/v1/jobs/{job}/why", "/v1/apps/{app}/stop"] {
        assert!(paths.contains_key(path), "{path}");
    }
}

#[test]
fn disable_waits_until_nothing_is_left_and_enable_until_it_runs_again() {
    let node = Node::start();
    node.post("/v1/jobs/web/start", "");
    let (status, job) = node.post("/v1/jobs/web/disable", "");
    assert_eq!((status, job["state"].as_str()), (200, Some("STOPPED")));
    let (status, job) = node.post("/v1/jobs/web/enable", "");
    assert_eq!((status, job["state"].as_str()), (200, Some("RUNNING")));
    let (status, problem) = node.post("/v1/jobs/stubborn/disable?wait=50ms", "");
    assert_eq!((status, problem["job"]["state"].as_str()), (504, Some("STOPPING")));
    let (status, job) = node.post("/v1/jobs/stubborn/disable?wait=0", "");
    assert_eq!((status, job["desired"].as_str()), (200, Some("disabled")));
}

#[test]
fn a_reload_waits_for_what_it_starts_and_says_what_is_in_force_when_that_fails() {
    let node = Node::with(|_| "[jobs.web]\nexec = \"web\"\n".to_owned());
    node.post("/v1/jobs/web/start", "");
    let edited = "[jobs.web]\nexec = \"web -v\"\n[jobs.more]\nexec = \"more\"\n";
    fs::write(node.0.join("mainstay.toml"), edited).expect("edited");
    assert_eq!(node.post("/v1/reload", "").0, 200);
    let (_, job) = node.get("/v1/jobs/web");
    assert_eq!((job["state"].as_str(), job["incarnation"].as_u64()), (Some("RUNNING"), Some(2)));
    assert_eq!(node.get("/v1/jobs/more").1["state"], "RUNNING");

    let broken = edited.replace("jobs.more", "jobs.broken");
    fs::write(node.0.join("mainstay.toml"), broken).expect("edited");
    let (status, problem) = node.post("/v1/reload", "");
    assert_eq!((status, &problem["changes"]["added"][0]), (409, &"broken".into()), "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|text| text.contains("in force")), "{problem}");
}

#[test]
fn the_name_of_a_job_with_instances_stands_for_all_of_them() {
    let node = Node::with(|_| "[jobs.web]\nexec = \"web\"\ninstances = 3\n".to_owned());
    let states = |body: &Value| -> Vec<String> {
        let jobs = body["jobs"].as_array().expect("a list");
        jobs.iter().map(|job| format!("{} {}", job["name"], job["state"])).collect()
    };
    let all = |state: &str| -> Vec<String> {
        (1..=3).map(|number| format!("\"web-{number}\" \"{state}\"")).collect()
    };
    let (status, body) = node.post("/v1/jobs/web/start", "");
    assert_eq!((status, states(&body)), (200, all("RUNNING")));
    assert_eq!(body["instances_of"], "web");
    let (status, body) = node.post("/v1/jobs/web/restart", "");
    assert_eq!((status, states(&body)), (200, all("RUNNING")));
    assert!(body["jobs"].as_array().expect("a list").iter().all(|job| job["incarnation"] == 2));
    assert_eq!(node.get("/v1/jobs/web/why").1["jobs"].as_array().map(Vec::len), Some(3));
    let (status, body) = node.post("/v1/jobs/web/stop", "");
    assert_eq!((status, states(&body)), (200, all("STOPPED")));
    let (status, job) = node.get("/v1/jobs/web-2");
    assert_eq!((status, job["instance_of"].as_str()), (200, Some("web")));
    node.post("/v1/jobs/web-2/disable", "");
    let (status, problem) = node.post("/v1/jobs/web/start", "");
    assert_eq!(status, 409, "{problem}");
    let (_, body) = node.get("/v1/jobs/web");
    assert_eq!(states(&body)[2], "\"web-3\" \"RUNNING\"", "the others are no worse for it");
}

#[test]
fn several_names_are_one_request_and_all_of_them_have_to_be_there() {
    let node = Node::with(|_| "[jobs.web]\nexec = \"web\"\n[jobs.db]\nexec = \"db\"\n".to_owned());
    let (status, body) = node.post("/v1/jobs/db,web/start", "");
    assert_eq!(status, 200, "{body}");
    let names: Vec<&Value> =
        body["jobs"].as_array().expect("a list").iter().map(|job| &job["name"]).collect();
    assert_eq!(names, ["db", "web"]);
    let (status, problem) = node.post("/v1/jobs/db,wbe/restart", "");
    assert_eq!(status, 404, "{problem}");
    assert!(problem["detail"].as_str().expect("a text").contains("did you mean 'web'?"));
    assert_eq!(node.get("/v1/jobs/db").1["incarnation"], 1, "nothing was done");
}

#[test]
fn a_job_that_is_not_there_is_answered_with_the_one_that_may_be_meant() {
    let node = Node::with(|_| "[jobs.web]\nexec = \"web\"\ninstances = 2\n".to_owned());
    for (path, meant) in
        [("/v1/jobs/wbe", "web"), ("/v1/jobs/wbe-2/why", "web-2"), ("/v1/jobs/wbe/log", "web")]
    {
        let (status, problem) = node.get(path);
        let said = problem["detail"].as_str().expect("a text");
        assert!(status == 404 && said.ends_with(&format!("did you mean '{meant}'?")), "{said}");
    }
}

#[test]
fn what_jobs_have_written_can_be_read_and_followed() {
    let node = Node::start();
    let write = |job: &str, text: &str| {
        let dir = node.0.join("state/logs").join(job);
        fs::create_dir_all(&dir).expect("a directory");
        let mut file = fs::File::options().append(true).create(true).open(dir.join("current"));
        file.as_mut().expect("a file").write_all(text.as_bytes()).expect("written");
    };
    let line = |second: u32, text: &str| {
        format!("2026-01-01T00:00:0{second}.000000000Z stdout F {text}\n")
    };
    write("web", &(line(1, "one") + &line(3, "three")));
    write("broken", &line(2, "two"));
    let text = |path: &str| node.ask(&format!("GET {path} HTTP/1.0\r\n\r\n"));
    assert_eq!(text("/v1/jobs/web/log"), (200, "one\nthree\n".into()));
    assert_eq!(text("/v1/jobs/web/log?lines=1"), (200, "three\n".into()));
    assert_eq!(text("/v1/jobs/web/log?since=2026-01-01T00:00:02Z"), (200, "three\n".into()));
    assert_eq!(text("/v1/logs"), (200, "web | one\nbroken | two\nweb | three\n".into()));
    assert_eq!(text("/v1/jobs/stubborn/log"), (200, String::new()), "it has written nothing");
    write("of-before", &line(4, "four"));
    assert_eq!(text("/v1/logs?lines=1"), (200, "broken | two\nweb | three\n".into()));
    let everything = "broken | two\nweb | three\nof-before | four\n";
    assert_eq!(text("/v1/logs?lines=1&all=true"), (200, everything.into()));
    assert_eq!(text("/v1/logs?jobs=of-before"), (200, "four\n".into()));
    assert_eq!(text("/v1/logs?jobs=web&all=true").0, 400, "one or the other");
    let (_, json) = text("/v1/jobs/broken/log?format=json");
    let json: Value = serde_json::from_str(&json).expect("an object a line");
    assert_eq!((&json["job"], &json["text"]), (&"broken".into(), &"two".into()));

    let mut stream = node.connect();
    let request = b"GET /v1/jobs/web/log?follow=true&lines=1 HTTP/1.0\r\n\r\n";
    stream.write_all(request).expect("sent");
    let mut seen = String::new();
    let mut until = |wanted: &str| {
        let mut bytes = [0; 1024];
        while !seen.ends_with(wanted) {
            let length = stream.read(&mut bytes).expect("more");
            assert!(length > 0, "it ended: {seen}");
            seen.push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
    };
    until("three\n");
    write("web", &line(4, "four"));
    until("four\n");
}

#[test]
fn an_app_is_up_although_a_job_of_it_is_not_started_with_it() {
    let node = Node::with(|_| {
        "[apps.shop]\nstart_sequence = 0\n\
         [jobs.cart]\nexec = \"cart\"\napp = \"shop\"\n\
         [jobs.tool]\nexec = \"tool\"\napp = \"shop\"\nplace = { start_sequence = 0 }\n\
         [jobs.often]\nexec = \"often\"\napp = \"shop\"\nwhen = { each = \"SIGHUP\" }\n"
            .to_owned()
    });
    let (status, body) = node.post("/v1/apps/shop/start", "");
    assert_eq!(status, 200, "{body}");
    let states: Vec<_> = body["jobs"].as_array().expect("a list").iter().collect();
    let states: Vec<_> = states.iter().map(|job| job["state"].as_str().expect("a state")).collect();
    assert_eq!(states, ["RUNNING", "STOPPED", "STOPPED"]);
    let (status, body) = node.post("/v1/apps/shop/restart", "");
    assert_eq!(status, 200, "{body}");
    let (status, body) = node.post("/v1/apps/shop/stop", "");
    assert_eq!((status, &body["jobs"][0]["state"]), (200, &"STOPPED".into()));
}

#[test]
fn apps_are_told_with_what_is_wrong_with_them() {
    let node = Node::with(|_| {
        "[apps.shop]\nstart_sequence = 0\n\
         [jobs.cart]\nexec = \"cart\"\napp = \"shop\"\nplace = { required = true }\n\
         [jobs.broken]\nexec = \"broken\"\napp = \"shop\"\nrestart = \"never\"\n"
            .to_owned()
    });
    let (status, body) = node.get("/v1/apps");
    assert_eq!(status, 200);
    assert_eq!(body["apps"][0]["name"], "shop");
    assert_eq!(
        (&body["apps"][0]["state"], &body["apps"][0]["failure"]),
        (&"stopped".into(), &"none".into())
    );
    node.post("/v1/apps/shop/start", "");
    let (status, body) = node.get("/v1/apps/shop");
    assert_eq!(
        (status, &body["state"], &body["failure"]),
        (200, &"running".into(), &"minor".into())
    );
    assert_eq!(body["jobs"][0]["name"], "cart");
    assert_eq!(
        (&body["jobs"][0]["state"], &body["jobs"][0]["failure"]),
        (&"RUNNING".into(), &"none".into())
    );
    assert_eq!(
        (&body["jobs"][1]["state"], &body["jobs"][1]["failure"]),
        (&"FATAL".into(), &"minor".into())
    );
    let (status, problem) = node.get("/v1/apps/shpo");
    assert_eq!(status, 404);
    assert_eq!(problem["detail"], "there is no app 'shpo': did you mean 'shop'?");
}
