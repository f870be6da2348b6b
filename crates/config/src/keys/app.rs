//! `[apps.NAME]`, and `place` of a job in its app.

use crate::{
    keys::{Kind, Reload::Live, Table, key},
    reader::{Reader, Span, Value},
};
use mainstay_core::plan::{AppPlan, OnFailure, Place};

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
    ],
    later: &["strategy", "nodes", "distribution"],
    refused: &[],
};

fn on_failure(v: Value<'_>, r: &mut Reader<'_>) -> Option<OnFailure> {
    let what = r.one_of(v)?;
    if what == OnFailure::RestartProcess {
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
    ],
    later: &["nodes", "load"],
    refused: &[],
};

pub(crate) fn place(v: Value<'_>, r: &mut Reader<'_>) -> Option<Place> {
    let mut it = PlaceKeys::default();
    r.nested(v, &PLACE, &mut it)?;
    if let (Some(span), 0) = (it.required, it.place.start_sequence) {
        return r.wrong(
            span,
            "a job that is not started with its app cannot be required",
            "give it a start_sequence above 0, or remove required",
        );
    }
    Some(it.place)
}
