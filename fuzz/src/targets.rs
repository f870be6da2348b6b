//! Every reader of what comes from outside, with what must hold of it.

use crate::{
    importers::{self, import},
    rollout,
};
use mainstay_config::Context;
use mainstay_import::Format;
use mainstay_wire::{
    frame, link,
    logs::Joiner,
    sse::{self, SseEvent},
    state::ContainerState,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::BTreeMap, fmt::Debug, time::Duration};

pub struct Target {
    pub name: &'static str,
    /// Panics when something does not hold.
    pub run: fn(&[u8]),
    pub(crate) seeds: fn() -> Vec<Vec<u8>>,
    /// Words of the format.
    pub(crate) tokens: &'static [&'static str],
    /// Inputs that a short run tries.
    pub short: u64,
}

impl Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("name", &self.name).finish_non_exhaustive()
    }
}

macro_rules! texts {
    ($($text:expr),* $(,)?) => {
        || vec![$(Vec::from($text)),*]
    };
}

pub static ALL: &[Target] = &[
    Target {
        name: "toml",
        run: toml,
        seeds: texts![
            include_str!("../../crates/config/tests/testdata/whole/valid.toml"),
            include_str!("../../crates/config/tests/testdata/whole/whole.toml"),
            include_str!("../../crates/config/tests/testdata/jobs/health.toml"),
            include_str!("../../crates/config/tests/testdata/jobs/when.toml"),
            include_str!("../../crates/config/tests/testdata/jobs/instances.toml"),
        ],
        tokens: &[
            "[jobs.x]\n",
            "[[jobs]]",
            "exec = ",
            "when = { ",
            "once = ",
            "each = ",
            "interval = ",
            "\"1h30m\"",
            "instances = 1000\n",
            "{instance}",
            "health = [",
            "fd = 3",
            "notify = true",
            "${HOME}",
            "${file:/x}",
            "tty = true\n",
            "stdin = ",
            "session = false\n",
            "limits = { ",
            "\"1G\"",
            "env_file = ",
            "]",
            "}",
            "'''",
        ],
        short: 700,
    },
    Target {
        name: "expand",
        run: expand,
        seeds: texts![
            "${HOME}/x",
            "$${HOME}",
            "a${NONE:-b}c",
            "${NONE:?why}",
            "${file:/etc/x} $x",
            "${A${B}}"
        ],
        tokens: &["${", "$${", "}", ":-", ":?", "file:", "HOME", "EMPTY", "$"],
        short: 10_000,
    },
    Target {
        name: "duration-and-size",
        run: duration_and_size,
        seeds: texts!["90s", "1h30m", "200ms", "1.5s", "7d", "10M", "1.5G", "4096", "36500d", "3"],
        tokens: &["d", "h", "m", "s", "ms", ".", "K", "M", "G", "e9", "inf", "nan", "-"],
        short: 20_000,
    },
    Target {
        name: "env-file",
        run: env_file,
        seeds: texts!["A=1\nexport B='x y'\n# c\nC=\"a\\nb\"\n", "D=${A}\n\nE="],
        tokens: &["export ", "=", "'", "\"", "\\", "#", "\n"],
        short: 6000,
    },
    Target {
        name: "procfile",
        run: |input| import(Format::Procfile, input),
        seeds: texts![include_str!("../../crates/import/tests/testdata/Procfile")],
        tokens: &["web: ", "release:", "$PORT", "&&", "|", ">"],
        short: 600,
    },
    Target {
        name: "supervisord",
        run: |input| import(Format::Supervisord, input),
        seeds: texts![
            include_str!("../../crates/import/tests/testdata/supervisord.conf"),
            "[program:a]\ncommand=/bin/cat %(program_name)s_%(process_num)02d\nnumprocs=2\nprocess_name=%(program_name)s_%(process_num)d\n",
        ],
        tokens: importers::PROGRAMS,
        short: 500,
    },
    Target {
        name: "supvisors",
        run: |input| import(Format::Supvisors, input),
        seeds: importers::supvisors,
        tokens: importers::OPTIONS,
        short: 300,
    },
    Target {
        name: "rules",
        run: importers::rules,
        seeds: importers::rules_files,
        tokens: importers::ELEMENTS,
        short: 500,
    },
    Target {
        name: "config-o-mat",
        run: importers::config_o_mat,
        seeds: importers::conf_files,
        tokens: importers::CONF,
        short: 300,
    },
    Target {
        name: "erb",
        run: importers::erb,
        seeds: importers::erb_files,
        tokens: importers::RUBY,
        short: 2000,
    },
    Target {
        name: "containerpilot",
        run: |input| import(Format::ContainerPilot, input),
        seeds: texts![
            include_str!("../../crates/import/tests/containerpilot/every-key.json5"),
            include_str!("../../crates/import/tests/containerpilot/mysql.json5"),
            include_str!("../../crates/import/tests/containerpilot/nginx.json5"),
            include_str!("../../crates/import/tests/containerpilot/worker.json5"),
            "{ jobs: [ {{ range $i := loop 3 }} { name: 'a{{ $i }}', exec: 'b' }, {{ end }} ] }",
        ],
        tokens: &[
            "{{ .HOME }}",
            "{{ if .A }}",
            "{{ else }}",
            "{{ end }}",
            "{{ range loop 9 }}",
            "{{ $x := .HOME }}",
            "{{ $x = print $x $x }}",
            "{{- ",
            " -}}",
            " | default \"1\"",
            " | split \",\" | join \"-\"",
            " | regexReplaceAll \"(a+)\" \"$1\"",
            "{ name: 'x', exec: 'y' },",
            "when: { source: 'x', each: 'exitFailed' },",
            "port: 1,",
            "health: { interval: 1, ttl: 2 },",
            "'10s'",
            "-1",
            "0x10",
            "null",
            "/*",
            "//",
            "\\u0041",
        ],
        short: 300,
    },
    Target {
        name: "process-compose",
        run: |input| import(Format::ProcessCompose, input),
        seeds: texts![include_str!("../../crates/import/tests/testdata/process-compose.yaml")],
        tokens: &[
            "processes:\n",
            "  a:\n",
            "    command: ",
            "depends_on:\n",
            "condition: process_healthy",
            "&a",
            "*a",
            "<<: *a",
            "- ",
            "|\n",
            ">-\n",
            "{",
            "}",
            "[",
            "]",
            "? ",
            "!!str ",
            "---\n",
            "replicas: 3",
            "readiness_probe:\n",
        ],
        short: 400,
    },
    Target {
        name: "sse",
        run: sse,
        seeds: texts![
            "event: stop\ndata\n\n",
            "event: state\ndata: {\"status\":\"UP\"}\n\n: comment\r\nid: 7\r\n\r\n",
            "data: a\ndata: b\r\rdata\n\n",
        ],
        tokens: &["event:", "data:", "\n\n", "\r\n\r\n", ": ", "id: 1\n", "retry: 1\n"],
        short: 10_000,
    },
    Target {
        name: "xmlrpc",
        run: |input| {
            let _ = mainstay_api::fuzz::xmlrpc(input);
        },
        seeds: texts![
            "<?xml version='1.0'?>\n<methodCall>\n<methodName>supervisor.startProcess</methodName>\n\
             <params>\n<param>\n<value><string>web:*</string></value>\n</param>\n<param>\n\
             <value><boolean>1</boolean></value>\n</param>\n</params>\n</methodCall>\n",
            "<methodCall><methodName>system.multicall</methodName><params><param><value><array><data>\
             <value><struct><member><name>methodName</name><value>a.b</value></member><member>\
             <name>params</name><value><array><data><value><int>-1</int></value></data></array>\
             </value></member></struct></value></data></array></value></param></params></methodCall>",
            "<methodCall><methodName>x</methodName><params><param><value><double>1.5e3</double>\
             </value></param><param><value><base64>AAEC</base64></value></param><param><value>\
             <dateTime.iso8601>20261116T19:00:00</dateTime.iso8601></value></param></params></methodCall>",
        ],
        tokens: &[
            "<!DOCTYPE a [<!ENTITY b 'c'>]>",
            "<![CDATA[",
            "]]>",
            "<!--",
            "-->",
            "&lt;",
            "&b;",
            "&#x1b;",
            "&#13;",
            "<value>",
            "</value>",
            "<param>",
            "<struct>",
            "<member><name>",
            "<array><data>",
            "<int>",
            "<i4>",
            "<double>",
            "<nil/>",
            "</methodCall>",
            "<?xml encoding='x'?>",
            " a=\"b\"",
        ],
        short: 4000,
    },
    Target { name: "link", run: link_messages, seeds: messages, tokens: JSON, short: 20_000 },
    Target {
        name: "journal",
        run: journal,
        seeds: || vec![mainstay_agent::fuzz::sample_journal()],
        tokens: JSON,
        short: 1500,
    },
    rollout::PROFILE,
    rollout::STATE,
    rollout::COUNTS,
    Target { name: "state", run: state, seeds: states, tokens: JSON, short: 20_000 },
    Target {
        name: "handover",
        run: |input| {
            let _ = mainstay_keeper::fuzz::handover(input);
        },
        seeds: texts![
            "{\"format\":2}",
            "{\"format\":2,\"version\":\"0.1.0\",\"exe\":3,\"jobs\":[]}"
        ],
        tokens: JSON,
        short: 20_000,
    },
    Target {
        name: "http",
        run: http,
        seeds: texts![
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 503 Service Unavailable\r\n\r\nnot now",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "HTTP/1.0 301 Moved\r\nLocation: /x\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        ],
        tokens: &[
            "HTTP/1.1 ",
            "\r\n",
            "Content-Length: ",
            "Transfer-Encoding: chunked",
            "ffffffffffffffff\r\n",
            "Connection: upgrade",
        ],
        short: 700,
    },
    Target {
        name: "datagram",
        run: mainstay_engine::fuzz::datagram,
        seeds: mainstay_engine::fuzz::sample_datagrams,
        tokens: &["mf", "\u{1}", "\u{3}"],
        short: 10_000,
    },
    Target {
        name: "sealed-datagram",
        run: mainstay_engine::fuzz::sealed,
        seeds: mainstay_engine::fuzz::sample_contents,
        tokens: &["\u{1}b", "\u{1}1", "\u{4}", "\u{7f}\0\0\u{1}", "\u{6}", "\0\u{1}"],
        short: 4000,
    },
    Target {
        name: "peer-frame",
        run: mainstay_engine::fuzz::peer_frame,
        seeds: texts![
            "{\"v\":1,\"hello\":{\"node\":\"a\",\"run\":\"1\",\"oldest\":1,\"newest\":1}}",
            "{\"v\":1,\"pull\":true}",
            "{\"v\":1,\"sent\":{\"order\":{\"number\":{\"term\":{\"number\":1,\"master\":\"a\"},\"counter\":2},\"job\":\"web\",\"what\":\"stop\"}}}",
        ],
        tokens: JSON,
        short: 20_000,
    },
    Target {
        name: "notify",
        run: notify,
        seeds: texts![
            "READY=1\nSTATUS=all is well\n",
            "WATCHDOG=1",
            "WATCHDOG_USEC=3000000\nMAINPID=7\nFDSTORE=1"
        ],
        tokens: &["READY=1", "STATUS=", "WATCHDOG_USEC=", "ERRNO=", "EXTEND_TIMEOUT_USEC=", "\n"],
        short: 10_000,
    },
    Target {
        name: "log",
        run: log,
        seeds: texts!["one\ntwo\n\nthree", "\u{1}\r\n1970-01-01T00:00:00.000000000Z stdout F x\n"],
        tokens: &["\n", "\r\n", "1970-01-01T00:00:00.000000000Z stdout P ", " F "],
        short: 4000,
    },
    Target {
        name: "log-entry",
        run: entries,
        seeds: texts![
            "1970-01-01T00:00:00.000000000Z stderr F a b\n1970-01-01T00:00:00.000000000Z stdout P c\n",
            "raw\n1970-01-01T00:00:00.000000000Z stdin F a",
        ],
        tokens: &["1970-01-01T00:00:00.000000000Z", " stdout ", " stderr ", "P ", "F ", "\n"],
        short: 20_000,
    },
    Target {
        name: "cron",
        run: cron,
        seeds: texts![
            "0 3 * * *",
            "*/10 * * * *",
            "0 0 29 2 *",
            "0 0 L * *",
            "15,45 1-5 1 JAN-MAR MON#2",
            "@daily",
            "0 0 31 2 *"
        ],
        tokens: &[
            "*", "/", "-", ",", "L", "W", "#", "?", "JAN", "MON", "@yearly", "29", "60", "24",
        ],
        short: 300,
    },
];

const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "null",
    "true",
    "\"",
    "\\u0000",
    "\\ud800",
    "1e400",
    "-0",
    "18446744073709551615",
    "{\"a\":",
    "[[[[[[[[",
];

pub(crate) fn context() -> Context {
    let env = [("HOME", "/root"), ("EMPTY", "")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    Context { host_name: "host".to_owned(), env, ..Context::default() }
}

/// What is written and read again is the same.
fn survives<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).expect("it can be written");
    let again: T = serde_json::from_str(&text).expect("it can be read again");
    assert_eq!(*value, again);
}

fn toml(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match mainstay_config::parse("x.toml", &text, &context()) {
        Ok(loaded) => {
            // What runs nothing is announced or checked.
            assert!(loaded.plan.jobs.iter().all(|job| {
                !job.exec.is_empty() || job.advertise.is_some() || !job.checks.is_empty()
            }));
            survives(&loaded.plan);
            let changes = mainstay_core::plan::diff(&loaded.plan, &loaded.plan);
            let unchanged = mainstay_core::plan::Change::Unchanged;
            assert!(changes.jobs.iter().all(|job| job.change == unchanged), "{changes:?}");
        }
        Err(errors) => assert!(!errors.render(true).is_empty()),
    }
}

fn expand(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let expanded = mainstay_config::fuzz::expand(&text, &context().env);
    // Each variable takes at least two characters.
    assert!(expanded.is_none_or(|it| it.len() <= text.len() * 6));
    let _ = mainstay_config::fuzz::shell_words(&text);
    let _ = mainstay_config::fuzz::address(&text);
}

fn duration_and_size(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(duration) = mainstay_config::duration(&text) {
        assert!(duration <= Duration::from_secs(36_500 * 86_400), "{duration:?}");
    }
    let _ = mainstay_config::fuzz::size(&text);
}

fn env_file(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for (name, value) in mainstay_config::fuzz::env_file(&text).into_iter().flatten() {
        assert!(!name.is_empty() && !name.contains(['=', '\0', '\n']), "{name:?}");
        assert!(!value.contains('\0'), "{value:?}");
    }
}

fn sse(input: &[u8]) {
    let mut whole = Vec::new();
    let ended = sse::SseDecoder::default().push(input, &mut whole);
    let (mut pieces, mut decoder) = (Vec::new(), sse::SseDecoder::default());
    let cut = input.chunks(3).try_for_each(|chunk| decoder.push(chunk, &mut pieces));
    assert_eq!((&whole, &ended), (&pieces, &cut), "however it is cut");
    for event in whole.iter().filter(|it| !it.data.contains('\n') && !it.kind.is_empty()) {
        let mut again: Vec<SseEvent> = Vec::new();
        sse::SseDecoder::default()
            .push(&sse::encode(&event.kind, &event.data), &mut again)
            .expect("it was short enough");
        assert_eq!(again, std::slice::from_ref(event));
    }
}

/// The first byte says who listens; what follows is one message, or frames as they are.
fn link_messages(input: &[u8]) {
    let (kind, body) = input.split_first().unwrap_or((&0, input));
    match kind % 4 {
        0 => message::<link::ToKeeper>(body),
        1 => message::<link::ToAgent>(body),
        2 => message::<link::KeeperRequest>(body),
        _ => {
            let mut decoder = frame::FrameDecoder::default();
            for chunk in body.chunks(7) {
                decoder.push(chunk);
                while let Ok(Some(_)) = decoder.next::<link::ToKeeper>() {}
            }
        }
    }
}

fn message<T: Serialize + DeserializeOwned + PartialEq + Debug>(body: &[u8]) {
    let Ok(message) = serde_json::from_slice::<T>(body) else { return };
    let bytes = frame::encode(&message).expect("as short as it was");
    let mut decoder = frame::FrameDecoder::default();
    bytes.chunks(5).for_each(|chunk| decoder.push(chunk));
    assert_eq!(decoder.next::<T>().expect("our own"), Some(message));
}

fn messages() -> Vec<Vec<u8>> {
    let texts = [
        (0, r#"{"hello":{"format":2,"version":"0.1.0"}}"#),
        (0, r#"{"stop":{"job":"web","incarnation":1,"signal":"SIGTERM","to":"group"}}"#),
        (
            0,
            r#"{"run_task":{"id":{"job":"web","incarnation":1,"what":{"check":0}},"exec":{"argv":["true"],"env":[],"cwd":null,"identity":null,"umask":null,"nice":null},"timeout_ms":5}}"#,
        ),
        (
            0,
            r#"{"rule":{"job":"web","rules":{"main":false,"log":{"forward":true,"format":"prefix","file":"cri","keep":{"size":1,"age":{"secs":1,"nanos":0},"files":5,"compress":false}},"stop_signal":"SIGTERM","stop_to":"group","stop_timeout_ms":5}}}"#,
        ),
        (1, r#"{"spawned":{"job":"web","incarnation":1,"pid":7,"tree":"cgroup","unenforced":[]}}"#),
        (
            1,
            r#"{"exited":{"record":1,"job":"web","incarnation":1,"exit":{"code":1},"asked":"none","fenced":false,"ended":0,"cpu_user_us":0,"cpu_system_us":0,"max_rss_kib":0}}"#,
        ),
        (1, r#"{"log_gap":{"token":1,"job":"web","lines":3}}"#),
        (2, r#"{"upgrade":{"binary":"/x"}}"#),
        (3, "\u{5}\0\0\0\"abc\""),
    ];
    texts.map(|(kind, text)| [&[kind], text.as_bytes()].concat()).into()
}

fn journal(input: &[u8]) {
    let _ = mainstay_agent::fuzz::journal(input);
}

fn state(input: &[u8]) {
    if let Ok(state) = serde_json::from_slice::<ContainerState>(input) {
        survives(&state);
    }
}

fn states() -> Vec<Vec<u8>> {
    use mainstay_core::exit::Exit;
    use mainstay_wire::state::ContainerMetrics;
    let exits = [Exit::Code { code: 3 }, Exit::Error { error: "no".to_owned(), errno: 2 }];
    let down = exits.map(|exit| {
        ContainerState::down(1, &exit, ContainerMetrics::default()).to_json().to_string()
    });
    let up = ContainerState::up(1, 7, ContainerMetrics::default()).to_json().to_string();
    down.into_iter().chain([up]).map(String::into_bytes).collect()
}

fn http(input: &[u8]) {
    let (passed, said) = mainstay_agent::fuzz::http(input);
    assert!(said.len() < 4096 && said.lines().count() < 8, "{passed} {said}");
}

fn notify(input: &[u8]) {
    let fields: BTreeMap<String, String> = mainstay_keeper::fuzz::notification(input);
    assert!(fields.len() <= 9);
    for (name, value) in fields {
        assert!(value.len() <= 1024 && !value.chars().any(char::is_control), "{name}={value:?}");
    }
}

/// What a job writes is in its file, line by line, however it was read.
fn log(input: &[u8]) {
    let file = mainstay_keeper::fuzz::log(&[input]);
    let cut: Vec<&[u8]> = input.chunks(11).collect();
    assert_eq!(file, mainstay_keeper::fuzz::log(&cut));
    let mut joiner = Joiner::default();
    let lines = file.split(|byte| *byte == b'\n');
    let mut texts: Vec<Vec<u8>> = lines
        .filter(|line| !line.is_empty())
        .filter_map(|line| joiner.push(line))
        .map(|it| it.text)
        .collect();
    if input.ends_with(b"\n") {
        texts.push(Vec::new());
    }
    if !input.is_empty() {
        assert_eq!(texts.join(&b'\n'), input);
    }
}

fn entries(input: &[u8]) {
    let mut joiner = Joiner::default();
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let whole: usize =
        lines.iter().filter_map(|line| joiner.push(line)).map(|it| it.text.len()).sum();
    let rest = joiner.finish().map_or(0, |it| it.text.len());
    assert!(whole + rest <= input.len());
}

fn cron(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let after = 1_780_000_000_000_000_000;
    if let Ok(next) = mainstay_agent::fuzz::cron(&text, after) {
        assert!(next > after, "{text:?}: {next}");
    }
}
