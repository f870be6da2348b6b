//! What is rolled out: profiles, templates and services, and what they refer to.

use super::{plan, refused};
use mainstay_core::{
    name::Name,
    plan::{
        ExitRule, ProfileFormat, ProfileSource, ReloadMethod, RolloutPlan, ServiceCheck,
        ServiceTarget,
    },
    signal::Signal,
};
use std::{path::PathBuf, time::Duration};

const WHOLE: &str = r#"
[jobs.web]
exec = "./web"
when = { source = "template.conf", once = "healthy" }

[profiles.app]
source = "file"
path = "/etc/app.json"

[templates.conf]
src = "/etc/web.conf.j2"
dst = "/etc/web.conf"
profiles = ["app"]

[services.web]
job = "web"
templates = ["conf"]
"#;

/// Of a table whose keys need others.
pub(super) fn is_of_rollout(table: &str) -> bool {
    ["profiles.", "templates.", "services.", "rollout."].iter().any(|it| table.starts_with(it))
}

fn rollout(text: &str) -> RolloutPlan {
    let rollout = plan(text).rollout.expect("something is rolled out");
    RolloutPlan::clone(&rollout)
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// The whole with one line replaced.
fn with(line: &str, by: &str) -> String {
    assert!(WHOLE.contains(line), "{line}");
    WHOLE.replacen(line, by, 1)
}

#[test]
fn a_rollout_that_says_only_what_it_must_has_every_default() {
    let rollout = rollout(WHOLE);
    assert_eq!(rollout.refresh_interval, Duration::from_secs(30));
    assert_eq!(rollout.failure_timeout, Duration::from_secs(900));
    assert_eq!((rollout.on_failure, rollout.exit_on_failure), (None, false));
    let source = ProfileSource::File { path: PathBuf::from("/etc/app.json") };
    assert_eq!((&rollout.profiles[0].source, rollout.profiles[0].format), (&source, None));
    let template = &rollout.templates[0];
    assert_eq!(template.profiles, [name("app")]);
    assert_eq!((&template.owner, template.mode, &template.check), (&None, None, &None));
    assert_eq!(template.check_timeout, Duration::from_secs(30));
    let service = &rollout.services[0];
    assert_eq!(service.target, ServiceTarget::Job(name("web")));
    assert_eq!(service.reload, ReloadMethod::TryReloadOrRestart);
    assert_eq!((service.checks.len(), service.bake_time), (0, Duration::ZERO));
    assert_eq!(service.reload_timeout, Duration::from_secs(60));
    // What is documented as a default changes nothing.
    let said = "[rollout]\nrefresh_interval = \"30s\"\nfailure_timeout = \"15m\"\n";
    assert_eq!(super::plan(&format!("{said}{WHOLE}")).rollout, plan(WHOLE).rollout);
}

#[test]
fn a_node_that_only_rolls_out_goes_on_and_ends_when_that_has_failed() {
    let jobs = WHOLE.find("[profiles").unwrap();
    let without = WHOLE[jobs..].replace("job = \"web\"", "unit = \"web.service\"");
    let plan = plan(&without);
    assert_eq!(plan.node.exit, ExitRule::Never);
    let rollout = plan.rollout.unwrap();
    assert!(rollout.exit_on_failure);
    assert_eq!(rollout.services[0].target, ServiceTarget::Unit("web.service".to_owned()));
    let stays = format!("[rollout]\nexit_on_failure = false\n{without}");
    assert!(!self::rollout(&stays).exit_on_failure);
}

#[test]
fn the_staged_file_is_one_word_of_a_check_however_it_is_written() {
    let check = |check: &str| {
        let text = with("profiles = [\"app\"]", &format!("profiles = [\"app\"]\ncheck = {check}"));
        rollout(&text).templates[0].check.clone().expect("a check")
    };
    let words = ["nginx", "-t", "-c", "{{ staged }}", "-q"];
    assert_eq!(check(r#""nginx -t -c {{ staged }} -q""#), words);
    assert_eq!(check(r#"["nginx", "-t", "-c", "{{ staged }}", "-q"]"#), words);
    assert_eq!(
        check(r#""x --file={{ staged }}:{{staged}} {{  staged  }}""#),
        ["x", "--file={{ staged }}:{{staged}}", "{{ staged }}",]
    );
}

#[test]
fn a_metric_has_a_namespace_of_its_own_and_a_name() {
    let written = |table: &str| format!("[rollout]\ncloudwatch = {table}\n{WHOLE}");
    let whole = r#"{ namespace = "Shop", metric = "Failed", dimensions = { A = "1", B = "2" } }"#;
    let metric = rollout(&written(whole)).cloudwatch.expect("a metric");
    assert_eq!((metric.namespace.as_str(), metric.name.as_str()), ("Shop", "Failed"));
    let dimensions = [("A", "1"), ("B", "2")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(metric.dimensions, dimensions);
    for (table, why) in [
        (r#"{ metric = "Failed" }"#, "'namespace' is missing"),
        (r#"{ namespace = "Shop" }"#, "'metric' is missing"),
        (r#"{ namespace = "AWS/EC2", metric = "x" }"#, "namespaces of AWS itself"),
    ] {
        assert!(refused(&written(table)).contains(why), "{table}: {}", refused(&written(table)));
    }
}

#[test]
fn everything_of_a_rollout_is_read_as_written() {
    let rollout = rollout(
        r#"
        [jobs.web]
        exec = "./web"
        [rollout]
        refresh_interval = "5s"
        failure_timeout = "1m"
        on_failure = "./tell it"
        exit_on_failure = true
        [profiles.far]
        source = "http"
        url = "https://config.example/app"
        token_file = "/etc/token"
        ca = "/etc/ca.pem"
        format = "yaml"
        [templates.b]
        src = "/b.j2"
        dst = "/b"
        profiles = ["far"]
        owner = "www:adm"
        mode = "0640"
        check = ["nginx", "-t", "-c", "{{ staged }}"]
        check_timeout = "5s"
        [templates.a]
        src = "/a.j2"
        dst = "/a"
        [services.web]
        job = "web"
        templates = ["b", "a"]
        reload = { signal = "SIGHUP" }
        checks = [{ http = "http://127.0.0.1/" }, { exec = "./ok" }, { change_child_pid = "all" }]
        reload_timeout = "10s"
        bake_time = "3s"
        [services.hook]
        templates = "a"
        reload = { exec = "./told" }
        "#,
    );
    assert_eq!(rollout.refresh_interval, Duration::from_secs(5));
    assert_eq!(rollout.on_failure, Some(vec!["./tell".to_owned(), "it".to_owned()]));
    assert!(rollout.exit_on_failure);
    let ProfileSource::Http { url, token_file, ca } = &rollout.profiles[0].source else {
        panic!("{:?}", rollout.profiles[0].source)
    };
    assert_eq!(url, "https://config.example/app");
    assert_eq!(token_file.as_deref(), Some("/etc/token".as_ref()));
    assert_eq!(ca.as_deref(), Some("/etc/ca.pem".as_ref()));
    assert_eq!(rollout.profiles[0].format, Some(ProfileFormat::Yaml));
    let names: Vec<&str> = rollout.templates.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["b", "a"], "in the order of the file");
    let template = &rollout.templates[0];
    assert_eq!((template.owner.as_deref(), template.mode), (Some("www:adm"), Some(0o640)));
    assert_eq!(template.check.as_ref().unwrap()[3], "{{ staged }}");
    let web = &rollout.services[0];
    assert_eq!(web.reload, ReloadMethod::Signal(Signal::HUP));
    assert_eq!((web.checks.len(), web.bake_time), (3, Duration::from_secs(3)));
    assert_eq!(web.checks[2], ServiceCheck::ChangeChildPid { strict: true });
    let hook = &rollout.services[1];
    assert_eq!((&hook.target, hook.templates.len()), (&ServiceTarget::Command, 1));
}

#[test]
fn profiles_of_appconfig_and_checks_of_instances_are_read_as_written() {
    let rollout = rollout(
        r#"
        [rollout]
        signal_files = "/run/mainstay-units"
        [profiles.app]
        source = "appconfig"
        application = "shop"
        environment = "prod"
        profile = "web"
        region = "eu-central-1"
        endpoint = "http://127.0.0.1:4566"
        [profiles.near]
        source = "agent"
        application = "shop"
        environment = "prod"
        profile = "near"
        url = "http://127.0.0.1:2772"
        [templates.conf]
        src = "/a.j2"
        dst = "/a"
        profiles = ["app", "near"]
        [services.web]
        unit = "web@.service"
        templates = ["conf"]
        reload = "flip-flop"
        checks = [
            { unicorn_health_comparison = { exec = "./counts {instance}", points = 7 } },
            { http = "http://127.0.0.1/" },
        ]
        [services.nginx]
        unit = "nginx.service"
        templates = ["conf"]
        checks = ["change-child-pid"]
        "#,
    );
    assert_eq!(rollout.signal_files.as_deref(), Some("/run/mainstay-units".as_ref()));
    let ProfileSource::AppConfig { application, region, endpoint, .. } =
        &rollout.profiles[0].source
    else {
        panic!("{:?}", rollout.profiles[0])
    };
    assert_eq!((application.as_str(), region.as_deref()), ("shop", Some("eu-central-1")));
    assert_eq!(endpoint.as_deref(), Some("http://127.0.0.1:4566"));
    let ProfileSource::Agent { profile, url, .. } = &rollout.profiles[1].source else {
        panic!("{:?}", rollout.profiles[1])
    };
    assert_eq!((profile.as_str(), url.as_deref()), ("near", Some("http://127.0.0.1:2772")));
    let web = &rollout.services[0];
    assert_eq!(web.reload, ReloadMethod::FlipFlop);
    let ServiceCheck::HealthComparison(compared) = &web.checks[0] else {
        panic!("{:?}", web.checks)
    };
    assert_eq!((compared.requests, compared.points), (20, 7));
    let nginx = &rollout.services[1];
    assert_eq!(nginx.checks, [ServiceCheck::ChangeChildPid { strict: false }]);
}

#[test]
fn what_does_not_fit_together_is_told_where_it_is_written() {
    let cases = [
        ("profiles = [\"app\"]", "profiles = [\"ap\"]", "did you mean 'app'?"),
        ("templates = [\"conf\"]", "templates = [\"cnf\"]", "did you mean 'conf'?"),
        ("job = \"web\"", "job = \"wob\"", "did you mean 'web'?"),
        ("job = \"web\"", "", "nobody is told"),
        ("job = \"web\"", "job = \"web\"\nunit = \"w.service\"", "together"),
        ("source = \"file\"", "", "'source' is missing"),
        ("path = \"/etc/app.json\"", "", "'path' is missing"),
        ("path = \"/etc/app.json\"", "path = \"/a\"\nurl = \"http://h\"", "means nothing"),
        ("source = \"file\"", "source = \"agent\"", "'application' is missing"),
        ("job = \"web\"", "job = \"web\"\nreload = \"flip-flop\"", "no unit"),
        (
            "job = \"web\"",
            "job = \"web\"\nchecks = { unicorn_health_comparison = { exec = \"x\" } }",
            "without two instances",
        ),
        (
            "job = \"web\"",
            "job = \"web\"\nchecks = \"unicorn-health-comparison\"",
            "not said where",
        ),
        ("dst = \"/etc/web.conf\"", "", "'dst' is missing"),
        ("template.conf", "template.cnf", "did you mean 'template.conf'?"),
        ("once = \"healthy\"", "once = \"exitSuccess\"", "not said by a profile or a template"),
        ("templates = [\"conf\"]", "", "it would never be told"),
    ];
    for (line, by, expected) in cases {
        let told = refused(&with(line, by));
        assert!(told.contains(expected), "{by}: {told}");
    }
}

#[test]
fn a_destination_that_is_taken_or_none_is_told_where_it_is_written() {
    let of = |dst: &str| refused(&with("dst = \"/etc/web.conf\"", &format!("dst = \"{dst}\"")));
    let cases = [
        ("/etc/web.conf.j2", "it is the src of template 'conf'"),
        ("/etc/x/../web.conf.j2", "it is the src of template 'conf'"),
        ("/etc/web.conf.j2/below", "it lies in the src of template 'conf'"),
        ("/etc/app.json", "it is the file of profile 'app'"),
        ("/etc/./x/../app.json", "it is the file of profile 'app'"),
        ("/etc", "it holds the file of profile 'app'"),
        ("test.toml", "it is the configuration file"),
        (".", "it holds the configuration file"),
        ("/", "it is no name of a file"),
        ("/etc/conf/..", "it is no name of a file"),
        ("/etc/.web.conf.mainstay-new", "a rollout uses such names for itself"),
        ("/etc/.d.mainstay-0123456789abcdef", "a rollout uses such names for itself"),
        ("/etc/web.conf.edited-12", "a rollout uses such names for itself"),
    ];
    for (dst, expected) in cases {
        let told = of(dst);
        assert!(told.contains(&format!("templates.conf.dst: {expected}")), "{dst}: {told}");
        assert!(told.contains("test.toml:12:7"), "{dst}: {told}");
    }
    let free = ["/etc/web", "/etc/app.json.d/x", "/etc/.web.conf", "/etc/x.edited-", "/etc/a/../b"];
    for dst in free {
        plan(&with("dst = \"/etc/web.conf\"", &format!("dst = \"{dst}\"")));
    }
}

#[test]
fn two_templates_of_one_destination_are_told_however_it_is_written() {
    let other = |src: &str, dst: &str| {
        let other = format!("[templates.other]\nsrc = \"{src}\"\ndst = \"{dst}\"\n");
        refused(&format!("{WHOLE}{other}"))
    };
    let cases = [
        ("/x.j2", "/etc/web.conf", "it is the dst of template 'conf'"),
        ("/x.j2", "/etc/x/../web.conf", "it is the dst of template 'conf'"),
        ("/x.j2", "/etc//./web.conf/", "it is the dst of template 'conf'"),
        ("/x.j2", "/etc/web.conf/part", "it lies in the dst of template 'conf'"),
        ("/x.j2", "/etc/web.conf.j2", "it is the src of template 'conf'"),
    ];
    for (src, dst, expected) in cases {
        let told = other(src, dst);
        assert!(told.contains(&format!("templates.other.dst: {expected}")), "{dst}: {told}");
        assert!(told.contains("test.toml:20:7"), "{dst}: {told}");
    }
    let told = other("/etc/web.conf", "/etc/y");
    assert!(told.contains("templates.conf.dst: it is the src of template 'other'"), "{told}");
}
