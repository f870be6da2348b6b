//! What is asked of a rollout, and what came of it.

use super::{EarlierVersion, ProfileVersion, RolloutStatus, VersionStatus};
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

    /// The versions that are applied now and were not.
    #[must_use]
    pub fn applied_since(&self, before: &RolloutStatus) -> Vec<ProfileVersion> {
        let was = |name: &Name| before.profiles.iter().find(|it| it.name == *name);
        let news = self.profiles.iter().filter(|it| {
            was(&it.name)
                .is_none_or(|was| (&was.applied, &was.applied_at) != (&it.applied, &it.applied_at))
        });
        let one = |profile: &super::ProfileStatus| {
            let (name, version) = (profile.name.clone(), profile.applied.clone()?);
            Some(ProfileVersion { profile: name, version })
        };
        news.filter_map(one).collect()
    }

    #[must_use]
    pub fn history(&self) -> Vec<ProfileHistory> {
        let one = |profile: &super::ProfileStatus| {
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
