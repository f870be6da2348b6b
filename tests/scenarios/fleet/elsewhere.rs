//! What is asked on one node of a fleet and is about another.

use super::{fleet_of, home, kill, until_home};
use mainstay_tests::{Node, signal, until};
use rustix::process::Signal;

/// A job on n2 that says what it is told, and one of each node.
const JOBS: &str = r#"
[apps.shop]
[jobs.web]
exec = ["sh", "-c", "echo begun; trap 'echo told HUP' HUP; trap 'echo told USR1' USR1; while :; do sleep 0.1; done"]
app = "shop"
reload = { signal = "SIGHUP" }
place = { nodes = ["n2"] }
[jobs.lone]
exec = ["sh", "-c", "echo lone begins; exec sleep 1000"]
"#;

/// What a command that fails says.
fn refused(node: &Node, args: &[&str]) -> String {
    let told = node.ask(args);
    assert_eq!(told.status.code(), Some(1), "{args:?}: {told:?}");
    String::from_utf8_lossy(&told.stderr).trim().to_owned()
}

fn until_logged(node: &Node, line: &str) {
    until(&format!("web has written '{line}'"), || {
        node.must(&["logs", "web"]).lines().any(|it| it == line).then_some(())
    });
}

#[test]
fn what_is_asked_about_a_job_goes_to_the_node_where_it_runs() {
    let fleet = fleet_of(JOBS);
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    until_home(third, "web", "n2");
    let pid = second.job("web")["pid"].clone();
    assert!(third.must(&["status", "web"]).contains(&pid.to_string()), "as it is on n2");
    assert_eq!(third.ask(&["status", "web", "--here"]).status.code(), Some(0));
    assert!(!third.must(&["status", "web", "--here"]).contains(&pid.to_string()));
    let why = third.must(&["why", "web"]);
    assert!(why.starts_with("the fleet has it on n2\nweb is RUNNING"), "{why}");
    until_logged(third, "begun");
    assert_eq!(third.must(&["signal", "USR1", "web"]).trim(), "web: RUNNING on n2");
    until_logged(first, "told USR1");
    assert_eq!(third.must(&["reload", "web"]).trim(), "web: RUNNING on n2");
    until_logged(first, "told HUP");
    assert!(refused(third, &["signal", "USR1", "web", "--here"]).contains("is not running"));
    let events = third.must(&["events", "web"]);
    assert!(events.contains(" startup") || events.contains("to=RUNNING"), "{events}");
    assert!(!events.contains("lone"), "{events}");
    assert_eq!(third.must(&["kill", "web"]).trim(), "web: STOPPED on n2");
    until("its fleet wants it to rest", || {
        first.must(&["fleet", "status", "--json"]).contains("\"desired\":\"rest\"").then_some(())
    });
    assert_eq!(first.must(&["start", "web"]).trim(), "web: RUNNING on n2");
}

#[test]
fn a_node_passes_on_what_is_for_another_one() {
    let fleet = fleet_of(JOBS);
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    until_home(third, "web", "n2");
    let before = second.job("lone")["pid"].clone();
    let told = third.must(&["restart", "lone", "--on", "n2"]);
    assert!(told.starts_with("lone: RUNNING, pid ") && told.trim().ends_with(", on n2"), "{told}");
    assert_ne!(second.job("lone")["pid"], before);
    assert!(third.must(&["status", "--on", "n2"]).starts_with("n2  running"));
    assert!(third.must(&["status", "--on", "n3"]).starts_with("n3  running"), "itself");
    until("what n2 has written can be read", || {
        third.must(&["logs", "lone", "--on", "n2"]).contains("lone begins").then_some(())
    });
    let all = third.must(&["events", "--fleet", "--json"]);
    for node in ["n1", "n2", "n3"] {
        assert!(all.contains(&format!("{{\"node\":\"{node}\",")), "{node}: {all}");
    }
    let unknown = refused(third, &["status", "--on", "n9"]);
    assert!(unknown.contains("no node 'n9' is known in the fleet"), "{unknown}");
    let missing = refused(third, &["restart", "nothing", "--on", "n2"]);
    assert!(missing.contains("there is no job 'nothing'"), "{missing}");
    let once = refused(third, &["signal", "USR1", "web", "--on", "n1"]);
    assert!(once.contains("it was passed on once, and is for n2"), "{once}");
    kill(second);
    until("it is lost", || {
        refused(third, &["status", "--on", "n2"])
            .contains("n2 cannot be asked: it is SILENT")
            .then_some(())
    });
    assert!(first.must(&["status", "--on", "n3"]).starts_with("n3  running"));
}

/// A job on n2, else on n3, and jobs of each node that wait for it; one runs for its end.
const WAITING: &str = r#"
[apps.shop]
on_failure = "restart-process"
[jobs.web]
exec = "sleep 1000"
app = "shop"
place = { nodes = ["n2", "n3"] }
[jobs.begins]
exec = "sleep 1000"
when = { source = "web", once = "healthy" }
[jobs.follows]
exec = "sleep 1000"
while = { source = "web" }
[jobs.counts]
exec = ["sh", "-c", "echo up"]
when = { source = "web", each = "healthy" }
[jobs.tidies]
exec = ["sh", "-c", "echo tidied"]
when = { source = "web", once = "stopped" }
app = "shop"
place = { nodes = ["n1"] }
"#;

/// How often a job of a node itself has been started.
fn runs(node: &Node, job: &str) -> u64 {
    node.job(job)["incarnation"].as_u64().expect("a number")
}

#[test]
fn when_and_while_mean_the_copy_in_the_fleet() {
    let fleet = fleet_of(WAITING);
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    until_home(first, "web", "n2");
    for node in &fleet.nodes {
        node.until_state("begins", "RUNNING");
        node.until_state("follows", "RUNNING");
    }
    let begun = first.running("begins");
    // The agents are replaced: nothing that runs here is touched.
    let (follower, agent) = (first.running("follows"), first.agent());
    signal(agent, Signal::KILL);
    until("another agent is there", || {
        first.try_agent().filter(|it| *it != agent && !first.is_spare(*it))
    });
    until_home(first, "web", "n2");
    assert_eq!(first.must(&["stop", "web"]).trim(), "web: STOPPED on n2");
    for node in &fleet.nodes {
        node.until_state("follows", "STOPPED");
    }
    assert_eq!(first.running("begins"), begun, "a latch was met");
    let events = first.must(&["events", "follows"]);
    assert_eq!(events.matches("stopping").count(), 1, "{events}");
    assert!(!mainstay_tests::is_alive(follower));
    let why = first.must(&["why", "follows"]);
    assert!(why.contains("it waits for web healthy"), "{why}");
    assert!(why.contains("web is STOPPED on n2"), "{why}");
    until("its hook runs where it ran", || (runs(second, "tidies") == 1).then_some(()));
    let counted = runs(first, "counts");
    first.must(&["start", "web"]);
    for node in &fleet.nodes {
        node.until_state("follows", "RUNNING");
    }
    until("the trigger comes", || (runs(first, "counts") == counted + 1).then_some(()));
    // Its node is lost: it goes elsewhere, and those who follow it come back with it.
    let follower = first.running("follows");
    kill(second);
    until_home(first, "web", "n3");
    until("the follower has gone down and come back", || {
        let now = first.job("follows");
        (now["state"] == "RUNNING" && now["pid"] != follower).then_some(())
    });
    assert_eq!(first.running("begins"), begun, "a failover asks for no latch");
    assert_eq!((runs(first, "tidies"), runs(third, "tidies")), (0, 0), "it has not stopped there");
}

#[test]
fn what_is_disabled_is_so_in_the_whole_fleet_and_here_on_this_node_alone() {
    let fleet = fleet_of(WAITING);
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    until_home(first, "web", "n2");
    assert_eq!(first.must(&["disable", "web"]).trim(), "web: STOPPED on n2");
    until("every node shows it", || {
        // Not all is as it should be, and a status says so with its code.
        let status = |node: &Node| node.ask(&["status"]).stdout;
        let shows =
            |node: &Node| String::from_utf8_lossy(&status(node)).contains("STOPPED (disabled)");
        fleet.nodes.iter().all(shows).then_some(())
    });
    assert!(third.must(&["why", "web"]).starts_with("it is disabled in the fleet, over boots"));
    assert!(refused(third, &["start", "web"]).contains("'web' is disabled in the fleet"));
    third.must(&["app", "start", "shop"]);
    assert_eq!(home(third, "web"), None);
    third.must(&["enable", "web"]);
    until_home(third, "web", "n2");
    second.must(&["disable", "web", "--here"]);
    until_home(first, "web", "n3");
    until("it is shown", || {
        first.must(&["fleet", "status"]).contains("disabled on n2").then_some(())
    });
    kill(third);
    until("it has no home", || {
        // Until n3 is known to be lost it is asked in vain.
        let why = first.ask(&["why", "web"]).stdout;
        String::from_utf8_lossy(&why).contains("not placed").then_some(())
    });
    assert!(second.must(&["why", "web", "--here"]).contains("`mainstay enable web --here`"));
    second.must(&["enable", "web", "--here"]);
    until_home(first, "web", "n2");
}
