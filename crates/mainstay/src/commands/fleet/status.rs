//! `mainstay fleet`

use crate::{
    args::{FleetAction, FleetArgs},
    client::{Client, PROMPT, read},
    commands::jobs::app::{tint, word},
    failure::{Failure, USAGE},
    term::{Page, Tint, print_json},
};
use mainstay_core::{fleet::PeerState, job::Desired};
use mainstay_wire::api::{FleetAppStatus, FleetNodeStatus, FleetStatus, PATIENCE, PlacedStatus};
use serde_json::{Value, json};

pub(crate) fn fleet(args: &FleetArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    let about = || {
        let missing = || Failure::new(USAGE, "name the node: mainstay fleet drain NODE");
        args.of.as_deref().ok_or_else(missing)
    };
    let ask = |route: &str, body: &Value| client.post(route, body, PATIENCE + PROMPT);
    let answer = match args.action {
        FleetAction::Status | FleetAction::Nodes => client.get("/v1/fleet")?,
        FleetAction::Drain => ask("/v1/fleet/drain", &json!({ "node": about()? }))?,
        FleetAction::Undrain => ask("/v1/fleet/undrain", &json!({ "node": about()? }))?,
        FleetAction::Readmit => ask("/v1/fleet/readmit", &json!({ "node": about()? }))?,
        FleetAction::Shutdown => ask("/v1/fleet/shutdown", &json!({}))?,
    };
    let body = answer.or_told(args.json.json)?;
    let fleet: FleetStatus = read(&body)?;
    if args.json.json {
        print_json(&body)?;
        return Ok(0);
    }
    let mut page = Page::new();
    match args.action {
        FleetAction::Status => whole(&mut page, &fleet),
        FleetAction::Nodes => nodes(&mut page, &fleet),
        FleetAction::Drain => page.line(format!("nothing is placed on {} any more", about()?)),
        FleetAction::Undrain => page.line(format!("jobs may be placed on {} again", about()?)),
        FleetAction::Readmit => page.line(format!("{} may take part again", about()?)),
        FleetAction::Shutdown => page.line("the fleet ends: apps in order, then every node"),
    }
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
        let row = |app: &FleetAppStatus| {
            vec![(app.name.to_string(), Tint::Plain), (word(app.state).to_owned(), tint(app.state))]
        };
        page.table(&["APP", "STATE"], &fleet.apps.iter().map(row).collect::<Vec<_>>());
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
        let notes = [(master, "master"), (node.drained, "drained"), (node.ending, "ending")];
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
