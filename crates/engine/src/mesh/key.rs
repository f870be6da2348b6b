//! The fleet key: a text that all nodes of a fleet share, and all that is derived from it.
//!
//! A key file has one key a line, at least 32 characters each; empty lines and those that begin with
//! `#` do not count. The first is used, a second one is accepted as well: that is how keys are
//! exchanged while a fleet runs.
//!
//! ```text
//!  old ──► old, new (everywhere) ──► new, old (everywhere) ──► new
//! ```

use mainstay_net::files::{self, FileError};
use ring::{
    hkdf::{HKDF_SHA256, KeyType, Prk, Salt},
    rand::{SecureRandom, SystemRandom},
};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Shorter ones could be guessed.
const SHORTEST: usize = 32;
/// While keys are changed: the old one and the new one.
const MOST: usize = 2;

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{0} is accessible to others than its owner: chmod go= {0}", path.display())]
    Shared { path: PathBuf },
    #[error("there is no key in {}: make one with 'mainstay fleet key'", path.display())]
    None { path: PathBuf },
    #[error("there is no randomness to be had")]
    Random,
    #[error("{} is not text", path.display())]
    NotText { path: PathBuf },
    #[error(
        "the key in line {line} of {} has {length} characters, and needs {SHORTEST}: make one with 'mainstay fleet key'",
        path.display()
    )]
    Short { path: PathBuf, line: usize, length: usize },
    #[error(
        "there are {count} keys in {}: one that is used, and at most one more that is accepted",
        path.display()
    )]
    TooMany { path: PathBuf, count: usize },
}

/// The keys of a fleet.
#[derive(Debug, Clone)]
pub struct FleetKeys {
    used: FleetKey,
    accepted: Option<FleetKey>,
}

impl FleetKeys {
    /// # Errors
    /// When it cannot be read, others can read it, or there is no such key in it.
    pub fn read(path: &Path) -> Result<FleetKeys, KeyError> {
        let bytes = files::read(path)?;
        if fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0) {
            return Err(KeyError::Shared { path: path.to_owned() });
        }
        let text = std::str::from_utf8(&bytes);
        FleetKeys::parse(text.map_err(|_| KeyError::NotText { path: path.to_owned() })?, path)
    }

    /// # Errors
    /// When there is no such key in the text.
    pub fn parse(text: &str, path: &Path) -> Result<FleetKeys, KeyError> {
        let path = || path.to_owned();
        let lines = text.lines().map(str::trim).enumerate();
        let keys: Vec<(usize, &str)> =
            lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect();
        if let Some((at, key)) = keys.iter().find(|(_, key)| key.chars().count() < SHORTEST) {
            let length = key.chars().count();
            return Err(KeyError::Short { path: path(), line: at + 1, length });
        }
        match keys.as_slice() {
            [] => Err(KeyError::None { path: path() }),
            [(_, used)] => Ok(FleetKeys { used: FleetKey::new(used), accepted: None }),
            [(_, used), (_, accepted)] => {
                Ok(FleetKeys { used: FleetKey::new(used), accepted: Some(FleetKey::new(accepted)) })
            }
            [_, _, _, ..] => Err(KeyError::TooMany { path: path(), count: keys.len() }),
        }
    }

    /// The text of a new key file.
    ///
    /// # Errors
    /// When there is no randomness to be had.
    pub fn generate() -> Result<String, KeyError> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| KeyError::Random)?;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(format!(
            "# The key of a fleet: the same on all of its nodes, and nobody else's.\n{hex}\n"
        ))
    }

    /// The one that this node uses.
    #[must_use]
    pub fn used(&self) -> &FleetKey {
        &self.used
    }

    /// All that others may use, the one that this node uses first.
    pub fn accepted(&self) -> impl Iterator<Item = &FleetKey> {
        [&self.used].into_iter().chain(&self.accepted).take(MOST)
    }
}

/// One key. What is derived from it tells nothing of it, nor of anything else that is.
#[derive(Debug, Clone)]
pub struct FleetKey(Prk);

impl FleetKey {
    #[must_use]
    pub fn new(text: &str) -> FleetKey {
        FleetKey(Salt::new(HKDF_SHA256, b"mainstay fleet key").extract(text.as_bytes()))
    }

    /// 32 bytes for one purpose in one fleet; `unique` tells those of one purpose apart.
    #[must_use]
    pub fn derive(&self, purpose: &str, fleet: &str, unique: &[u8]) -> [u8; 32] {
        let mut bytes = [0; 32];
        // Lengths go first: no two purposes, fleets and tails make the same text.
        let lengths = [purpose.len() as u64, fleet.len() as u64].map(u64::to_be_bytes);
        let info = [&lengths[0], &lengths[1], purpose.as_bytes(), fleet.as_bytes(), unique];
        self.0
            .expand(&info, ThirtyTwo)
            .and_then(|expanded| expanded.fill(&mut bytes))
            .expect("32 bytes are not too many for SHA-256");
        bytes
    }
}

struct ThirtyTwo;

impl KeyType for ThirtyTwo {
    fn len(&self) -> usize {
        32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "0123456789abcdef0123456789abcdef";
    const OTHER: &str = "fedcba9876543210fedcba9876543210";

    fn parse(text: &str) -> Result<FleetKeys, KeyError> {
        FleetKeys::parse(text, Path::new("/fleet.key"))
    }

    fn told(text: &str) -> String {
        parse(text).expect_err("no key").to_string()
    }

    #[test]
    fn one_key_is_used_and_a_second_one_accepted() {
        let of = |key: &FleetKey| key.derive("test", "shop", b"");
        let one = parse(&format!("# ours\n\n  {ONE}\n")).expect("a key");
        assert_eq!(one.accepted().map(of).collect::<Vec<_>>(), [of(&FleetKey::new(ONE))]);
        let both = parse(&format!("{OTHER}\n{ONE}")).expect("two keys");
        assert_eq!(of(both.used()), of(&FleetKey::new(OTHER)));
        assert_eq!(both.accepted().map(of).last(), Some(of(&FleetKey::new(ONE))));
    }

    #[test]
    fn what_is_no_key_is_told() {
        assert!(told("# nothing\n").starts_with("there is no key in /fleet.key"));
        assert!(told("\nsecret").starts_with("the key in line 2 of /fleet.key has 6 characters"));
        assert!(told(&format!("{ONE}\n{ONE}\n{ONE}")).starts_with("there are 3 keys"));
    }

    #[test]
    fn a_new_key_is_one_and_another_than_any_before() {
        let (one, other) = (FleetKeys::generate(), FleetKeys::generate());
        let (one, other) = (one.expect("random"), other.expect("random"));
        assert!(parse(&one).is_ok() && one != other);
    }

    #[test]
    fn what_is_derived_differs_by_purpose_fleet_and_tail() {
        let key = FleetKey::new(ONE);
        let all = [
            key.derive("a", "b", b""),
            key.derive("ab", "", b""),
            key.derive("", "ab", b""),
            key.derive("a", "", b"b"),
            FleetKey::new(OTHER).derive("a", "b", b""),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one), "{at}");
        }
        assert_eq!(all[0], key.derive("a", "b", b""), "the same on every node");
    }

    #[test]
    fn a_key_that_others_can_read_is_refused_and_told_nowhere() {
        let path = std::env::temp_dir().join(format!("fleet-key-{}", std::process::id()));
        fs::write(&path, ONE).expect("written");
        let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode));
        for others in [0o604, 0o640] {
            mode(others).expect("set");
            let error = FleetKeys::read(&path).expect_err("refused").to_string();
            assert!(error.contains("accessible to others"), "{error}");
        }
        mode(0o600).expect("set");
        let keys = FleetKeys::read(&path).expect("a key");
        assert!(!format!("{keys:?}").contains(ONE));
        fs::remove_file(&path).expect("removed");
        assert!(FleetKeys::read(&path).is_err());
    }
}
