//! Sources, asked for real.

#[cfg(feature = "aws")]
mod appconfig;
#[cfg(feature = "aws")]
mod cloudwatch;
mod fake;
mod files;
#[cfg(feature = "aws")]
mod ministack;
mod web;

use super::*;
use mainstay_core::{
    name::Name,
    plan::{ProfileFormat, ProfileSource},
    rollout::Content,
};

fn plan(source: ProfileSource, format: Option<ProfileFormat>) -> ProfilePlan {
    ProfilePlan { name: Name::new("app").expect("a name"), source, format }
}

/// What it serves, which must be something.
async fn served(source: &mut Source, fresh: bool) -> (Version, Arc<Content>) {
    match source.load(fresh).await.outcome {
        LoadOutcome::Served { version, content } => (version, content),
        other => panic!("{other:?}"),
    }
}

async fn is_unchanged(source: &mut Source) -> bool {
    matches!(source.load(false).await.outcome, LoadOutcome::Unchanged)
}

async fn failed(source: &mut Source, fresh: bool) -> String {
    match source.load(fresh).await.outcome {
        LoadOutcome::Failed(trouble) => trouble.0,
        other => panic!("{other:?}"),
    }
}
