//! A fleet that is asked as Supvisors is, by a client that is not ours.

use super::{TestFleet, fleet_of, home, kill, until_home};
use mainstay_tests::{Node, until};
use std::process::Command;

const JOBS: &str = r#"
    [api]
    xmlrpc = { socket = "rpc.sock" }
    [apps.shop]
    [jobs.db]
    exec = "sleep 1000"
    app = "shop"
    place = { load = 60 }
    [jobs.web]
    exec = "sleep 1000"
    app = "shop"
    place = { load = 60, start_sequence = 2, nodes = ["n2", "n3"] }
    [jobs.tool]
    exec = ["sh", "-c", "exec sleep 1000", "tool"]
    app = "shop"
    place = { start_sequence = 0, nodes = ["n3"] }
    [jobs.heavy]
    exec = "sleep 1000"
    app = "shop"
    place = { start_sequence = 0, load = 100, nodes = ["n1"] }
    [jobs.lone]
    exec = "sleep 1000"
    "#;

/// The result as Python shows it, or the fault.
fn call(node: &Node, method: &str, params: &str) -> String {
    let output = Command::new("python3")
        .arg("-c")
        .arg(include_str!("../api/supervisor/call.py"))
        .arg(node.path().join("rpc.sock"))
        .args([&format!("supvisors.{method}"), params])
        .output()
        .expect("python can be started");
    let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    assert!(output.status.success(), "{method}: {}", String::from_utf8_lossy(&output.stderr));
    text
}

fn shop() -> TestFleet {
    let fleet = fleet_of(JOBS);
    fleet.until_in_operation();
    until_home(&fleet.nodes[2], "db", "n1");
    until_home(&fleet.nodes[2], "web", "n2");
    fleet
}

#[test]
fn any_node_of_a_fleet_answers_as_supvisors_does_about_all_of_it() {
    let fleet = shop();
    let [_, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    // Under the names of 0.8 and of today.
    assert_eq!(call(third, "get_master_address", "[]"), "'n1'");
    let master = call(third, "get_master_identifier", "[]");
    assert!(master.contains("'nick_identifier': 'n1'"), "{master}");
    let state = call(third, "get_supvisors_state", "[]");
    for part in
        ["'fsm_statecode': 4", "'statecode': 2", "'statename': 'OPERATION'", "'n2': 'RUNNING'"]
    {
        assert!(state.contains(part), "{part} in {state}");
    }
    let seen = call(third, "get_address_info", r#"["n2"]"#);
    assert!(seen.contains("'loading': 60") && seen.contains("'statecode': 2"), "{seen}");
    let web = call(third, "get_process_info", r#"["shop:web"]"#);
    assert!(web.contains("'identifiers': ['n2']") && web.contains("'addresses': ['n2']"), "{web}");
    let rules = call(third, "get_process_rules", r#"["shop:web"]"#);
    assert!(rules.contains("'identifiers': ['n2', 'n3']"), "{rules}");
    assert_eq!(call(third, "get_conflicts", "[]"), "[]");
    let refused = call(third, "conciliate", r#"["STOP"]"#);
    let told = "fault 101: BAD_SUPVISORS_STATE: invalid Supvisors state=OPERATION - state expected \
                in ['CONCILIATION']";
    assert_eq!(refused, told);
    assert!(call(third, "get_address_info", r#"["n9"]"#).starts_with("fault 10: BAD_NAME"));

    kill(second);
    until("the loss is seen", || {
        let seen = call(third, "get_address_info", r#"["n2"]"#);
        seen.contains("'statename': 'SILENT'").then_some(())
    });
    let seen = call(third, "get_instance_info", r#"["n2"]"#);
    assert!(seen.contains("'statename': 'STOPPED'"), "{seen}");
}

#[test]
fn what_is_asked_of_one_node_in_supvisors_words_is_done_where_it_belongs() {
    let fleet = shop();
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    assert_eq!(call(first, "start_process", r#"["LESS_LOADED", "shop:tool", "a 'b c'"]"#), "True");
    assert_eq!(home(second, "tool").as_deref(), Some("n3"));
    assert_eq!(third.job("tool")["args"], serde_json::json!(["a", "b c"]));
    let again = call(second, "start_process", r#"[1, "shop:tool"]"#);
    assert_eq!(again, "fault 60: ALREADY_STARTED: shop:tool");
    // n1 has no room for it as long as db is there.
    let homeless = call(second, "start_process", r#"["CONFIG", "shop:heavy"]"#);
    assert_eq!(homeless, "fault 40: ABNORMAL_TERMINATION: failed to start shop:heavy");
    let any = call(second, "start_any_process", r#"["CONFIG", "shop:(heavy|tool)"]"#);
    assert!(any.starts_with("fault 30: FAILED: no candidate process"), "{any}");
    assert_eq!(call(second, "stop_process", r#"["shop:tool"]"#), "True");
    assert_eq!(home(third, "tool"), None);
    assert_eq!(call(third, "stop_application", r#"["shop"]"#), "True");
    assert_eq!((home(third, "db"), home(third, "web")), (None, None));
    let planned = call(third, "test_start_application", r#"["CONFIG", "shop"]"#);
    assert!(planned.contains("'running_identifiers': ['n1']"), "{planned}");
    assert_eq!(call(third, "start_application", r#"["CONFIG", "shop"]"#), "True");
    assert_eq!(home(third, "web").as_deref(), Some("n2"));
    assert_eq!(
        call(third, "restart_sequence", "[]"),
        "fault 40: ABNORMAL_TERMINATION: failed to trigger start sequence"
    );
    let numprocs = call(third, "update_numprocs", r#"["web", 3]"#);
    assert!(numprocs.starts_with("fault 104: NOT_APPLICABLE"), "{numprocs}");
    let statistics = call(third, "enable_host_statistics", "[true]");
    assert!(statistics.starts_with("fault 105: NOT_INSTALLED"), "{statistics}");
    assert_eq!(call(third, "shutdown", "[]"), "True");
}
