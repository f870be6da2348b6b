//! `mainstay fleet`

use super::key::key;
use crate::{
    args::{FleetAction, FleetArgs},
    client::{Client, PROMPT, read},
    commands::jobs::app,
    failure::{Failure, USAGE},
    term::{Page, Tint, print_json},
};
use mainstay_core::{fleet::PeerState, job::Desired};
use mainstay_wire::api::{FleetNodeStatus, FleetStatus, PATIENCE, PlacedStatus};
use serde_json::json;

pub(crate) fn fleet(args: &FleetArgs) -> Result<i32, Failure> {
    let node = || {
        let missing = || Failure::new(USAGE, "name the node: mainstay fleet drain NODE");
        args.of.as_deref().ok_or_else(missing)
    };
    let (route, body, told) = match args.action {
        FleetAction::Key => return key(args),
        FleetAction::Status => return show(args, whole),
        FleetAction::Nodes => return show(args, nodes),
        FleetAction::Drain => {
            let node = node()?;
            ("drain", json!({ "node": node }), format!("nothing is placed on {node} any more"))
        }
        FleetAction::Undrain => {
            let node = node()?;
            ("undrain", json!({ "node": node }), format!("jobs may be placed on {node} again"))
        }
        FleetAction::Readmit => {
            let node = node()?;
            ("readmit", json!({ "node": node }), format!("{node} may take part again"))
        }
        FleetAction::Restart => {
            let told = "the fleet begins anew: apps stop in order, then every node has a new run";
            ("restart", json!({}), told.to_owned())
        }
        FleetAction::Shutdown => {
            ("shutdown", json!({}), "the fleet ends: apps in order, then every node".to_owned())
        }
    };
    let client = Client::of(&args.node)?;
    let answer = client.post(&format!("/v1/fleet/{route}"), &body, PATIENCE + PROMPT)?;
    let body = answer.or_told(args.json.json)?;
    if args.json.json {
        print_json(&body)?;
        return Ok(0);
    }
    let mut page = Page::new();
    page.line(told);
    page.show()?;
    Ok(0)
}

fn show(args: &FleetArgs, of: impl Fn(&mut Page, &FleetStatus)) -> Result<i32, Failure> {
    let body = Client::of(&args.node)?.get("/v1/fleet")?.or_told(args.json.json)?;
    if args.json.json {
        print_json(&body)?;
        return Ok(0);
    }
    let mut page = Page::new();
    of(&mut page, &read(&body)?);
    page.show()?;
    Ok(0)
}

fn whole(page: &mut Page, fleet: &FleetStatus) {
    let master = match &fleet.master {
        Some(master) => format!("  master {master}"),
        None => "  no master".to_owned(),
    };
    page.tinted_line(&[
        (fleet.name.as_str(), Tint::Bold),
        ("  ", Tint::Plain),
        (&fleet.state, if fleet.state == "OPERATION" { Tint::Green } else { Tint::Yellow }),
        (&master, Tint::Plain),
    ]);
    nodes(page, fleet);
    if !fleet.apps.is_empty() {
        app::table(page, &fleet.apps);
    }
    if !fleet.jobs.is_empty() {
        let rows: Vec<_> = fleet.jobs.iter().map(job).collect();
        page.table(&["JOB", "STATE", "NODE", "NOTE"], &rows);
    }
}

fn nodes(page: &mut Page, fleet: &FleetStatus) {
    let row = |node: &FleetNodeStatus| {
        let (word, tint) = match node.state {
            PeerState::Running => ("RUNNING", Tint::Green),
            PeerState::Unknown => ("UNKNOWN", Tint::Yellow),
            PeerState::Checking => ("CHECKING", Tint::Yellow),
            PeerState::Silent => ("SILENT", Tint::Red),
            PeerState::Isolated => ("ISOLATED", Tint::Red),
        };
        let master = fleet.master.as_ref() == Some(&node.name);
        let hands_over = node.hands_over && !node.ending;
        let notes = [
            (master, "master"),
            (node.drained, "drained"),
            (hands_over, "handing over"),
            (node.ending, "ending"),
        ];
        let notes: Vec<&str> = notes.iter().filter(|it| it.0).map(|it| it.1).collect();
        vec![
            (node.name.to_string(), Tint::Plain),
            (word.to_owned(), tint),
            (node.load.to_string(), Tint::Plain),
            (node.jobs.to_string(), Tint::Plain),
            (notes.join(", "), Tint::Plain),
        ]
    };
    let rows: Vec<_> = fleet.nodes.iter().map(row).collect();
    page.table(&["NODE", "STATE", "LOAD", "JOBS", "NOTE"], &rows);
}

pub(super) fn job(job: &PlacedStatus) -> Vec<(String, Tint)> {
    let (state, node) = match job.home() {
        Some(copy) => (copy.state.clone(), copy.node.to_string()),
        None => match job.copies.first() {
            Some(copy) => (copy.state.clone(), format!("({})", copy.node)),
            None => ("STOPPED".to_owned(), String::new()),
        },
    };
    let tint = match (state.as_str(), job.desired) {
        ("RUNNING", Desired::Run) => Tint::Green,
        ("FATAL", _) => Tint::Red,
        (_, Desired::Run) => Tint::Yellow,
        (_, Desired::Rest | Desired::Disabled) => Tint::Plain,
    };
    let mut notes: Vec<String> = job.reason.iter().cloned().collect();
    if job.conflict {
        let nodes: Vec<&str> = job.copies.iter().map(|copy| copy.node.as_str()).collect();
        notes.push(format!("in conflict: {}", nodes.join(", ")));
    }
    if job.desired == Desired::Disabled {
        notes.push("disabled".to_owned());
    }
    for node in &job.disabled_on {
        notes.push(format!("disabled on {node}"));
    }
    for node in &job.differs {
        notes.push(format!("{node} has another job of this name"));
    }
    vec![
        (job.job.to_string(), Tint::Plain),
        (state, tint),
        (node, Tint::Plain),
        (notes.join("; "), Tint::Plain),
    ]
}
