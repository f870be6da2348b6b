//! The bytes of a profile as its source has served them, and what identifies them.

use mainstay_core::{
    plan::ProfileFormat,
    rollout::{Content, Digest, SecretValue, Version},
};
use ring::digest::{Context, SHA256};
use std::{collections::BTreeMap, fmt, path::Path};
use thiserror::Error;

/// The largest profile.
pub const LARGEST: usize = 2 << 20;

/// A content type that nobody here reads.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("content type '{0}' is not read: JSON, YAML, TOML or plain text in UTF-8 is")]
pub struct UnknownType(pub String);

/// What a source has served.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    pub format: ProfileFormat,
    pub bytes: Vec<u8>,
    /// What the source calls this version, if it has a name for it.
    pub label: Option<String>,
}

impl Document {
    /// With the secrets that it names.
    #[must_use]
    pub fn with_secrets(self, secrets: BTreeMap<String, SecretValue>) -> (Version, Content) {
        let Document { format, bytes, label } = self;
        let content_type = content_type(format).to_owned();
        let version = Version {
            label,
            digest: digest(&[content_type.as_bytes(), b"\n", &bytes]),
            secrets: digest_of_secrets(&secrets),
            rotation: 0,
        };
        (version, Content { content_type, body: bytes, secrets })
    }
}

/// Never shown as a whole: profiles are long, and what they hold is their owner's affair.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Document { format, bytes, label } = self;
        write!(f, "({} bytes of {}, {label:?})", bytes.len(), content_type(*format))
    }
}

/// Of a header, parameters and all: any other charset than UTF-8 is refused.
///
/// # Errors
/// When it is none of ours.
pub fn format_of_header(value: &str) -> Result<ProfileFormat, UnknownType> {
    let unknown = || UnknownType(value.chars().take(100).collect());
    let mut parts = value.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    for parameter in parts {
        let (key, charset) = parameter.split_once('=').unwrap_or((parameter, ""));
        let charset = charset.trim_matches('"');
        if key.eq_ignore_ascii_case("charset")
            && !["utf-8", "utf8", "us-ascii"].iter().any(|it| charset.eq_ignore_ascii_case(it))
        {
            return Err(unknown());
        }
    }
    match name.as_str() {
        "application/json" | "text/json" => Ok(ProfileFormat::Json),
        "application/yaml" | "application/x-yaml" | "text/yaml" | "text/x-yaml" => {
            Ok(ProfileFormat::Yaml)
        }
        "application/toml" | "text/toml" | "text/x-toml" => Ok(ProfileFormat::Toml),
        "text/plain" => Ok(ProfileFormat::Text),
        _ => Err(unknown()),
    }
}

/// Of a file, by the end of its name; any other file is text.
#[must_use]
pub fn format_of_path(path: &Path) -> ProfileFormat {
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "json" => ProfileFormat::Json,
        "yaml" | "yml" => ProfileFormat::Yaml,
        "toml" => ProfileFormat::Toml,
        _ => ProfileFormat::Text,
    }
}

/// The one name that a format is kept under.
#[must_use]
pub fn content_type(format: ProfileFormat) -> &'static str {
    match format {
        ProfileFormat::Json => "application/json",
        ProfileFormat::Yaml => "application/yaml",
        ProfileFormat::Toml => "application/toml",
        ProfileFormat::Text => "text/plain",
    }
}

/// SHA-256 of all parts in a row.
#[must_use]
pub fn digest(parts: &[&[u8]]) -> Digest {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    Digest(bytes)
}

/// Whether a content is the one that a version names, and no larger than a profile may be.
#[must_use]
pub fn is_content_of(version: &Version, content: &Content) -> bool {
    let Content { content_type, body, secrets } = content;
    let all: usize = secrets.values().map(|it| it.value.reveal().len()).sum();
    body.len() <= LARGEST
        && all <= LARGEST
        && version.digest == digest(&[content_type.as_bytes(), b"\n", body])
        && version.secrets == digest_of_secrets(secrets)
}

/// `None` without secrets. Every part has its length before it, so that no two sets are alike.
fn digest_of_secrets(secrets: &BTreeMap<String, SecretValue>) -> Option<Digest> {
    if secrets.is_empty() {
        return None;
    }
    let mut context = Context::new(&SHA256);
    for (name, secret) in secrets {
        let content_type = secret.content_type.as_deref().unwrap_or_default();
        for part in [name.as_str(), secret.value.reveal(), content_type] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    Some(Digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_core::text::Secret;

    fn document(format: ProfileFormat, bytes: &[u8], label: Option<&str>) -> Document {
        Document { format, bytes: bytes.to_vec(), label: label.map(str::to_owned) }
    }

    fn version(document: Document, secrets: &[(&str, &str)]) -> Version {
        let secret = |text: &str| SecretValue {
            value: Secret::new(text),
            content_type: None,
            version_id: None,
        };
        let secrets = secrets.iter().map(|(name, it)| ((*name).to_owned(), secret(it))).collect();
        document.with_secrets(secrets).0
    }

    #[test]
    fn a_version_is_its_label_and_digests_of_content_and_secrets() {
        let one = version(document(ProfileFormat::Json, b"1", None), &[]);
        let labelled = version(document(ProfileFormat::Json, b"1", Some("v1")), &[]);
        assert!(one.is_same_content(&labelled) && one != labelled);
        let text = version(document(ProfileFormat::Text, b"1", None), &[]);
        assert!(!one.is_same_content(&text), "the type counts");
        let two = version(document(ProfileFormat::Json, b"2", None), &[]);
        assert!(!one.is_same_content(&two));
        let secret = |all| version(document(ProfileFormat::Json, b"1", None), all);
        assert_eq!(secret(&[("a", "x")]), secret(&[("a", "x")]));
        assert!(!secret(&[("a", "x")]).is_same_content(&secret(&[("a", "y")])));
        assert!(!secret(&[("a", "x")]).is_same_content(&secret(&[("ax", "")])));
        assert!(!format!("{:?}", document(ProfileFormat::Text, b"hush", None)).contains("hush"));
    }

    #[test]
    fn only_four_content_types_in_utf_8_are_known() {
        let known = |value| format_of_header(value).ok();
        assert_eq!(known("application/json"), Some(ProfileFormat::Json));
        assert_eq!(known("Application/X-YAML; charset=UTF-8"), Some(ProfileFormat::Yaml));
        assert_eq!(known("text/plain;charset=\"utf-8\"; format=flowed"), Some(ProfileFormat::Text));
        assert_eq!(known("application/toml"), Some(ProfileFormat::Toml));
        for other in ["", "application/octet-stream", "text/plain; charset=latin1", "json"] {
            assert_eq!(format_of_header(other), Err(UnknownType(other.to_owned())));
        }
        for format in
            [ProfileFormat::Json, ProfileFormat::Yaml, ProfileFormat::Toml, ProfileFormat::Text]
        {
            assert_eq!(known(content_type(format)), Some(format));
        }
        assert_eq!(format_of_path(Path::new("/a/b.YML")), ProfileFormat::Yaml);
        assert_eq!(format_of_path(Path::new("/a/b.conf")), ProfileFormat::Text);
    }
}
