//! The rules of applications and processes, in Supvisors' words.

use super::{
    stage::{STRATEGIES, word},
    view::{Application, UnitedProcess, View},
};
use crate::xmlrpc::value::XmlValue;
use mainstay_core::plan::{
    AppPlan, Distribution, NodePattern, OnFailure, OnStartFailure, Place, StopOrder,
};

fn distribution(distribution: Distribution) -> &'static str {
    match distribution {
        Distribution::Any => "ALL_INSTANCES",
        Distribution::OneNode => "SINGLE_INSTANCE",
        Distribution::OneMachine => "SINGLE_NODE",
    }
}

fn starting_failure(what: OnStartFailure) -> &'static str {
    match what {
        OnStartFailure::Abort => "ABORT",
        OnStartFailure::Stop => "STOP",
        OnStartFailure::Continue => "CONTINUE",
    }
}

fn running_failure(what: OnFailure) -> &'static str {
    match what {
        OnFailure::Continue => "CONTINUE",
        OnFailure::RestartProcess => "RESTART_PROCESS",
        OnFailure::RestartApp => "RESTART_APPLICATION",
        OnFailure::StopApp => "STOP_APPLICATION",
    }
}

/// Where something may run.
fn identifiers(patterns: &[NodePattern]) -> XmlValue {
    match patterns.is_empty() {
        true => XmlValue::texts(["*"]),
        false => XmlValue::texts(patterns.iter().map(NodePattern::as_str)),
    }
}

fn rank(number: u32) -> XmlValue {
    XmlValue::int(i64::from(number))
}

impl View {
    pub(super) fn application_rules(&self, application: &Application<'_>) -> XmlValue {
        let name = ("application_name".to_owned(), XmlValue::text(application.name));
        let rules = match self.plan.app(application.name) {
            Some(app) => self.rules_of_app(app),
            None => XmlValue::pairs([("managed", XmlValue::Bool(application.managed))]),
        };
        match rules {
            XmlValue::Struct(mut members) => {
                members.insert(0, name);
                XmlValue::Struct(members)
            }
            other => other,
        }
    }

    fn rules_of_app(&self, app: &AppPlan) -> XmlValue {
        let of_fleet = self.plan.fleet.as_ref().map(|fleet| fleet.strategy);
        let strategy = app.strategy.or(of_fleet).unwrap_or_default();
        // The greatest comes first there.
        let last = self.plan.apps.iter().map(|app| app.stop_sequence).max().unwrap_or(0);
        let stop = last.saturating_sub(app.stop_sequence);
        XmlValue::pairs([
            ("managed", XmlValue::Bool(true)),
            ("distribution", XmlValue::text(distribution(app.distribution))),
            ("distributed", XmlValue::Bool(app.distribution == Distribution::Any)),
            ("identifiers", identifiers(&app.nodes)),
            ("addresses", identifiers(&app.nodes)),
            ("start_sequence", rank(app.start_sequence)),
            ("stop_sequence", rank(stop)),
            ("starting_strategy", XmlValue::text(word(&STRATEGIES, &strategy))),
            ("starting_failure_strategy", XmlValue::text(starting_failure(app.on_start_failure))),
            ("running_failure_strategy", XmlValue::text(running_failure(app.on_failure))),
            ("status_formula", XmlValue::text("")),
        ])
    }

    /// The greatest comes first there: what mirrors the start has its number, the rest is counted
    /// from the other end.
    fn stop_sequence(&self, app: &AppPlan, place: &Place) -> u32 {
        let of_app = self.plan.jobs.iter().filter(|job| job.app.as_ref() == Some(&app.name));
        let last = of_app.map(|job| job.place.stop_sequence).max().unwrap_or(0);
        match app.stop_order {
            StopOrder::Reverse => place.start_sequence,
            StopOrder::Sequence => last.saturating_sub(place.stop_sequence),
        }
    }

    pub(super) fn process_rules(&self, process: &UnitedProcess) -> XmlValue {
        let job = self.plan.job(process.name.as_str());
        let app = job.and_then(|job| self.plan.app_of(job));
        // Of one that no app has, nothing is placed.
        let unmanaged = Place { start_sequence: 0, ..Place::default() };
        let place = match (job, app) {
            (Some(job), Some(_)) => &job.place,
            (Some(_) | None, _) => &unmanaged,
        };
        let of_app = app.map_or(&[][..], |app| &app.nodes);
        let nodes = if place.nodes.is_empty() { of_app } else { &place.nodes };
        let on_failure = place.on_failure.or(app.map(|app| app.on_failure));
        let on_start = app.map_or(OnStartFailure::Abort, |app| app.on_start_failure);
        let stop = app.map_or(0, |app| self.stop_sequence(app, place));
        XmlValue::pairs([
            ("application_name", XmlValue::text(process.group.as_str())),
            ("process_name", XmlValue::text(process.name.as_str())),
            ("identifiers", identifiers(nodes)),
            ("addresses", identifiers(nodes)),
            ("start_sequence", rank(place.start_sequence)),
            ("stop_sequence", rank(stop)),
            ("required", XmlValue::Bool(place.required)),
            ("wait_exit", XmlValue::Bool(place.wait_exit)),
            ("expected_loading", rank(place.load)),
            ("starting_failure_strategy", XmlValue::text(starting_failure(on_start))),
            (
                "running_failure_strategy",
                XmlValue::text(running_failure(on_failure.unwrap_or(OnFailure::Continue))),
            ),
        ])
    }
}
