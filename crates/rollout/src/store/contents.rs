//! The contents of versions, each in a file of its own that never changes.

use super::{SetAside, Store};
use crate::template::{Mask, ProfileScope};
use mainstay_core::{
    name::Name,
    rollout::{Content, SecretValue, Version},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};
use thiserror::Error;

const KIND: &str = "content";

/// What stands before the bytes of a profile.
#[derive(Serialize, Deserialize)]
struct Head {
    content_type: String,
    #[serde(default)]
    secrets: BTreeMap<String, SecretValue>,
}

/// Why a content is not to be had any more.
#[derive(Debug, Error)]
pub enum ContentLoss {
    #[error("the content of profile '{profile}', version {version}, is not there")]
    Missing { profile: Name, version: Box<Version> },
    #[error("the content of profile '{profile}', version {version}, was lost: {source}")]
    Unusable { profile: Name, version: Box<Version>, source: SetAside },
    #[error("cannot read the content of profile '{profile}': {source}")]
    Unreadable { profile: Name, source: io::Error },
}

impl ContentLoss {
    /// It has to be got again; else the disk may give it later.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        match self {
            ContentLoss::Missing { .. } | ContentLoss::Unusable { .. } => true,
            ContentLoss::Unreadable { .. } => false,
        }
    }
}

/// A content that is stored cannot be read, with the secrets in it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the secrets that are in use are not known: {} cannot be read", .0.display())]
pub struct UnknownSecrets(PathBuf);

impl Store {
    /// Keeps the content of a version; on the disk when it returns.
    ///
    /// # Errors
    /// As write(2), fsync(2) and rename(2).
    pub fn store_content(
        &self,
        profile: &Name,
        version: &Version,
        content: &Content,
    ) -> io::Result<()> {
        let Content { content_type, body, secrets } = content;
        let head = Head { content_type: content_type.clone(), secrets: secrets.clone() };
        self.write(&file(profile, version), KIND, &head, body)
    }

    /// # Errors
    /// When it is not there, or is not what was stored.
    pub fn content(&self, profile: &Name, version: &Version) -> Result<Content, ContentLoss> {
        let unreadable = |source| ContentLoss::Unreadable { profile: profile.clone(), source };
        let (profile, version) = (profile.clone(), Box::new(version.clone()));
        match self.read::<Head>(&file(&profile, &version), KIND).map_err(unreadable)? {
            (Some((Head { content_type, secrets }, body)), _) => {
                Ok(Content { content_type, body, secrets })
            }
            (None, None) => Err(ContentLoss::Missing { profile, version }),
            (None, Some(source)) => Err(ContentLoss::Unusable { profile, version, source }),
        }
    }

    /// Hides the secrets of all versions that are stored.
    ///
    /// # Errors
    /// When one of them cannot be read: nobody knows what is to be hidden.
    pub fn mask(&self) -> Result<Mask, UnknownSecrets> {
        let contents = self.path().join("contents");
        let unknown = || UnknownSecrets(contents.clone());
        let dir = self.dir("contents").map_err(|_| unknown())?;
        let mut mask = Mask::default();
        for name in dir.names().map_err(|_| unknown())? {
            let unknown = || UnknownSecrets(contents.join(&name));
            let file = dir.read_up_to(&name, super::LONGEST).map_err(|_| unknown())?;
            let (Head { content_type, secrets }, _) =
                super::decode(KIND, &file).map_err(|_| unknown())?;
            if !secrets.is_empty() {
                let content = Content { content_type, body: Vec::new(), secrets };
                mask.append(&ProfileScope::secrets_of(&content).map_err(|_| unknown())?);
            }
        }
        Ok(mask)
    }

    /// Removes all contents but these.
    ///
    /// # Errors
    /// As readdir(3) and unlink(2).
    pub fn retain_contents(&self, versions: &BTreeMap<Name, Vec<Version>>) -> io::Result<()> {
        let needed: BTreeSet<PathBuf> = versions
            .iter()
            .flat_map(|(profile, versions)| versions.iter().map(|it| file(profile, it)))
            .collect();
        let dir = self.dir("contents")?;
        for name in dir.names()? {
            if !needed.contains(&Path::new("contents").join(&name)) {
                dir.remove_all(&name)?;
            }
        }
        Ok(())
    }
}

/// Two versions of the same content and secrets are one file, whatever they are called.
fn file(profile: &Name, version: &Version) -> PathBuf {
    let secrets = version.secrets.map_or(String::new(), |it| format!(".{}", &it.to_string()[..32]));
    format!("contents/{profile}.{}{secrets}", version.digest).into()
}

/// For fuzzing: whether a file is the content of a version, and how much of it.
#[cfg(feature = "fuzz")]
pub(crate) fn fuzz_content(file: &[u8]) -> Option<usize> {
    let (Head { content_type, secrets }, body) = super::decode(KIND, file).ok()?;
    let again = super::encode(KIND, &Head { content_type, secrets }, body).expect("JSON");
    let (_, again) = super::decode::<Head>(KIND, &again).expect("it was written so");
    Some(again.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{profile, test_dir::TestDir};
    use mainstay_core::{plan::ProfileFormat, text::Secret};
    use std::{fs, os::unix::fs::PermissionsExt};

    fn content(text: &str, secret: Option<&str>) -> (Version, Content) {
        let bytes = text.as_bytes().to_vec();
        let document = profile::Document { format: ProfileFormat::Text, bytes, label: None };
        let secret = secret.map(|it| {
            let value = Secret::new(it);
            ("key".to_owned(), SecretValue { value, content_type: None, version_id: None })
        });
        document.with_secrets(secret.into_iter().collect())
    }

    #[test]
    fn contents_come_back_with_their_secrets_and_are_private() {
        let dir = TestDir::new("contents");
        let store = Store::open(dir.path()).expect("a store");
        let web = Name::new("web").expect("a name");
        let (one, two) = (content("one", Some("hush")), content("one", Some("other")));
        store.store_content(&web, &one.0, &one.1).expect("stored");
        store.store_content(&web, &two.0, &two.1).expect("stored");
        assert_eq!(store.content(&web, &one.0).expect("there"), one.1);
        assert_eq!(store.content(&web, &two.0).expect("there"), two.1);
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(store.path()), 0o700);
        assert_eq!(mode(&store.path().join("contents")), 0o700);
        for file in fs::read_dir(store.path().join("contents")).expect("there") {
            assert_eq!(mode(&file.expect("there").path()), 0o600);
        }
        store.retain_contents(&BTreeMap::from([(web.clone(), vec![two.0.clone()])])).expect("gone");
        let gone = store.content(&web, &one.0);
        assert!(matches!(gone, Err(ContentLoss::Missing { .. })), "{gone:?}");
        assert_eq!(store.content(&web, &two.0).expect("there"), two.1);
    }

    #[test]
    fn what_is_torn_or_foreign_is_set_aside_and_told() {
        let dir = TestDir::new("torn");
        let store = Store::open(dir.path()).expect("a store");
        let web = Name::new("web").expect("a name");
        let (version, content) = content("one", None);
        store.store_content(&web, &version, &content).expect("stored");
        let path = store.path().join(file(&web, &version));
        let whole = fs::read(&path).expect("there");
        fs::write(&path, &whole[..whole.len() - 1]).expect("torn");
        let lost = store.content(&web, &version).expect_err("torn").to_string();
        assert!(lost.contains("torn") && lost.contains("set aside"), "{lost}");
        assert!(!path.exists());
        assert!(matches!(store.content(&web, &version), Err(ContentLoss::Missing { .. })));

        fs::write(store.path().join("kept"), "somebody's notes").expect("written");
        let (kept, aside) = store.load::<Vec<u8>>().expect("told");
        let aside = aside.expect("told");
        assert_eq!((kept, aside.why), (None, super::super::BadState::Foreign));
        assert_eq!(fs::read(aside.aside).expect("kept"), b"somebody's notes");
        store.save(&vec![1, 2, 3]).expect("saved");
        assert_eq!(store.load::<Vec<u8>>().expect("there"), (Some(vec![1, 2, 3]), None));

        let kept = store.path().join("kept");
        let in_its_place: [fn(&Path); 2] = [
            |path| fs::create_dir_all(path.join("in")).expect("made"),
            |path| std::os::unix::fs::symlink("elsewhere", path).expect("made"),
        ];
        for put in in_its_place {
            fs::remove_file(&kept).expect("there");
            put(&kept);
            let (_, aside) = store.load::<Vec<u8>>().expect("told");
            assert_eq!(aside.expect("told").why, super::super::BadState::Foreign);
            store.save(&vec![4]).expect("saved");
        }
        let notes = fs::read(store.path().join("kept.aside")).expect("still there");
        assert_eq!(notes, b"somebody's notes");
    }
}
