//! What is written becomes what is meant.

use super::{job, loaded, plan, refused, undefined};
use mainstay_config::{Key, Kind, Reload as OnReload, keys};
use mainstay_core::{
    event::EventName,
    name::Name,
    plan::{
        Awaited, Change, CheckOutput, Condition, Cron, ExitRule, FileFormat, ForwardFormat,
        ForwardTo, JobPlan, OnFailure, OnLoss, Probe, Reload, RestartOn, SignalTarget, SourceRef,
        Stderr, Stdin, StopOrder, Trigger, While,
    },
    signal::Signal,
};
use std::time::Duration;

#[test]
fn a_job_that_says_only_what_it_runs_has_every_default() {
    let plan = plan("[jobs.web]\nexec = \"./web --port 80\"");
    assert_eq!(plan.node.name, "host-1");
    assert_eq!(plan.node.stop_timeout, Duration::from_secs(8));
    assert_eq!(plan.node.exit, ExitRule::All);
    assert_eq!(plan.node.log_level, "info");
    let exec = vec!["./web".to_owned(), "--port".to_owned(), "80".to_owned()];
    let definition = plan.jobs[0].definition;
    let default = JobPlan { definition, ..JobPlan::new(Name::new("web").unwrap(), exec) };
    assert_eq!(*plan.jobs[0], default);
    assert_eq!(plan.jobs.len(), 1);
}

/// Lines that a table needs so that one of its other keys makes sense.
fn needed(table: &str, name: &str) -> &'static str {
    match table {
        "jobs.NAME.while" if name != "source" => "source = \"y\"\n",
        "jobs.NAME.health" if !["exec", "http", "tcp", "notify", "fd"].contains(&name) => {
            "tcp = \"127.0.0.1:1\"\n"
        }
        "jobs.NAME.health.http" if name != "url" => "url = \"https://h\"\n",
        "discovery" if name != "engine" => "engine = \"consul\"\n",
        "jobs.NAME.health.http.tls" => "[jobs.x.health.http]\nurl = \"https://h\"\n",
        "telemetry" if name != "listen" => "listen = \"127.0.0.1:9090\"\n",
        _ => "",
    }
}

/// A file in which one key of a table is given.
fn with(table: &str, name: &str, value: &str) -> String {
    let needed = needed(table, name);
    let (before, inside) = if needed.starts_with('[') { (needed, "") } else { ("", needed) };
    let exec = if (table, name) == ("jobs.NAME", "exec") { "" } else { "exec = \"true\"\n" };
    let line = if name.is_empty() { String::new() } else { format!("{name} = {value}\n") };
    let others = format!("{}[jobs.y]\nexec = \"true\"\n[apps.z]\n", discovery(table, name));
    let app = match (table, name) {
        ("jobs.NAME.place", "spread") => "app = \"z\"\ninstances = 2\n",
        ("jobs.NAME.place", _) => "app = \"z\"\n",
        _ => "",
    };
    if table == "telemetry.metrics" {
        let kind = match name {
            "type" => "",
            "buckets" => "type = \"histogram\"\n",
            _ => "type = \"summary\"\n",
        };
        let called = if name == "name" { "" } else { "name = \"n\"\n" };
        let listen = "[telemetry]\nlisten = \"127.0.0.1:9090\"\n";
        return format!("[jobs.x]\n{exec}{listen}[telemetry.metrics]\n{kind}{called}{line}");
    }
    let own = table.replace("NAME", if table.starts_with("apps") { "z" } else { "x" });
    let port = if own == "jobs.x.advertise" && name != "port" { "port = 80\n" } else { "" };
    match table {
        "jobs.NAME" => format!("[jobs.x]\n{exec}{line}{others}"),
        "apps.NAME" => format!("[jobs.x]\n{exec}{others}{line}"),
        _ => format!("[jobs.x]\n{exec}{app}{before}[{own}]\n{port}{inside}{line}{others}"),
    }
}

/// Where services are announced, for what needs that.
fn discovery(table: &str, name: &str) -> &'static str {
    match (table, name) {
        ("discovery", _) => "",
        ("discovery.tls", _) => "[discovery]\nengine = \"consul\"\n",
        _ => "[discovery]\nengine = \"file\"\ndir = \"/d\"\n",
    }
}

#[test]
fn every_key_accepts_its_documented_default_and_nothing_changes() {
    for key in by_themselves().filter(|key| !key.default.is_empty()) {
        let bare = undefined(plan(&with(key.table, "", "")));
        let text = with(key.table, key.name, key.default);
        assert_eq!(undefined(plan(&text)), bare, "{}.{}", key.table, key.name);
    }
}

/// Those of a fleet and of a rollout need others, and are tried with them.
fn by_themselves() -> impl Iterator<Item = &'static Key> {
    keys().iter().filter(|key| key.table != "fleet" && !super::rollout::is_of_rollout(key.table))
}

#[test]
fn every_word_of_a_choice_is_accepted() {
    for key in by_themselves() {
        let (Kind::OneOf(words) | Kind::OneOfOrTable(words)) = key.kind else { continue };
        for word in words {
            // The other engine needs a directory.
            let word = if key.table == "discovery" && *word == "file" { "consul" } else { word };
            let main =
                if key.name == "exit" { "[jobs.m]\nexec = \"m\"\nmain = true\n" } else { "" };
            plan(&format!("{main}{}", with(key.table, key.name, &format!("\"{word}\""))));
        }
    }
}

#[test]
fn every_key_is_documented_in_one_sentence_and_refuses_a_date() {
    for key in keys() {
        assert!(key.doc.ends_with('.'), "{}.{}", key.table, key.name);
        let told = refused(&with(key.table, key.name, "1979-05-27"));
        assert!(told.contains(key.name), "{told}");
        assert!(told.contains("help: "), "{told}");
    }
}

#[test]
fn everything_at_once_is_read_as_written() {
    let plan = plan(
        r#"
        [node]
        name = "web-1.example"
        stop_timeout = 4.5
        exit = "never"

        [jobs.db]
        exec = ["postgres", "-D", "/my data", 5]
        user = "postgres"
        group = 26
        groups = ["a", 7]
        cwd = "/data"
        env = { PORT = 5433, DEBUG = true, RATE = 0.5, TEXT = "x", HEX = 0x1F }
        umask = 0o027
        nice = -5
        limits = { nofile = 65536, core = "unlimited", stack = "8M", memory = "1G", cpus = 1.5, pids = 100 }
        stop = { signal = "int", to = "tree", timeout = "1m", exec = "pg_ctl stop -m 'very fast'" }
        restart = { on = "any", delay = "1m", limit = 3, within = "10m" }
        start_seconds = "2s"
        exit_codes = [0, 3]
        sockets = { pg = "127.0.0.1:5432", local = "unix:/run/pg.sock", dns = "udp:[::1]:53" }
        notify = true
        stderr = "separate"
        log = { format = "json", keep = { files = 9 } }

        [log]
        forward = false
        file = "raw"
        keep = { size = "1M", compress = true }
        level = "debug"
        "#,
    );
    assert_eq!(plan.node.name, "web-1.example");
    assert_eq!(plan.node.stop_timeout, Duration::from_millis(4500));
    assert_eq!(plan.node.exit, ExitRule::Never);
    assert_eq!(plan.node.log_level, "debug");
    let db = plan.job("db").unwrap();
    assert_eq!(db.exec, ["postgres", "-D", "/my data", "5"]);
    assert_eq!((db.user.as_deref(), db.group.as_deref()), (Some("postgres"), Some("26")));
    assert_eq!(db.groups.as_deref(), Some(&["a".to_owned(), "7".to_owned()][..]));
    assert_eq!(db.cwd.as_deref(), Some(std::path::Path::new("/data")));
    let env: Vec<(&str, &str)> = db.env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let expected =
        [("PORT", "5433"), ("DEBUG", "true"), ("RATE", "0.5"), ("TEXT", "x"), ("HEX", "0x1F")];
    assert_eq!(env, expected);
    assert_eq!((db.umask, db.nice), (Some(0o027), Some(-5)));
    let rlimits: Vec<(&str, Option<u64>)> =
        db.limits.rlimits.iter().map(|(name, limit)| (name.as_str(), *limit)).collect();
    assert_eq!(rlimits, [("nofile", Some(65536)), ("core", None), ("stack", Some(8 << 20))]);
    assert_eq!(db.limits.memory, Some(1 << 30));
    assert_eq!((db.limits.cpus, db.limits.pids), (Some(1.5), Some(100)));
    assert_eq!((db.stop.signal, db.stop.to), (Signal::INT, SignalTarget::Tree));
    assert_eq!(db.stop.exec.as_ref().unwrap()[3], "very fast");
    let minute = Duration::from_secs(60);
    assert_eq!((db.restart.delay, db.restart.max_delay), (Some(minute), minute));
    assert_eq!((db.restart.limit, db.restart.within), (Some(3), Some(minute * 10)));
    assert_eq!(db.exit_codes, [0, 3]);
    assert_eq!(db.sockets[2].address, "udp:[::1]:53");
    assert_eq!((db.notify, db.stderr), (true, Stderr::Separate));
    assert_eq!((db.log.forward, db.log.format), (false, ForwardFormat::Json));
    assert_eq!(db.log.file, FileFormat::Raw);
    assert_eq!((db.log.keep.size, db.log.keep.files, db.log.keep.compress), (1 << 20, 9, true));
}

#[test]
fn forwarded_lines_go_where_the_file_says() {
    let plan = plan(
        "[log]\nformat = 'logfmt'\noutput = '/var/log/x'\ntogether = true\n\
         [jobs.a]\nexec = 'a'\nhealth = { exec = 'c', output = 'forward' }\n\
         [jobs.b]\nexec = 'b'\nlog = { format = 'raw', output = 'same' }\n",
    );
    assert_eq!(plan.log.file.as_deref(), Some(std::path::Path::new("/var/log/x")));
    let (a, b) = (plan.job("a").unwrap(), plan.job("b").unwrap());
    assert_eq!(plan.log.own.as_ref(), Some(&a.log), "as the jobs have it");
    assert_eq!((a.log.format, a.log.output), (ForwardFormat::Logfmt, ForwardTo::File));
    assert_eq!((b.log.format, b.log.output), (ForwardFormat::Raw, ForwardTo::Same));
    assert_eq!(a.checks[0].output, CheckOutput::Forward);
    for (text, told) in [
        ("[log]\noutput = 'x.log'\n[jobs.a]\nexec = 'a'", "'x.log' is no place for output"),
        ("[jobs.a]\nexec = 'a'\nlog = { output = '/x' }", "a node forwards into one file"),
        ("[jobs.a]\nexec = 'a'\nlog = { together = true }", "mainstay's own log"),
    ] {
        assert!(refused(text).contains(told), "{}", refused(text));
    }
}

#[test]
fn a_metric_may_be_called_as_containerpilots_are_unless_it_would_be_shown_twice() {
    let text = |name: &str| {
        format!(
            "[jobs.x]\nexec = 'x'\n[telemetry]\nlisten = '127.0.0.1:9090'\n[[telemetry.metrics]]\n\
             name = '{name}'\ntype = 'counter'\n"
        )
    };
    let named = plan(&text("containerpilot_app_some_counter")).telemetry.unwrap();
    assert_eq!(named.metrics[0].name, "containerpilot_app_some_counter");
    assert!(refused(&text("containerpilot_events")).contains("is shown by mainstay itself"));
}

#[test]
fn a_main_job_is_not_restarted_unless_it_says_so_and_its_end_ends_the_node() {
    let quiet = plan("[jobs.a]\nexec = \"a\"\nmain = true");
    assert_eq!(quiet.node.exit, ExitRule::Main);
    assert_eq!(quiet.jobs[0].restart.on, RestartOn::Never);
    assert_eq!(job("main = true\nrestart = \"always\"").restart.on, RestartOn::Any);
    assert_eq!(job("restart = { limit = 3 }\nmain = true").restart.on, RestartOn::Failure);
}

#[test]
fn an_exec_string_is_split_first_and_expanded_then() {
    let job = job("stop = { exec = \"echo ${GREETING} '${EMPTY}' $${x} '${UNSET:-a b}'\" }");
    assert_eq!(job.stop.exec.unwrap(), ["echo", "hello world", "", "${x}", "a b"]);
}

#[test]
fn what_a_job_is_attached_to_is_read_as_written() {
    let job = job("session = false\nstdin = \"in/put\"");
    assert_eq!((job.session, job.stdin), (false, Stdin::File("in/put".into())));
    assert_eq!(self::job("stdin = \"inherit\"\ntty = true").stdin, Stdin::Inherit);
    let told = refused("[jobs.x]\nexec = \"a\"\nstdin = \"nul\"");
    assert!(told.contains("'nul' is not an input"), "{told}");
    for (other, why) in [("session = false", "session"), ("stderr = \"separate\"", "one stream")] {
        let told = refused(&format!("[jobs.x]\nexec = \"a\"\ntty = true\n{other}"));
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn a_umask_may_be_written_in_any_octal_way() {
    for text in ["\"022\"", "\"22\"", "0o22", "0o022", "\"0o022\""] {
        assert_eq!(job(&format!("umask = {text}")).umask, Some(0o22), "{text}");
    }
    assert_eq!(job("umask = 0").umask, Some(0));
}

#[test]
fn jobs_keep_the_order_of_the_file() {
    let plan = plan("[jobs.z]\nexec = \"z\"\n[jobs.a]\nexec = \"a\"\n[jobs.m]\nexec = \"m\"");
    let names: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["z", "a", "m"]);
}

#[test]
fn a_byte_order_mark_is_no_mistake() {
    assert_eq!(plan("\u{feff}[jobs.a]\nexec = \"a\"").jobs.len(), 1);
}

#[test]
fn ten_thousand_jobs_are_read_and_no_more() {
    let jobs = |count: usize| -> String {
        (0..count).map(|n| format!("[jobs.j{n}]\nexec = \"true\"\n")).collect()
    };
    assert_eq!(plan(&jobs(10_000)).jobs.len(), 10_000);
    assert!(refused(&jobs(10_001)).contains("more than 10000 jobs"));
}

#[test]
fn a_host_without_a_usable_name_still_runs_its_jobs() {
    let ctx = mainstay_config::Context { host_name: "(none)".into(), ..super::context() };
    let loaded = mainstay_config::parse("x", "[jobs.a]\nexec = \"a\"", &ctx).unwrap();
    assert_eq!(loaded.plan.node.name, "localhost");
}

#[test]
fn a_word_for_a_shell_is_a_warning_and_stays_an_argument() {
    let loaded = loaded("[jobs.a]\nexec = \"echo a | cat\"");
    assert_eq!(loaded.plan.jobs[0].exec, ["echo", "a", "|", "cat"]);
    assert_eq!(loaded.warnings.len(), 1);
}

/// A value that a key does not have by default.
fn other_value(key: &Key) -> String {
    match (key.name, key.kind) {
        ("sockets", _) => "{ a = \"127.0.0.1:1\" }".to_owned(),
        ("app", _) => "\"z\"".to_owned(),
        ("heartbeat", _) => "\"7s\"".to_owned(),
        ("interfaces", _) => "\"static:127.0.0.1\"".to_owned(),
        ("stdin", _) => "\"./other\"".to_owned(),
        ("http", _) | ("url", _) => "\"https://other/\"".to_owned(),
        ("method", _) => "\"HEAD\"".to_owned(),
        ("tcp", _) => "\"127.0.0.1:2\"".to_owned(),
        ("output", Kind::Text) => "\"stderr\"".to_owned(),
        (_, Kind::Bool) => (key.default != "true").to_string(),
        (_, Kind::Duration) => "\"77s\"".to_owned(),
        (_, Kind::Size) => "\"77M\"".to_owned(),
        (_, Kind::Signal) => "\"SIGUSR1\"".to_owned(),
        (_, Kind::Mode) => "0o077".to_owned(),
        (_, Kind::Integers | Kind::Accounts) => "[7]".to_owned(),
        (_, Kind::Statuses) => "204".to_owned(),
        (_, Kind::Map) => "{ a = \"b\" }".to_owned(),
        (_, Kind::OneOf(words) | Kind::OneOfOrTable(words)) => {
            let other = words.iter().map(|word| format!("\"{word}\""));
            other.into_iter().find(|word| word != key.default).unwrap()
        }
        (_, Kind::Integer | Kind::Number | Kind::Limit | Kind::Share) => "7".to_owned(),
        _ => "\"other\"".to_owned(),
    }
}

#[test]
fn a_reload_does_with_each_key_what_the_registry_says() {
    // Tables are tried key by key, and these need more than themselves.
    let apart =
        ["within", "env_file", "source", "once", "each", "cron", "tz", "instances", "spread"];
    let mut tried = 0;
    for key in keys().iter().filter(|key| key.table.starts_with("jobs.NAME")) {
        let table = matches!(key.kind, Kind::Table | Kind::Tables);
        if table || apart.contains(&key.name) || key.table == "jobs.NAME.when" {
            continue;
        }
        let before = plan(&with(key.table, "", "").replace("[jobs.x.reload]\n", ""));
        let after = plan(&with(key.table, key.name, &other_value(key)));
        let changes = mainstay_core::plan::diff(&before, &after);
        let x = changes.jobs.iter().find(|change| change.job.as_str() == "x").unwrap();
        let expected = match key.reload {
            OnReload::Live => Change::Live,
            OnReload::Restart => Change::Restart,
            OnReload::NewRun => panic!("a job waits for no run of its node"),
        };
        assert_eq!(x.change, expected, "{}.{}", key.table, key.name);
        tried += 1;
    }
    assert!(tried > 60, "only {tried}");
}

fn of(source: &str, event: Awaited) -> Condition {
    Condition { source: SourceRef::Job(Name::new(source).unwrap()), event }
}

#[test]
fn conditions_and_triggers_are_read_as_written() {
    let plan = plan(
        r#"
        [jobs.db]
        exec = "db"
        [jobs.a]
        exec = "a"
        when = [
            { source = "db", once = "healthy", timeout = "1m" },
            { once = "enterMaintenance" },
            { cron = "0 3 * * *", tz = "UTC" },
        ]
        while = { source = "db" }
        [jobs.b]
        exec = "b"
        when = { each = "hup" }
        [jobs.c]
        exec = "c"
        when = { source = "db", once = "stopping" }
        [jobs.d]
        exec = "d"
        when = { interval = "5s" }
        restart = "always"
        "#,
    );
    let a = plan.job("a").unwrap();
    let node =
        Condition { source: SourceRef::Node, event: Awaited::Event(EventName::EnterMaintenance) };
    assert_eq!(a.when.once, [of("db", Awaited::Event(EventName::Healthy)), node]);
    assert_eq!(a.when.timeout, Some(Duration::from_secs(60)));
    let cron = Cron { expression: "0 3 * * *".into(), tz: Some("UTC".into()) };
    assert_eq!(a.when.trigger, Some(Trigger::Cron(cron)));
    let source = SourceRef::Job(Name::new("db").unwrap());
    assert_eq!(a.follows, Some(While { source, on_loss: OnLoss::Stop }));
    let hup = Condition { source: SourceRef::Node, event: Awaited::Signal { signal: Signal::HUP } };
    assert_eq!(plan.job("b").unwrap().when.trigger, Some(Trigger::Each(vec![hup])));
    let rules: Vec<RestartOn> = plan.jobs.iter().map(|job| job.restart.on).collect();
    let never = RestartOn::Never;
    assert_eq!(rules, [RestartOn::Failure, never, never, never, RestartOn::Any]);
}

#[test]
fn checks_have_their_defaults_and_names_of_their_own() {
    let job = job(r#"health = [
            { http = "http://127.0.0.1:80/", interval = "2s" },
            { http = { url = "https://[::1]:8443/x?y", status = ["2xx", 304], body_matches = "^ok" } },
            { exec = "./check 'a b'", name = "http-2" },
            { notify = true, timeout = "3s" },
        ]
        reload = { exec = "reload it" }
        timeout = "1h""#);
    let names: Vec<&str> = job.checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names, ["http", "http-3", "http-2", "notify"]);
    let two = Duration::from_secs(2);
    assert_eq!((job.checks[0].interval, job.checks[0].timeout), (two, two));
    let Probe::Http(http) = &job.checks[1].probe else { panic!("{:?}", job.checks[1]) };
    assert_eq!(http.status, [(200, 299), (304, 304)]);
    assert_eq!(job.checks[2].probe, Probe::Exec(vec!["./check".into(), "a b".into()]));
    assert!(job.notify, "a check by sd_notify needs the socket");
    assert_eq!(job.reload, Some(Reload::Exec(vec!["reload".into(), "it".into()])));
    assert_eq!(job.timeout, Some(Duration::from_secs(3600)));
}

#[test]
fn instances_are_jobs_with_numbers_and_a_source_means_all_or_any_of_them() {
    let plan = plan(
        r#"
        [jobs.web]
        exec = "web --port 808{instance}"
        instances = 2
        env = { N = "{instance}", PORT = "${PORT_{instance}:-none}" }
        cwd = "/srv/{instance}"
        sockets = { http = "127.0.0.1:808{instance}" }
        health = { tcp = "127.0.0.1:808{instance}" }
        [jobs.pair]
        exec = "pair"
        instances = 2
        when = { source = "web-{instance}", once = "healthy" }
        [jobs.all]
        exec = "all {instance}"
        when = { source = "web", once = "healthy" }
        [jobs.any]
        exec = "any"
        when = { source = "web", each = "exitFailed" }
        "#,
    );
    let names: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["web-1", "web-2", "pair-1", "pair-2", "all", "any"]);
    let second = plan.job("web-2").unwrap();
    assert_eq!(second.exec, ["web", "--port", "8082"]);
    assert_eq!(second.env[0].1, "2");
    assert_eq!(second.cwd.as_deref(), Some(std::path::Path::new("/srv/2")));
    assert_eq!(second.sockets[0].address, "127.0.0.1:8082");
    assert_eq!(second.checks[0].probe, Probe::Tcp("127.0.0.1:8082".into()));
    assert_eq!(second.instance_of.as_ref().map(|name| name.as_str()), Some("web"));
    assert_eq!(
        plan.job("pair-2").unwrap().when.once,
        [of("web-2", Awaited::Event(EventName::Healthy))]
    );
    let all = plan.job("all").unwrap();
    assert_eq!(all.exec, ["all", "{instance}"]);
    assert_eq!(
        all.when.once,
        [
            of("web-1", Awaited::Event(EventName::Healthy)),
            of("web-2", Awaited::Event(EventName::Healthy))
        ]
    );
    let any = vec![
        of("web-1", Awaited::Event(EventName::ExitFailed)),
        of("web-2", Awaited::Event(EventName::ExitFailed)),
    ];
    assert_eq!(plan.job("any").unwrap().when.trigger, Some(Trigger::Each(any)));
}

#[test]
fn an_app_and_the_places_in_it_are_read_as_written() {
    let plan = plan(
        "[apps.shop]\nstart_sequence = 2\nstop_order = \"reverse\"\n[jobs.a]\nexec = \"a\"\napp = \
         \"shop\"\nplace = { start_sequence = 3, required = true, on_failure = \"stop-app\" }\n",
    );
    assert_eq!((plan.apps[0].start_sequence, plan.apps[0].stop_order), (2, StopOrder::Reverse));
    let a = &plan.jobs[0];
    assert_eq!(a.app.as_ref().map(|app| app.as_str()), Some("shop"));
    assert_eq!((a.place.start_sequence, a.place.required), (3, true));
    assert_eq!(a.place.on_failure, Some(OnFailure::StopApp));
}

#[test]
fn an_unknown_time_zone_says_what_to_do() {
    let told =
        refused("[jobs.a]\nexec = \"a\"\nwhen = { cron = \"0 3 * * *\", tz = \"Europe/Berln\" }");
    assert!(told.contains("the time zone 'Europe/Berln' is not known here"), "{told}");
}

#[test]
fn a_cron_of_a_day_that_there_is_not_is_refused() {
    let told = refused("[jobs.a]\nexec = \"a\"\nwhen = { cron = \"0 0 30 2 *\" }");
    assert!(told.contains("'0 0 30 2 *' is never due"), "{told}");
    plan("[jobs.a]\nexec = \"a\"\nwhen = { cron = \"0 0 29 2 *\" }");
    plan("[jobs.a]\nexec = \"a\"\nwhen = { cron = \"@daily\" }");
}

#[test]
fn a_job_has_as_many_sockets_as_a_process_can_be_given() {
    let config = |count: usize| {
        let sockets: String =
            (0..count).map(|n| format!("s{n} = \"127.0.0.1:{}\"\n", 4000 + n)).collect();
        format!("[jobs.web]\nexec = \"true\"\n[jobs.web.sockets]\n{sockets}")
    };
    assert_eq!(plan(&config(60)).jobs[0].sockets.len(), 60);
    let told = refused(&config(100));
    for part in ["100 sockets, more than 60", ":64:", "divide them between jobs"] {
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn a_thousand_warnings_never_hide_an_error() {
    let many: String = (0..2000).map(|n| format!("[jobs.j{n}]\nexec = \"a | b\"\n")).collect();
    assert!(refused(&format!("{many}[jobs.x]\nexec = 1\n")).contains("jobs.x.exec"));
}

#[test]
fn many_instances_with_the_same_mistake_are_told_once() {
    let told = refused(
        "[jobs.a]\nexec = \"a\"\ninstances = 500\nnice = 99\nwhen = { source = \"b\", once = \"healthy\" }",
    );
    assert!(told.ends_with("error: 2 mistakes"), "{told}");
}

#[test]
fn each_job_knows_the_lines_it_is_written_on() {
    let loaded = loaded(
        "[jobs.a]\nexec = \"a\"\n\n[jobs.b]\nexec = \"b\"\ninstances = 2\nwhen = { source = \"a\", once = \"healthy\" }\n",
    );
    let places: Vec<(&str, &str, Option<&str>)> = loaded
        .places
        .iter()
        .map(|it| (it.job.as_str(), it.at.as_str(), it.when.as_deref()))
        .collect();
    let when = Some("test.toml:7");
    let expected =
        [("a", "test.toml:1", None), ("b-1", "test.toml:4", when), ("b-2", "test.toml:4", when)];
    assert_eq!(places, expected);
}

#[test]
fn the_api_listens_only_where_it_is_said_who_may_use_it() {
    let api = |lines: &str| format!("[api]\n{lines}\n[jobs.x]\nexec = \"true\"\n");
    let error = refused(&api("listen = \"127.0.0.1:7070\""));
    assert!(error.contains("nothing says who may use it"), "{error}");
    let error = refused(&api("listen = \"127.0.0.1:7070\"\ntls = { cert = \"c\", key = \"k\" }"));
    assert!(error.contains("nothing says who may use it"), "{error}");
    let error = refused(&api("listen = \"127.0.0.1:7070\"\ninsecure = true\ntoken_file = \"t\""));
    assert!(error.contains("everybody is let in, and not everybody"), "{error}");
    let error = refused(&api("token_file = \"t\""));
    assert!(error.contains("without listen does nothing"), "{error}");
    let error = refused(&api("listen = \"127.0.0.1:0\"\ninsecure = true"));
    assert!(error.contains("port"), "{error}");
    for open in [
        "insecure = true",
        "token_file = \"t\"",
        "tls = { cert = \"c\", key = \"k\", client_ca = \"a\" }",
    ] {
        let plan = plan(&api(&format!("listen = \"127.0.0.1:7070\"\n{open}")));
        assert!(plan.api.listen.is_some());
        assert_eq!(plan.node.exit, ExitRule::Never, "somebody means to come and ask");
    }
    let warnings = loaded(&api("listen = \"0.0.0.0:7070\"\ninsecure = true")).warnings;
    assert!(warnings.iter().any(|it| it.message.contains("may run commands here")));
}

#[test]
fn a_limit_that_this_machine_cannot_enforce_is_a_warning() {
    let ctx = mainstay_config::Context { unlimited: true, ..super::context() };
    let text = "[jobs.a]\nexec = \"a\"\nlimits = { memory = \"1G\", nofile = 100, pids = 5 }";
    let loaded = mainstay_config::parse("x", text, &ctx).unwrap();
    let told: Vec<&str> = loaded.warnings.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("jobs.a.limits.memory: not enforced"), "{told:?}");
    assert_eq!(loaded.plan.jobs[0].limits.memory, Some(1 << 30));
}

#[test]
fn a_shutdown_has_the_time_that_its_jobs_have_written() {
    let seconds = |text: &str| plan(text).node.stop_timeout.as_secs();
    let jobs = "[jobs.db]\nexec = \"a\"\n[jobs.web]\nexec = \"a\"\n\
                when = { source = \"db\", once = \"healthy\" }\n";
    assert_eq!(seconds(jobs), 8, "a chain of usual times");
    let long = format!("{jobs}stop = {{ timeout = \"30s\" }}");
    assert_eq!(seconds(&long), 36, "web's thirty, five for db, one for the node");
    assert_eq!(seconds(&format!("{jobs}stop = {{ timeout = \"1s\" }}")), 8);
    let chain = loaded(&long).longest_stop.expect("more than usual");
    assert_eq!(chain.jobs, [1, 0]);

    let short = loaded(&format!("[node]\nstop_timeout = \"10s\"\n{long}"));
    assert_eq!(short.plan.node.stop_timeout.as_secs(), 10);
    let told: Vec<&str> = short.warnings.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("web 30s (test.toml:8) → db"), "{told:?}");
    assert!(loaded(&format!("[node]\nstop_timeout = \"35s\"\n{long}")).warnings.is_empty());
    assert!(loaded(&format!("[node]\nstop_timeout = \"1s\"\n{jobs}")).warnings.is_empty());
}
