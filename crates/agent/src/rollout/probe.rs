//! Checks of services that are asked beside the loop: over HTTP, and of units.

use super::{
    perform::Performers,
    tasks::{NEW, OLD, masked},
};
use crate::checks;
use mainstay_core::{
    clock::Mono,
    plan::{HealthComparison, HealthSource, Http, ServiceCheck, ServicePlan, ServiceTarget},
    rollout::{InstanceNumber, Op, ProbeOutcome, ProbeTarget, RequestCount, RolloutInput, Trouble},
};
use mainstay_rollout::{service::request_count, store::Store};

/// What stands for the number of an instance.
const INSTANCE: &str = "{instance}";

impl Performers {
    /// Asks a check, if it is one that is asked here.
    pub(super) fn probe(
        &self,
        op: Op,
        plan: &ServicePlan,
        check: usize,
        target: &ProbeTarget,
        deadline: Mono,
    ) -> bool {
        match (plan.checks.get(check), &plan.target) {
            (Some(ServiceCheck::Http(http)), _) => self.probe_http(op, http, target, deadline),
            (
                Some(ServiceCheck::HealthComparison(HealthComparison {
                    source: HealthSource::Http(http),
                    ..
                })),
                _,
            ) => self.compare_http(op, http, target, deadline),
            (Some(ServiceCheck::ChangeChildPid { .. }), ServiceTarget::Unit(unit)) => {
                let (units, unit) = (self.units.clone(), unit.clone());
                let reload = plan.reload.clone();
                self.answer(async move {
                    let outcome = match units.inspect(&unit, &reload).await {
                        Ok(facts) => ProbeOutcome::Children {
                            main_pid: facts.main_pid,
                            children: facts.children,
                        },
                        Err(error) => ProbeOutcome::Failed(Trouble(error.to_string())),
                    };
                    RolloutInput::Probed { op, outcome }
                });
            }
            (
                Some(
                    ServiceCheck::Exec(_)
                    | ServiceCheck::ChangeChildPid { .. }
                    | ServiceCheck::HealthComparison(HealthComparison {
                        source: HealthSource::Exec(_),
                        ..
                    }),
                )
                | None,
                _,
            ) => return false,
        }
        true
    }

    fn probe_http(&self, op: Op, http: &Http, target: &ProbeTarget, deadline: Mono) {
        let (http, store) = (http_of(http, new_instance(target)), self.store.clone());
        self.answer(async move {
            let outcome = match checks::ask_once(http, deadline).await {
                Ok(()) => ProbeOutcome::Passed,
                Err(Trouble(why)) => ProbeOutcome::Failed(Trouble(masked(&store, why).await)),
            };
            RolloutInput::Probed { op, outcome }
        });
    }

    fn compare_http(&self, op: Op, http: &Http, target: &ProbeTarget, deadline: Mono) {
        let [new, old] = both(target).map(|number| http_of(http, number));
        let store = self.store.clone();
        self.answer(async move {
            let new = count_http(&store, new, deadline).await;
            let old = count_http(&store, old, deadline).await;
            RolloutInput::Probed { op, outcome: ProbeOutcome::Requests { new, old } }
        });
    }
}

async fn count_http(store: &Store, http: Http, deadline: Mono) -> Result<RequestCount, Trouble> {
    match checks::fetch_once(http, deadline).await {
        Ok(body) => request_count(&body).map_err(|error| Trouble(error.to_string())),
        Err(Trouble(why)) => Err(Trouble(masked(store, why).await)),
    }
}

/// A command for the instance that is new; of what has no instances, as it is.
pub(super) fn of_instance(exec: &[String], target: &ProbeTarget) -> Vec<String> {
    filled(exec, new_instance(target))
}

/// A command for each instance, as parts of a comparison.
pub(super) fn of_both(exec: &[String], target: &ProbeTarget) -> [(u8, Vec<String>); 2] {
    let [new, old] = both(target);
    [(NEW, filled(exec, new)), (OLD, filled(exec, old))]
}

fn new_instance(target: &ProbeTarget) -> Option<InstanceNumber> {
    both(target)[0]
}

fn both(target: &ProbeTarget) -> [Option<InstanceNumber>; 2] {
    match target {
        ProbeTarget::Service => [None, None],
        ProbeTarget::Instances { new, old } => [Some(*new), Some(old.unwrap_or(new.other()))],
    }
}

fn filled(exec: &[String], number: Option<InstanceNumber>) -> Vec<String> {
    exec.iter().map(|word| fill(word, number)).collect()
}

fn http_of(http: &Http, number: Option<InstanceNumber>) -> Http {
    let mut http = http.clone();
    http.url = fill(&http.url, number);
    http.unix = http.unix.map(|path| match path.to_str() {
        Some(text) => fill(text, number).into(),
        None => path,
    });
    http
}

fn fill(text: &str, number: Option<InstanceNumber>) -> String {
    match number {
        Some(number) => text.replace(INSTANCE, &number.number().to_string()),
        None => text.to_owned(),
    }
}
