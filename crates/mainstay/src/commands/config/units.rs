//! Whether the units that services name are there, where a systemd can be asked.

use mainstay_config::{Diagnostic, Loaded};
use mainstay_core::{
    plan::{ReloadMethod, ServicePlan, ServiceTarget},
    rollout::InstanceNumber,
};
use mainstay_rollout::service::{UnitError, Units, instance_unit, unit_name};
use std::time::Duration;
use tokio::{runtime, time::timeout};

/// For all of them: a configuration may be checked where nobody answers.
const PATIENCE: Duration = Duration::from_secs(3);

/// A warning for each that is not there: it may come later. Nothing where no systemd answers.
pub(super) fn diagnostics(loaded: &Loaded) -> Vec<Diagnostic> {
    let services = loaded.plan.rollout.iter().flat_map(|it| &it.services);
    let named: Vec<(&ServicePlan, String)> =
        services.filter_map(|it| Some((it, looked_for(it)?))).collect();
    if named.is_empty() {
        return Vec::new();
    }
    let Ok(runtime) = runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let mut missing = Vec::new();
    let look = async {
        let units = Units::new(None);
        for (service, unit) in &named {
            match units.facts(unit).await {
                Ok(_) => {}
                Err(UnitError::NotFound(_)) => missing.push(not_found(service, unit)),
                // Nobody to ask.
                Err(_) => return,
            }
        }
    };
    // What was found out until then counts.
    let _ = runtime.block_on(async { timeout(PATIENCE, look).await });
    missing
}

/// Of flip-flop an instance: its template alone is no unit.
fn looked_for(service: &ServicePlan) -> Option<String> {
    match (&service.target, &service.reload) {
        (ServiceTarget::Unit(unit), ReloadMethod::FlipFlop) => {
            Some(instance_unit(unit, InstanceNumber::One))
        }
        (
            ServiceTarget::Unit(unit),
            ReloadMethod::TryReloadOrRestart | ReloadMethod::Signal(_) | ReloadMethod::Exec(_),
        ) => Some(unit_name(unit)),
        (ServiceTarget::Job(_) | ServiceTarget::Command, _) => None,
    }
}

fn not_found(service: &ServicePlan, unit: &str) -> Diagnostic {
    let message = format!("services.{}: systemd has no unit {unit}", service.name);
    Diagnostic::warning(message).help("install it, or correct unit; an update would fail here")
}
