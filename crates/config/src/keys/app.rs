//! `[apps.NAME]`, and `place` of a job in its app.

use crate::{
    diag::nearest,
    keys::{Kind, Reload::Live, Table, fleet::STRATEGY, key},
    reader::{Reader, Span, Value},
};
use mainstay_core::{
    fleet::placement::FULL,
    plan::{AppPlan, NodePattern, OnFailure, Place},
};
use toml::de::DeValue;

const ON_FAILURE: Kind = Kind::OneOf(&["continue", "restart-process", "stop-app", "restart-app"]);

pub(crate) static APP: Table<AppPlan> = Table {
    keys: &[
        key(
            "start_sequence",
            Kind::Integer,
            "1",
            Live,
            "Apps start one sequence after the other, lowest first; 0: not by itself.",
            |app, v, r| r.count(v, 0).map(|it| app.start_sequence = it),
        ),
        key(
            "stop_sequence",
            Kind::Integer,
            "0",
            Live,
            "Apps stop one sequence after the other, lowest first.",
            |app, v, r| r.count(v, 0).map(|it| app.stop_sequence = it),
        ),
        key(
            "stop_order",
            Kind::OneOf(&["sequence", "reverse"]),
            "\"sequence\"",
            Live,
            "How its jobs stop: by their stop_sequence, or in the reverse of their start.",
            |app, v, r| r.one_of(v).map(|it| app.stop_order = it),
        ),
        key(
            "on_start_failure",
            Kind::OneOf(&["abort", "stop", "continue"]),
            "\"abort\"",
            Live,
            "When a required job does not start: start no more of the app, stop it, or go on.",
            |app, v, r| r.one_of(v).map(|it| app.on_start_failure = it),
        ),
        key(
            "on_failure",
            ON_FAILURE,
            "\"continue\"",
            Live,
            "When a running job of it ends for good without being asked to, and its own restart has nothing left to say.",
            |app, v, r| on_failure(v, r).map(|it| app.on_failure = it),
        ),
        key(
            "strategy",
            STRATEGY,
            "",
            Live,
            "Which of the nodes that have room gets a job of it; default: as [fleet] says.",
            |app, v, r| {
                in_fleet(v, r);
                r.one_of(v).map(|it| app.strategy = Some(it))
            },
        ),
        key(
            "nodes",
            Kind::Texts,
            "",
            Live,
            "The nodes that its jobs may run on, in this order, by name or as web-*; default: all.",
            |app, v, r| {
                in_fleet(v, r);
                nodes(r, v).map(|it| app.nodes = it)
            },
        ),
        key(
            "distribution",
            Kind::OneOf(&["any", "one-node", "one-machine"]),
            "\"any\"",
            Live,
            "Whether its jobs have to run on one node, or on one machine.",
            |app, v, r| {
                in_fleet(v, r);
                r.one_of(v).map(|it| app.distribution = it)
            },
        ),
    ],
    later: &[],
    refused: &[],
};

/// Of what means something in a fleet only.
fn in_fleet(v: Value<'_>, r: &mut Reader<'_>) {
    if !r.in_fleet {
        r.lonely(v.span);
    }
}

fn nodes(r: &mut Reader<'_>, v: Value<'_>) -> Option<Vec<NodePattern>> {
    let nodes = match v.de {
        DeValue::Array(_) => r.list(v, |r, one| pattern(r, one))?,
        _ => vec![pattern(r, v)?],
    };
    if nodes.is_empty() {
        return r.wrong(v.span, "the list is empty", "name a node, or remove the key");
    }
    Some(nodes)
}

fn pattern(r: &mut Reader<'_>, v: Value<'_>) -> Option<NodePattern> {
    let text = r.filled(v)?;
    let Some(pattern) = NodePattern::new(&text) else {
        let help = "write the name of a node, or a pattern with * and ?, as web-*";
        return r.wrong(v.span, format!("'{text}' is no name for a node"), help);
    };
    if r.known_nodes.iter().all(|node| !pattern.matches(node)) && !r.known_nodes.is_empty() {
        let help = match nearest(&text, r.known_nodes.iter().map(|node| node.as_str())) {
            Some(near) => format!("did you mean '{near}'?"),
            None => "use those that [fleet] nodes has".to_owned(),
        };
        return r.wrong(v.span, format!("[fleet] has no node '{text}'"), help);
    }
    Some(pattern)
}

fn on_failure(v: Value<'_>, r: &mut Reader<'_>) -> Option<OnFailure> {
    let what = r.one_of(v)?;
    if what == OnFailure::RestartProcess && !r.in_fleet {
        r.warn(
            v.span,
            "it does nothing here: it answers the loss of a node in a fleet, never a crash",
            "a job comes back after a crash by its own restart",
        );
    }
    Some(what)
}

/// `place` as it is written.
#[derive(Default)]
pub(crate) struct PlaceKeys {
    pub(crate) place: Place,
    required: Option<Span>,
    pub(crate) spread: Option<Span>,
}

pub(crate) static PLACE: Table<PlaceKeys> = Table {
    keys: &[
        key(
            "start_sequence",
            Kind::Integer,
            "1",
            Live,
            "Jobs of the app start one sequence after the other, lowest first; 0: not with the app.",
            |it, v, r| r.count(v, 0).map(|rank| it.place.start_sequence = rank),
        ),
        key(
            "stop_sequence",
            Kind::Integer,
            "0",
            Live,
            "Jobs of the app stop one sequence after the other, lowest first.",
            |it, v, r| r.count(v, 0).map(|rank| it.place.stop_sequence = rank),
        ),
        key(
            "required",
            Kind::Bool,
            "false",
            Live,
            "The app has failed to start if this job has.",
            |it, v, r| {
                it.place.required = r.boolean(v)?;
                it.required = it.place.required.then_some(v.span);
                Some(())
            },
        ),
        key(
            "wait_exit",
            Kind::Bool,
            "false",
            Live,
            "The next sequence waits until this job has exited as expected.",
            |it, v, r| r.boolean(v).map(|wait| it.place.wait_exit = wait),
        ),
        key(
            "on_failure",
            ON_FAILURE,
            "",
            Live,
            "When it ends for good without being asked to; default: the app's.",
            |it, v, r| on_failure(v, r).map(|what| it.place.on_failure = Some(what)),
        ),
        key(
            "nodes",
            Kind::Texts,
            "",
            Live,
            "The nodes that it may run on, in this order, by name or as web-*; default: the app's.",
            |it, v, r| {
                in_fleet(v, r);
                nodes(r, v).map(|nodes| it.place.nodes = nodes)
            },
        ),
        key(
            "load",
            Kind::Integer,
            "0",
            Live,
            "What it takes of a machine, of 100: it is placed where there is so much room.",
            |it, v, r| {
                in_fleet(v, r);
                let load = r.integer(v, 0..=i64::from(FULL))?;
                it.place.load = u32::try_from(load).unwrap_or_default();
                Some(())
            },
        ),
        key(
            "spread",
            Kind::OneOf(&["even", "one-each"]),
            "",
            Live,
            "How its instances are divided: each belongs to one of the nodes, in turn; one-each: those \
             beyond the number of nodes have none. Default: wherever there is room.",
            |it, v, r| {
                it.spread = Some(v.span);
                in_fleet(v, r);
                r.one_of(v).map(|spread| it.place.spread = Some(spread))
            },
        ),
        key(
            "wait_timeout",
            Kind::Duration,
            "\"10m\"",
            Live,
            "How long wait_exit waits in a fleet before the job has failed to start.",
            |it, v, r| {
                in_fleet(v, r);
                r.period(v).map(|time| it.place.wait_timeout = time)
            },
        ),
    ],
    later: &[],
    refused: &[],
};

/// `instances`: the job has several.
pub(crate) fn place(v: Value<'_>, instances: bool, r: &mut Reader<'_>) -> Option<Place> {
    let mut it = PlaceKeys::default();
    r.nested(v, &PLACE, &mut it)?;
    if let (Some(span), 0) = (it.required, it.place.start_sequence) {
        return r.wrong(
            span,
            "a job that is not started with its app cannot be required",
            "give it a start_sequence above 0, or remove required",
        );
    }
    if let (Some(span), false) = (it.spread, instances) {
        let help = "add instances = N to the job, or remove spread";
        return r.wrong(span, "there are no instances to be divided", help);
    }
    Some(it.place)
}
