//! What a template sees.

use super::mask::{Mask, shown};
use crate::profile::{self, DataError};
use mainstay_core::{
    name::Name,
    plan::ProfileFormat,
    rollout::{Content, SecretValue},
};
use minijinja::value::{Enumerator, Object, Serde, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use thiserror::Error;

/// Words that mean the same in every template; a profile of such a name is in `profiles` only.
pub const OWN: [&str; 3] = ["profiles", "node", "secrets"];

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScopeError {
    #[error("the profile cannot be used: {0}")]
    Profile(DataError),
    #[error("the secret '{name}' cannot be used: {source}")]
    Secret { name: String, source: DataError },
    #[error("its content type is not one of ours")]
    ContentType,
    #[error("the profiles '{one}' and '{other}' both have a secret '{name}'")]
    SecretTwice { name: String, one: Name, other: Name },
}

/// Whether secrets are themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShowSecrets {
    Values,
    /// `<secrets.NAME>`, for people to read.
    Names,
}

/// A profile, read once for all templates that use it.
#[derive(Clone)]
pub struct ProfileScope {
    value: Value,
    secrets: BTreeMap<String, SecretScope>,
    mask: Mask,
}

#[derive(Clone)]
struct SecretScope {
    value: Value,
    name: Value,
}

/// All that one template sees.
#[derive(Clone)]
pub struct Scope {
    context: Value,
    mask: Mask,
    used_secret: Arc<AtomicBool>,
}

impl ProfileScope {
    /// # Errors
    /// When content or a secret is not what its type says.
    pub fn read(content: &Content) -> Result<ProfileScope, ScopeError> {
        let format = format(&content.content_type)?;
        let value = profile::read(format, &content.body).map_err(ScopeError::Profile)?;
        let (mut secrets, mut mask) = (BTreeMap::new(), Mask::default());
        for (name, secret) in &content.secrets {
            let value = secret_data(name, secret)?;
            mask.hide(name, &value);
            let named = Value::from(Serde(names_in(name, &value)));
            let value = Value::from(Serde(&value));
            secrets.insert(name.clone(), SecretScope { value, name: named });
        }
        Ok(ProfileScope { value: Value::from(Serde(&value)), secrets, mask })
    }

    /// Hides the secrets of a content, whatever else is in it.
    pub(crate) fn secrets_of(content: &Content) -> Result<Mask, ScopeError> {
        let mut mask = Mask::default();
        for (name, secret) in &content.secrets {
            mask.hide(name, &secret_data(name, secret)?);
        }
        Ok(mask)
    }

    /// Hides its secrets.
    #[must_use]
    pub fn mask(&self) -> &Mask {
        &self.mask
    }
}

impl Scope {
    /// # Errors
    /// When two profiles have a secret of the same name.
    pub fn new(
        node: &Json,
        profiles: &[(&Name, &ProfileScope)],
        show: ShowSecrets,
    ) -> Result<Scope, ScopeError> {
        let mut whose: BTreeMap<&str, &Name> = BTreeMap::new();
        let (mut secrets, mut mask) = (BTreeMap::new(), Mask::default());
        for (profile, scope) in profiles {
            for (name, secret) in &scope.secrets {
                if let Some(one) = whose.insert(name, profile) {
                    let (one, other) = (one.clone(), (*profile).clone());
                    return Err(ScopeError::SecretTwice { name: name.clone(), one, other });
                }
                let value = match show {
                    ShowSecrets::Values => &secret.value,
                    ShowSecrets::Names => &secret.name,
                };
                secrets.insert(name.clone(), value.clone());
            }
            mask.append(&scope.mask);
        }
        let used_secret = Arc::new(AtomicBool::new(false));
        let secrets = WatchedSecrets { values: secrets, used: used_secret.clone() };
        let by_name =
            || profiles.iter().map(|(name, scope)| (name.as_str().to_owned(), scope.value.clone()));
        let mut context: BTreeMap<String, Value> =
            by_name().filter(|(name, _)| !OWN.contains(&name.as_str())).collect();
        let all: BTreeMap<String, Value> = by_name().collect();
        context.insert("profiles".to_owned(), Value::from(all));
        context.insert("node".to_owned(), Value::from(Serde(node)));
        context.insert("secrets".to_owned(), Value::from_object(secrets));
        Ok(Scope { context: Value::from(context), mask, used_secret })
    }

    #[must_use]
    pub fn mask(&self) -> &Mask {
        &self.mask
    }

    pub(super) fn context(&self) -> Value {
        self.context.clone()
    }

    /// Whether a secret was looked at since the last time.
    pub(super) fn take_used_secret(&self) -> bool {
        self.used_secret.swap(false, Ordering::Relaxed)
    }
}

fn format(content_type: &str) -> Result<ProfileFormat, ScopeError> {
    profile::format_of_header(content_type).map_err(|_| ScopeError::ContentType)
}

fn secret_data(name: &str, secret: &SecretValue) -> Result<Json, ScopeError> {
    let format = secret.content_type.as_deref().map_or(Ok(ProfileFormat::Text), format)?;
    profile::read(format, secret.value.reveal().as_bytes())
        .map_err(|source| ScopeError::Secret { name: name.to_owned(), source })
}

/// The same shape, each value replaced by where it is.
fn names_in(name: &str, value: &Json) -> Json {
    match value {
        Json::Object(all) => {
            let named =
                |(key, it): (&String, &Json)| (key.clone(), names_in(&format!("{name}.{key}"), it));
            Json::Object(all.iter().map(named).collect())
        }
        Json::Array(all) => Json::Array(all.iter().map(|it| names_in(name, it)).collect()),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Json::String(shown(name)),
    }
}

/// `secrets`: notices that somebody looks.
struct WatchedSecrets {
    values: BTreeMap<String, Value>,
    used: Arc<AtomicBool>,
}

impl Object for WatchedSecrets {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let found = self.values.get(key.as_str()?)?.clone();
        self.used.store(true, Ordering::Relaxed);
        Some(found)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let names: Vec<Value> = self.values.keys().map(Value::from).collect();
        Enumerator::Iter(Box::new(names.into_iter()))
    }
}

impl fmt::Debug for WatchedSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl fmt::Debug for ProfileScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProfileScope({} secrets)", self.secrets.len())
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope({:?})", self.mask)
    }
}
