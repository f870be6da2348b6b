//! What is asked of a rollout, and what came of it.

use super::{
    EarlierVersion, ProfileStatus, ProfileVersion, RolloutFailureStatus, RolloutStatus,
    VersionStatus, WaveStatus,
};
use mainstay_core::name::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which sources are to be asked now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Refresh")]
pub struct RefreshRequest {
    /// Default: all profiles.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub profile: Option<Name>,
    /// Overwrites what somebody else has edited.
    #[serde(default)]
    pub force: bool,
}

/// Which version is to be applied again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Rollback")]
pub struct RollbackRequest {
    #[schemars(with = "String")]
    pub profile: Name,
    /// Its label, or the beginning of its digest; default: the version before the applied one.
    #[serde(default)]
    pub version: Option<String>,
    /// Overwrites what somebody else has edited.
    #[serde(default)]
    pub force: bool,
}

/// What came of a refresh or a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutDone {
    /// The versions that were applied since it was asked for.
    pub applied: Vec<ProfileVersion>,
    pub rollout: RolloutStatus,
}

/// The versions of profiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutHistory {
    pub profiles: Vec<ProfileHistory>,
}

/// The versions of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileHistory {
    #[schemars(with = "String")]
    pub profile: Name,
    pub applied: Option<EarlierVersion>,
    /// A version that failed or was rolled back: not applied until its source serves another.
    pub refused: Option<VersionStatus>,
    /// Those before the applied one, the last one first.
    pub earlier: Vec<EarlierVersion>,
}

/// Why something of a rollout is as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutWhy {
    /// `profile.NAME`, `template.NAME` or `service.NAME`.
    pub subject: String,
    /// Five at most.
    pub lines: Vec<String>,
}

impl RolloutStatus {
    /// Nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.doing.is_none() && self.update.is_none()
    }

    /// Profiles that go in waves; the one of this name, if there is a name.
    pub fn in_waves<'a>(
        &'a self,
        profile: Option<&'a Name>,
    ) -> impl Iterator<Item = (&'a Name, &'a WaveStatus)> {
        let is_meant = move |it: &&ProfileStatus| profile.is_none_or(|name| it.name == *name);
        let asked = self.profiles.iter().filter(is_meant);
        asked.filter_map(|it| Some((&it.name, it.waves.as_ref()?)))
    }

    /// Nothing is under way here, nor of this profile, or of any, in the fleet: there is nothing to
    /// wait for.
    #[must_use]
    pub fn is_settled(&self, profile: Option<&Name>) -> bool {
        let waits = |waves: &WaveStatus| waves.under_way && !waves.is_held();
        self.is_idle() && !self.in_waves(profile).any(|(_, waves)| waits(waves))
    }

    /// Something has failed, here or in the fleet, and nothing has followed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let came_back = |(_, waves): (&Name, &WaveStatus)| waves.is_back() && !waves.by_hand;
        self.failure.is_some() || self.in_waves(None).any(came_back)
    }

    /// Why what was to come to every node has not.
    #[must_use]
    pub fn wave_failure_since(
        &self,
        before: &RolloutStatus,
        profile: Option<&Name>,
    ) -> Option<String> {
        let is_known = |name: &Name, waves: &WaveStatus| {
            let mut was = before.in_waves(Some(name));
            was.any(|(_, was)| was.is_back() && was.attempt == waves.attempt)
        };
        let why = |(name, waves): (&Name, &WaveStatus)| match waves {
            waves if waves.under_way && waves.is_held() => Some(format!(
                "profile '{name}': this node sees half of the fleet or less: all stays as it is"
            )),
            waves if waves.is_back() && !is_known(name, waves) => Some(waves.failed(name)),
            _ => None,
        };
        self.in_waves(profile).find_map(why)
    }

    /// The versions that are applied now, in the fleet where they go in waves, and were not.
    #[must_use]
    pub fn applied_since(&self, before: &RolloutStatus) -> Vec<ProfileVersion> {
        let was = |name: &Name| before.profiles.iter().find(|it| it.name == *name);
        let news = self.profiles.iter().filter(|it| {
            was(&it.name).is_none_or(|was| {
                (&was.applied, &was.applied_at) != (&it.applied, &it.applied_at)
                    || was.fleet_version() != it.fleet_version()
            })
        });
        let one = |profile: &ProfileStatus| {
            let version = profile.fleet_version().or(profile.applied.as_ref()).cloned()?;
            Some(ProfileVersion { profile: profile.name.clone(), version })
        };
        news.filter_map(one).collect()
    }

    #[must_use]
    pub fn history(&self) -> Vec<ProfileHistory> {
        let one = |profile: &ProfileStatus| {
            let applied = profile.applied.clone().zip(profile.applied_at.clone());
            ProfileHistory {
                profile: profile.name.clone(),
                applied: applied
                    .map(|(version, applied_at)| EarlierVersion { version, applied_at }),
                refused: profile.refused.clone(),
                earlier: profile.history.clone(),
            }
        };
        self.profiles.iter().map(one).collect()
    }
}

impl ProfileStatus {
    /// What is applied in the fleet; `None`: nothing is, or it does not go in waves.
    fn fleet_version(&self) -> Option<&VersionStatus> {
        let waves = self.waves.as_ref()?;
        if waves.state == "applied" { waves.version.as_ref() } else { waves.before.as_ref() }
    }
}

impl WaveStatus {
    fn is_back(&self) -> bool {
        self.state == "back"
    }

    /// Nothing is decided on this side of a cut, and nothing goes on.
    fn is_held(&self) -> bool {
        self.minority && self.conductor.is_some()
    }

    /// For people: why a version has come back.
    fn failed(&self, profile: &Name) -> String {
        let version = self.version.as_ref().map_or("-", |it| it.text.as_str());
        let node = self.failed_on.as_ref().map_or("a node", Name::as_str);
        let why = match &self.failure {
            Some(failure) => format!("failed on {node}: {failure}"),
            None => format!("failed: {node} was lost in its wave"),
        };
        let now = match &self.before {
            Some(before) => format!("; every node goes back to {}", before.text),
            None => String::new(),
        };
        format!("version {version} of profile '{profile}' {why}{now}")
    }
}

impl RolloutFailureStatus {
    /// For people.
    #[must_use]
    pub fn told(&self) -> String {
        let RolloutFailureStatus { profile, version, failure: why, adrift, .. } = self;
        let what = match (profile, version) {
            (Some(profile), Some(version)) => {
                format!("version {version} of profile '{profile}' failed: ")
            }
            // It names itself.
            (Some(_), None) => String::new(),
            (None, _) => "the configuration could not be applied: ".to_owned(),
        };
        let now = match adrift {
            true => "; the way back failed as well: what is in place is not certain",
            false => "",
        };
        format!("{what}{why}{now}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn version(text: &str) -> Value {
        json!({ "label": null, "digest": text, "text": text })
    }

    /// A node with this version, in a fleet whose version stands so.
    fn in_fleet(applied: &str, mut waves: Value) -> RolloutStatus {
        let usual = json!({
            "conductor": "n1", "waves": 3, "minority": false, "nodes": [],
            "version": version("two"), "before": version("one"), "attempt": "1.1",
        });
        let (waves_of, usual) = (waves.as_object_mut(), usual.as_object().cloned());
        let waves_of = waves_of.expect("an object");
        for (key, value) in usual.unwrap_or_default() {
            waves_of.entry(key).or_insert(value);
        }
        let profile = json!({
            "name": "app", "source": "file", "state": "applied", "applied": version(applied),
            "in_place": true, "history": [], "waves": waves,
        });
        let status = json!({
            "state": "running", "paused": false, "profiles": [profile], "templates": [],
            "services": [],
        });
        serde_json::from_value(status).expect("a status")
    }

    #[test]
    fn whoever_waits_for_a_version_waits_for_the_fleet_and_not_on_the_small_side_of_a_cut() {
        let under_way = in_fleet("two", json!({ "state": "wave", "under_way": true }));
        assert!(under_way.is_idle() && !under_way.is_settled(None));
        let other = Name::new("other").expect("a name");
        assert!(under_way.is_settled(Some(&other)), "another profile is another matter");
        let cut = json!({ "state": "wave", "under_way": true, "minority": true });
        let cut_off = in_fleet("two", cut.clone());
        assert!(cut_off.is_settled(None));
        let why = cut_off.wave_failure_since(&under_way, None).expect("nothing goes on");
        assert!(why.contains("half of the fleet or less"), "{why}");
        let mut masterless = cut;
        masterless["conductor"] = Value::Null;
        assert!(!in_fleet("two", masterless).is_settled(None), "the next master goes on");
    }

    #[test]
    fn a_version_that_has_come_back_is_told_to_those_who_have_waited_for_it() {
        let applied = in_fleet("one", json!({ "state": "applied", "version": version("one") }));
        let back = |attempt: &str| {
            let failed = json!({ "state": "back", "attempt": attempt, "failed_on": "n3" });
            in_fleet("one", failed)
        };
        let why = back("2.1").wave_failure_since(&applied, None).expect("it has failed");
        assert!(why.contains("n3 was lost in its wave; every node goes back to one"), "{why}");
        let under_way = in_fleet("one", json!({ "state": "wave", "attempt": "2.1" }));
        assert!(back("2.1").wave_failure_since(&under_way, None).is_some());
        assert_eq!(back("2.1").wave_failure_since(&back("2.1"), None), None, "that was known");
        assert!(back("2.2").wave_failure_since(&back("2.1"), None).is_some(), "tried again");
        assert_eq!(back("2.2").applied_since(&applied), []);
    }

    #[test]
    fn what_is_applied_in_the_fleet_counts_also_where_it_is_not_applied_yet() {
        let before = in_fleet("one", json!({ "state": "wave" }));
        let after = in_fleet("one", json!({ "state": "applied" }));
        let applied: Vec<String> =
            after.applied_since(&before).into_iter().map(|it| it.version.text).collect();
        assert_eq!(applied, ["two"]);
    }
}
