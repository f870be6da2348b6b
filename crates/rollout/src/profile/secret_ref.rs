//! The secrets that a profile names, at its top level under `secrets` or `aws:secrets`.
//!
//! ```json
//! {"secrets": {"db": {"secret_id": "prod/db", "version_stage": "AWSCURRENT"}, "key": {"file": "/run/key"}}}
//! ```

use super::{UnknownType, format_of_header};
use mainstay_core::plan::ProfileFormat;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, path::PathBuf};
use thiserror::Error;

/// Where profiles name their secrets; the second is config_o_mat's.
const KEYS: [&str; 2] = ["secrets", "aws:secrets"];
/// Secrets of one profile.
const MOST: usize = 1000;

/// One secret, and where it is to be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRef {
    pub place: SecretPlace,
    pub format: ProfileFormat,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretPlace {
    SecretsManager { id: String, version: SecretVersion },
    File(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretVersion {
    /// Never changes: once read, it is kept.
    Id(String),
    /// Changes with a rotation: read at each load.
    Stage(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadSecretRef {
    #[error("'{key}' is no map of names")]
    NoMap { key: &'static str },
    #[error("the secret '{name}' is named in 'secrets' and in 'aws:secrets'")]
    Twice { name: String },
    #[error("there are more than {MOST} secrets")]
    TooMany,
    #[error("the secret '{name}' {why}")]
    Malformed { name: String, why: &'static str },
    #[error("the secret '{name}' has an unknown key '{key}'")]
    UnknownKey { name: String, key: String },
    #[error("the secret '{name}': {source}")]
    ContentType { name: String, source: UnknownType },
}

/// All that a profile names, by their names in templates.
///
/// # Errors
/// When one of them cannot be understood.
pub fn secret_refs(profile: &Value) -> Result<BTreeMap<String, SecretRef>, BadSecretRef> {
    let mut found = BTreeMap::new();
    for key in KEYS {
        let Some(named) = profile.get(key) else { continue };
        let named = named.as_object().ok_or(BadSecretRef::NoMap { key })?;
        for (name, entry) in named {
            // As config_o_mat has it.
            let default = if key == KEYS[1] { ProfileFormat::Json } else { ProfileFormat::Text };
            if found.insert(name.clone(), secret_ref(name, entry, default)?).is_some() {
                return Err(BadSecretRef::Twice { name: name.clone() });
            }
        }
    }
    match found.len() {
        0..=MOST => Ok(found),
        _ => Err(BadSecretRef::TooMany),
    }
}

fn secret_ref(
    name: &str,
    entry: &Value,
    default: ProfileFormat,
) -> Result<SecretRef, BadSecretRef> {
    let malformed = |why| BadSecretRef::Malformed { name: name.to_owned(), why };
    let entry = entry.as_object().ok_or_else(|| malformed("is no map"))?;
    let known = ["secret_id", "version_id", "version_stage", "content_type", "file"];
    if let Some(key) = entry.keys().find(|key| !known.contains(&key.as_str())) {
        let (name, key) = (name.to_owned(), key.clone());
        return Err(BadSecretRef::UnknownKey { name, key });
    }
    let text = |key| text(name, entry, key);
    let format = match text("content_type")? {
        None => default,
        Some(header) => format_of_header(&header)
            .map_err(|source| BadSecretRef::ContentType { name: name.to_owned(), source })?,
    };
    let version = match (text("version_id")?, text("version_stage")?) {
        (Some(_), Some(_)) => return Err(malformed("has a version_id and a version_stage")),
        (Some(id), None) => Some(SecretVersion::Id(id)),
        (None, stage) => stage.map(SecretVersion::Stage),
    };
    let place = match (text("secret_id")?, text("file")?, version) {
        (Some(id), None, version) => SecretPlace::SecretsManager {
            id,
            version: version.unwrap_or_else(|| SecretVersion::Stage("AWSCURRENT".to_owned())),
        },
        (None, Some(path), None) if path.starts_with('/') => SecretPlace::File(path.into()),
        (None, Some(_), None) => return Err(malformed("needs an absolute path as its 'file'")),
        (None, Some(_), Some(_)) => return Err(malformed("is a file, and files have no versions")),
        (Some(_), Some(_), _) | (None, None, _) => {
            return Err(malformed("needs a 'secret_id' or a 'file', and not both"));
        }
    };
    Ok(SecretRef { place, format })
}

fn text(
    name: &str,
    entry: &Map<String, Value>,
    key: &'static str,
) -> Result<Option<String>, BadSecretRef> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() && text.len() <= 2048 => {
            Ok(Some(text.clone()))
        }
        Some(_) => Err(BadSecretRef::Malformed {
            name: name.to_owned(),
            why: "has a value that is no text, or none of a usable length",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_named_by_id_and_stage_or_by_file() {
        let profile = json!({
            "port": 1,
            "secrets": {
                "a": {"secret_id": "prod/a"},
                "b": {"secret_id": "prod/b", "version_id": "7", "content_type": "application/json"},
                "c": {"file": "/run/c"},
            },
            "aws:secrets": {"d": {"secret_id": "prod/d", "version_stage": "AWSPREVIOUS"}},
        });
        let found = secret_refs(&profile).expect("valid");
        let manager =
            |id: &str, version| SecretPlace::SecretsManager { id: id.to_owned(), version };
        let stage = |stage: &str| SecretVersion::Stage(stage.to_owned());
        assert_eq!(found["a"].place, manager("prod/a", stage("AWSCURRENT")));
        assert_eq!(found["b"].place, manager("prod/b", SecretVersion::Id("7".into())));
        assert_eq!(found["b"].format, ProfileFormat::Json);
        assert_eq!(found["c"].place, SecretPlace::File("/run/c".into()));
        assert_eq!(found["d"].place, manager("prod/d", stage("AWSPREVIOUS")));
        assert_eq!(
            (found["a"].format, found["d"].format),
            (ProfileFormat::Text, ProfileFormat::Json)
        );
        assert!(secret_refs(&json!("text")).expect("none").is_empty());
    }

    #[test]
    fn what_cannot_be_understood_is_refused_by_name() {
        let refused = |secrets: Value| {
            secret_refs(&json!({"secrets": secrets})).expect_err("refused").to_string()
        };
        assert_eq!(refused(json!([])), "'secrets' is no map of names");
        assert_eq!(refused(json!({"a": "x"})), "the secret 'a' is no map");
        assert!(refused(json!({"a": {}})).contains("needs a 'secret_id' or a 'file'"));
        assert!(refused(json!({"a": {"secret_id": 1}})).contains("is no text"));
        assert!(refused(json!({"a": {"file": "x"}})).contains("absolute path"));
        assert!(refused(json!({"a": {"secret": "x"}})).contains("unknown key 'secret'"));
        let both = json!({"a": {"secret_id": "x", "version_id": "1", "version_stage": "y"}});
        assert!(refused(both).contains("a version_id and a version_stage"));
        let odd = json!({"a": {"file": "/x", "content_type": "image/png"}});
        assert!(refused(odd).contains("image/png"));
        let twice = json!({"secrets": {"a": {"file": "/x"}}, "aws:secrets": {"a": {"file": "/y"}}});
        assert!(secret_refs(&twice).is_err());
    }
}
