//! `fleet` in the state directory: what outlives a boot of a node of a fleet.
//!
//! One line, a checksum (CRC-32, 8 hex digits), a space and JSON, replaced as a whole and synced. A
//! file that is torn, or of another node or fleet, is no reason not to start: it is set aside as
//! `fleet.old`, that is told, and the node begins as a new one. Fields that are not known here are
//! those of a newer version: in wishes and records of waves, which nodes hand on to each other, they
//! are kept, elsewhere they are passed over.

use mainstay_core::{fleet::Kept, name::Name};
use mainstay_sys::state_dir::{Durability, StateDir};
use serde::{Deserialize, Serialize};
use std::{fs, io, path::Path};

const FILE: &str = "fleet";
const SET_ASIDE: &str = "fleet.old";

/// Which node a state directory belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeOf {
    pub(crate) fleet: Name,
    pub(crate) node: Name,
    /// Made once, with the file.
    pub(crate) id: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptContent {
    #[serde(flatten)]
    of: NodeOf,
    #[serde(default)]
    kept: Kept,
}

/// Why a file is not what was written for this node.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is damaged")]
    Damaged,
    #[error("it is of node '{node}' in fleet '{fleet}'")]
    Foreign { node: Name, fleet: Name },
}

/// What a run begins with.
#[derive(Debug, PartialEq)]
pub(crate) struct KeptFound {
    pub(crate) of: NodeOf,
    pub(crate) kept: Kept,
    /// It is not on the disk yet.
    pub(crate) new: bool,
}

/// What an earlier run has left for this node, or that of a new one. What cannot be used is set
/// aside and told.
pub(crate) fn open(state_dir: &Path, fleet: &Name, node: &Name) -> KeptFound {
    match read(state_dir, fleet, node) {
        Ok(Some((of, kept))) => return KeptFound { of, kept, new: false },
        Ok(None) => {}
        Err(why) => {
            let path = state_dir.join(FILE);
            let aside = state_dir.join(SET_ASIDE);
            let path = path.display();
            match fs::rename(state_dir.join(FILE), &aside) {
                Ok(()) => tracing::error!(
                    "{path} cannot be used: {why}; it is now {}, and this node begins as a new one of \
                     its fleet",
                    aside.display()
                ),
                Err(error) => tracing::error!(
                    "{path} cannot be used: {why}; nor can it be set aside: {error}; this node begins \
                     as a new one of its fleet"
                ),
            }
        }
    }
    let of = NodeOf { fleet: fleet.clone(), node: node.clone(), id: new_id() };
    KeptFound { of, kept: Kept::default(), new: true }
}

/// `None`: there is none.
fn read(state_dir: &Path, fleet: &Name, node: &Name) -> Result<Option<(NodeOf, Kept)>, Unusable> {
    let bytes = match StateDir::open(state_dir, Durability::Machine).and_then(|it| it.read(FILE)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let KeptContent { of, kept } = decode(&bytes).ok_or(Unusable::Damaged)?;
    match of.fleet == *fleet && of.node == *node {
        true => Ok(Some((of, kept))),
        false => Err(Unusable::Foreign { node: of.node, fleet: of.fleet }),
    }
}

fn decode(bytes: &[u8]) -> Option<KeptContent> {
    let (checksum, json) = bytes.strip_suffix(b"\n")?.split_at_checked(9)?;
    let expected = format!("{:08x} ", crc32fast::hash(json));
    (checksum == expected.as_bytes()).then(|| serde_json::from_slice(json).ok())?
}

fn encode(of: &NodeOf, kept: &Kept) -> Vec<u8> {
    let content = KeptContent { of: of.clone(), kept: kept.clone() };
    checked(&serde_json::to_vec(&content).expect("names, numbers and texts have a JSON"))
}

fn checked(json: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:08x} ", crc32fast::hash(json)).into_bytes();
    bytes.extend(json);
    bytes.push(b'\n');
    bytes
}

/// Replaces what is there; on the disk when it returns.
///
/// # Errors
/// As the disk has them.
pub(crate) fn write(state_dir: &Path, of: &NodeOf, kept: &Kept) -> io::Result<()> {
    let dir = StateDir::open(state_dir, Durability::Machine)?;
    dir.replace(FILE, 0o600, &encode(of, kept)).map(drop)
}

/// No other node has it.
fn new_id() -> String {
    let kernels = fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    kernels.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_core::{
        fleet::{AskedBy, FailureKey, Number, RunId, Term},
        job::Desired,
    };
    use std::path::PathBuf;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    struct TempDir(PathBuf);

    impl TempDir {
        fn new(what: &str) -> TempDir {
            let name = format!("mainstay-kept-{what}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).expect("a directory");
            TempDir(path)
        }

        fn put(&self, bytes: &[u8]) {
            fs::write(self.0.join(FILE), bytes).expect("a file");
        }

        fn open(&self) -> (NodeOf, Kept) {
            let KeptFound { of, kept, .. } = open(&self.0, &name("shop"), &name("web-1"));
            (of, kept)
        }
    }

    impl Drop for TempDir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn kept() -> Kept {
        let term = Term { number: 7, master: name("web-2") };
        let mut kept = Kept { highest_term: Some(term.clone()), drained: true, ..Kept::default() };
        kept.isolates.insert(name("web-3"));
        let number = Number { term, counter: 3 };
        let args = Some(vec!["-v".to_owned()]);
        kept.wishes.write(number, &name("cart"), AskedBy::User, Desired::Run, args);
        kept.failures.add([FailureKey {
            node: name("web-3"),
            run: RunId::new("r1"),
            job: name("till"),
            incarnation: 4,
        }]);
        kept
    }

    #[test]
    fn what_was_kept_is_there_after_a_boot() {
        let dir = TempDir::new("boot");
        let (of, nothing) = dir.open();
        assert_eq!(nothing, Kept::default());
        write(&dir.0, &of, &kept()).expect("written");
        assert_eq!(dir.open(), (of, kept()));
        assert!(!dir.0.join(SET_ASIDE).exists());
    }

    #[test]
    fn a_torn_file_is_set_aside_wherever_it_ends() {
        let dir = TempDir::new("torn");
        let (of, _) = dir.open();
        let whole = encode(&of, &kept());
        for length in 0..whole.len() {
            dir.put(&whole[..length]);
            let (new, found) = dir.open();
            assert_eq!(found, Kept::default(), "of {length} bytes");
            assert_ne!(new.id, of.id, "a new node");
            assert!(!dir.0.join(FILE).exists());
            assert_eq!(fs::read(dir.0.join(SET_ASIDE)).expect("set aside"), &whole[..length]);
        }
    }

    #[test]
    fn no_flipped_bit_passes_for_what_was_written() {
        let dir = TempDir::new("flipped");
        let (of, _) = dir.open();
        let whole = encode(&of, &kept());
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            assert!(decode(&bytes).is_none(), "byte {at}");
        }
    }

    #[test]
    fn the_file_of_another_node_or_fleet_is_set_aside() {
        let dir = TempDir::new("foreign");
        for (fleet, node) in [("shop", "web-2"), ("stock", "web-1")] {
            let of = NodeOf { fleet: name(fleet), node: name(node), id: "x".to_owned() };
            dir.put(&encode(&of, &kept()));
            assert_eq!(dir.open().1, Kept::default());
            assert!(dir.0.join(SET_ASIDE).exists());
        }
    }

    #[test]
    fn what_a_newer_version_adds_is_passed_over() {
        let dir = TempDir::new("newer");
        let json = br#"{"fleet":"shop","node":"web-1","id":"x","more":[1],"kept":{"drained":true,"new":{}}}"#;
        dir.put(&checked(json));
        let (of, kept) = dir.open();
        assert_eq!((of.id.as_str(), kept.drained), ("x", true));
    }

    /// A node goes back to this version, and on again.
    #[test]
    fn what_a_newer_version_has_added_to_a_wish_stays_on_the_disk() {
        let dir = TempDir::new("later");
        let (of, _) = dir.open();
        let mut content = serde_json::to_value(KeptContent { of, kept: kept() }).expect("JSON");
        content["kept"]["wishes"]["cart"]["colour"] = "red".into();
        dir.put(&checked(content.to_string().as_bytes()));
        let (of, mut kept) = dir.open();
        kept.drained = false;
        write(&dir.0, &of, &kept).expect("written");
        let bytes = fs::read(dir.0.join(FILE)).expect("written");
        let text = String::from_utf8(bytes).expect("text");
        assert!(text.contains(r#""colour":"red""#), "{text}");
    }
}
