//! What may not take all there is: templates that need too much, and checks that say too much.

use super::{WEB, put, rendered, rollout, until_rollout};
use mainstay_tests::{Node, RolledOut, until};
use serde_json::json;
use std::{
    fs,
    time::{Duration, Instant},
};

/// One that grows from step to step, and one that needs all at once.
const GREEDY: &str = r#"name = {{ app.name }}
{% if app.name == "doubling" -%}
{% set ns = namespace(s="aaaaaaaa") %}{% for i in range(40) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}
{%- elif app.name == "indented" -%}
{{ "a"|indent(1000000000) }}
{%- endif %}
"#;

const FLOOD: &str = r#"check = ["sh", "-c", "grep -q flood {{ staged }} || exit 0; head -c 1000000 /dev/zero | tr '\\0' 'x' | fold; echo; echo the reason; exit 4"]"#;

fn started(template: &str, keys: &str) -> Node {
    let rolled_out = RolledOut::new().template("conf", "web.conf", template, keys).with(WEB);
    let node = rolled_out.serving(&json!({ "port": 80, "name": "one" })).launch();
    node.wait_until_ready();
    until_rollout(&node, "running");
    node
}

/// The most memory that the agent has ever had, in MiB.
fn peak(node: &Node) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", node.agent())).expect("it lives");
    let peak = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).expect("in every status");
    let kib = peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
    kib >> 10
}

fn failure_of(node: &Node, name: &str) -> String {
    put(node.path(), 81, name);
    until("it has failed", || {
        let rollout = rollout(node);
        let is_it = rollout["profiles"][0]["refused"].is_object() && rollout["doing"].is_null();
        is_it.then(|| rollout["failure"]["failure"].as_str().map(str::to_owned))?
    })
}

#[test]
fn a_template_that_needs_too_much_memory_fails_and_the_next_version_works() {
    let node = started(GREEDY, "");
    let (agent, before) = (node.agent(), peak(&node));
    for (round, name) in ["doubling", "indented"].into_iter().enumerate() {
        let begun = Instant::now();
        let told = failure_of(&node, name);
        assert_eq!(told, "template 'conf': it needs more than 512 MiB of memory", "{name}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        assert!(rendered(&node).contains("name = one") || round > 0);
        put(node.path(), 82, &format!("well-{round}"));
        until_rollout(&node, "running");
        assert!(rendered(&node).contains(&format!("name = well-{round}")));
    }
    assert_eq!(node.agent(), agent, "it has not died of it");
    assert!(peak(&node) < before + 64, "{before} MiB, then {} MiB", peak(&node));
}

/// Chains of which no parser counts the depth: of filters, and of conditions.
pub(super) fn deep() -> [String; 2] {
    let conditions = "{% elif app.port == 1 %}x".repeat(60_000);
    [
        format!("{{{{ app.port{} }}}}\n", "|string".repeat(60_000)),
        format!("{{% if app.port == 1 %}}x{conditions}{{% endif %}}\n"),
    ]
}

#[test]
fn a_template_that_a_reload_has_nested_too_deep_fails_the_reload_and_not_the_agent() {
    let node = started("name = {{ app.name }}\n", "");
    let agent = node.agent();
    for deep in deep() {
        fs::write(node.path().join("web.conf.j2"), deep).expect("written");
        let reload = node.ask(&["reload"]);
        let told = String::from_utf8_lossy(&reload.stderr);
        assert_eq!(reload.status.code(), Some(1), "{told}");
        assert!(told.contains("template 'conf': its expressions or"), "{told}");
    }
    assert!(rendered(&node).contains("name = one"));
    assert_eq!(node.agent(), agent, "it has not died of it");
}

#[test]
fn of_a_check_that_floods_its_last_lines_are_told() {
    let node = started("name = {{ app.name }}\n", FLOOD);
    let told = failure_of(&node, "flood");
    assert!(told.ends_with("the reason") && told.len() < 4096, "{told}");
}
