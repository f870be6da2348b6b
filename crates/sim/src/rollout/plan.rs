//! Plans of small rollouts.

use mainstay_core::{
    name::Name,
    plan::{
        ProfilePlan, ProfileSource, ReloadMethod, RolloutPlan, ServicePlan, ServiceTarget,
        TemplatePlan,
    },
};
use std::{path::PathBuf, time::Duration};

/// A name.
///
/// # Panics
/// If it is none.
#[must_use]
pub fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// A plan in the making.
#[derive(Debug, Clone)]
pub struct Draft(pub RolloutPlan);

impl Draft {
    /// Profiles by name; templates as `("t", "a b")`, services as `("s", "t u")`.
    #[must_use]
    pub fn new(profiles: &str, templates: &[(&str, &str)], services: &[(&str, &str)]) -> Draft {
        let names = |text: &str| text.split_whitespace().map(name).collect();
        let profile = |it: &str| ProfilePlan {
            name: name(it),
            source: ProfileSource::File { path: PathBuf::from(it) },
            format: None,
        };
        let template = |(it, profiles): &(&str, &str)| TemplatePlan {
            name: name(it),
            src: PathBuf::from(it),
            source: None,
            dst: PathBuf::from(it),
            profiles: names(profiles),
            owner: None,
            mode: None,
            check: None,
            check_timeout: Duration::from_secs(30),
        };
        let service = |(it, templates): &(&str, &str)| ServicePlan {
            name: name(it),
            target: ServiceTarget::Job(name(it)),
            templates: names(templates),
            reload: ReloadMethod::TryReloadOrRestart,
            checks: Vec::new(),
            reload_timeout: Duration::from_secs(60),
            bake_time: Duration::ZERO,
        };
        Draft(RolloutPlan {
            signal_files: None,
            refresh_interval: Duration::from_secs(30),
            failure_timeout: Duration::from_secs(900),
            on_failure: None,
            exit_on_failure: false,
            wave: None,
            cloudwatch: None,
            profiles: profiles.split_whitespace().map(profile).collect(),
            templates: templates.iter().map(template).collect(),
            services: services.iter().map(service).collect(),
            configuration: Vec::new(),
        })
    }

    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut RolloutPlan)) -> Draft {
        change(&mut self.0);
        self
    }
}
