//! The series of a rollout: what is applied, how old that is, and what has failed.

use super::exposition::{Exposition, MetricType};
use mainstay_wire::api::RolloutStatus;

const STATES: [&str; 7] =
    ["starting", "running", "updating", "rolling-back", "pending", "failed", "paused"];
const PROFILE_STATES: [&str; 6] = ["unknown", "applied", "updating", "pending", "failed", "adrift"];
const SERVICE_STATES: [&str; 5] = ["idle", "waiting", "telling", "confirmed", "back"];

pub(super) fn families(out: &mut Exposition, rollout: &RolloutStatus) {
    let help = "1 for the state that the rollout is in.";
    let mut family = out.family("mainstay_rollout_state", MetricType::Gauge, help);
    for word in STATES {
        family.count(&[("state", word)], u64::from(rollout.state == word));
    }
    let help = "1 for the state that a profile is in.";
    let mut family = out.family("mainstay_profile_state", MetricType::Gauge, help);
    for profile in &rollout.profiles {
        for word in PROFILE_STATES {
            let labels = [("profile", profile.name.as_str()), ("state", word)];
            family.count(&labels, u64::from(profile.state == word));
        }
    }
    let help = "The version of a profile that is applied.";
    let mut family = out.family("mainstay_profile_info", MetricType::Info, help);
    for profile in &rollout.profiles {
        if let Some(applied) = &profile.applied {
            let labels = [("digest", applied.digest.as_str()), ("profile", profile.name.as_str())];
            family.count(&labels, 1);
        }
    }
    let help = "How long ago the version of a profile was applied.";
    let mut family = out.family("mainstay_profile_age_seconds", MetricType::Gauge, help);
    for profile in &rollout.profiles {
        if let Some(age) = profile.age {
            family.count(&[("profile", profile.name.as_str())], age);
        }
    }
    let help = "1 while what is applied of a profile is in place.";
    let mut family = out.family("mainstay_profile_in_place", MetricType::Gauge, help);
    for profile in &rollout.profiles {
        family.count(&[("profile", profile.name.as_str())], u64::from(profile.in_place));
    }
    let help = "1 if the source of a profile could be asked the last time.";
    let mut family = out.family("mainstay_profile_source_up", MetricType::Gauge, help);
    for profile in &rollout.profiles {
        family.count(&[("profile", profile.name.as_str())], u64::from(profile.error.is_none()));
    }
    let help = "1 while the file of a template is in place.";
    let mut family = out.family("mainstay_template_in_place", MetricType::Gauge, help);
    for template in &rollout.templates {
        family.count(&[("template", template.name.as_str())], u64::from(template.in_place));
    }
    let help = "1 for how far a service is in an update: idle outside of one.";
    let mut family = out.family("mainstay_service_state", MetricType::Gauge, help);
    for service in &rollout.services {
        for word in SERVICE_STATES {
            let labels = [("service", service.name.as_str()), ("state", word)];
            family.count(&labels, u64::from(service.state == word));
        }
    }
}
