//! The secrets that a profile names: read at each load, those of a version id once.

#[cfg(feature = "aws")]
use super::aws::AwsPlace;
use super::{Shared, SourceError};
use crate::profile::{SecretPlace, SecretRef, SecretVersion, content_type};
#[cfg(feature = "aws")]
use mainstay_core::plan::ProfileSource;
use mainstay_core::{
    plan::{ProfileFormat, ProfilePlan},
    rollout::SecretValue,
    text::Secret,
};
use mainstay_pool::WATCHED;
use mainstay_sys::nonblocking::open_file;
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::Path,
};

/// The largest secret, as Secrets Manager has it.
const LARGEST: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct Secrets {
    #[cfg(feature = "aws")]
    aws: AwsPlace,
    /// By id and version id: they never change.
    kept: BTreeMap<(String, String), Secret>,
    can_change: bool,
}

impl Secrets {
    #[cfg_attr(not(feature = "aws"), allow(unused_variables))]
    pub(super) fn new(plan: &ProfilePlan, shared: &Shared) -> Secrets {
        #[cfg(feature = "aws")]
        let region = match &plan.source {
            ProfileSource::AppConfig { region, .. } => region.as_deref(),
            ProfileSource::File { .. }
            | ProfileSource::Http { .. }
            | ProfileSource::Agent { .. } => None,
        };
        Secrets {
            #[cfg(feature = "aws")]
            aws: shared.aws.place(region, None),
            kept: BTreeMap::new(),
            can_change: false,
        }
    }

    /// One of those that were read last may be another by now.
    pub(super) fn can_change(&self) -> bool {
        self.can_change
    }

    pub(super) async fn resolve(
        &mut self,
        refs: &BTreeMap<String, SecretRef>,
    ) -> Result<BTreeMap<String, SecretValue>, SourceError> {
        let by_id = |place: &SecretPlace| match place {
            SecretPlace::SecretsManager { id, version: SecretVersion::Id(version) } => {
                Some((id.clone(), version.clone()))
            }
            SecretPlace::SecretsManager { .. } | SecretPlace::File(_) => None,
        };
        self.can_change = refs.values().any(|it| by_id(&it.place).is_none());
        let needed: Vec<_> = refs.values().filter_map(|it| by_id(&it.place)).collect();
        self.kept.retain(|key, _| needed.contains(key));
        let mut resolved = BTreeMap::new();
        for (name, SecretRef { place, format }) in refs {
            let key = by_id(place);
            let value = match key.as_ref().and_then(|key| self.kept.get(key)) {
                Some(value) => value.clone(),
                None => self.read(name, place, *format).await?,
            };
            let version_id = key.as_ref().map(|(_, version)| version.clone());
            if let Some(key) = key {
                self.kept.insert(key, value.clone());
            }
            let content_type = Some(content_type(*format).to_owned());
            resolved.insert(name.clone(), SecretValue { value, content_type, version_id });
        }
        Ok(resolved)
    }

    async fn read(
        &self,
        name: &str,
        place: &SecretPlace,
        format: ProfileFormat,
    ) -> Result<Secret, SourceError> {
        let failed = |why: String| SourceError::Secret { name: name.to_owned(), why, busy: false };
        match place {
            SecretPlace::File(path) => {
                let reading = path.clone();
                let read = WATCHED.run(move || of_file(&reading, format)).await?;
                read.map_err(|error| failed(format!("cannot read {}: {error}", path.display())))
            }
            #[cfg(feature = "aws")]
            SecretPlace::SecretsManager { id, version } => self
                .aws
                .secret(id, version)
                .await
                .map_err(|(why, busy)| SourceError::Secret { name: name.to_owned(), why, busy }),
            #[cfg(not(feature = "aws"))]
            SecretPlace::SecretsManager { .. } => Err(SourceError::NoAws),
        }
    }
}

/// A text without the end of its last line, which editors put there.
fn of_file(path: &Path, format: ProfileFormat) -> io::Result<Secret> {
    let mut bytes = Vec::new();
    File::from(open_file(path)?).take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))?;
    let text = match format {
        ProfileFormat::Text => text.strip_suffix('\n').unwrap_or(&text),
        ProfileFormat::Json | ProfileFormat::Yaml | ProfileFormat::Toml => &text,
    };
    Ok(Secret::new(text))
}
