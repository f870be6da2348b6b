//! The place of a file: its directory, opened, and its name there; and what lies there.

use crate::profile;
use mainstay_core::rollout::Digest;
use mainstay_sys::{
    entries::{Entry, EntryKind},
    state_dir::{Durability, StateDir},
};
use std::{
    collections::BTreeMap,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    rc::Rc,
};

/// The deepest directory that a template makes.
const DEEPEST: usize = 16;

/// The directories of a set of destinations, each opened once.
#[derive(Debug, Default)]
pub(super) struct Directories(BTreeMap<PathBuf, Rc<StateDir>>);

#[derive(Debug)]
pub(super) struct Destination {
    pub(super) dir: Rc<StateDir>,
    pub(super) name: PathBuf,
    pub(super) path: PathBuf,
}

/// What lies at a destination.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    File {
        bytes: Vec<u8>,
        entry: Entry,
    },
    /// `tree`: of a directory that we have made.
    Link {
        target: PathBuf,
        tree: Option<Digest>,
    },
}

impl Directories {
    /// # Errors
    /// When its directory is not there.
    pub(super) fn destination(&mut self, path: &Path) -> io::Result<Destination> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no name of a file"));
        };
        let dir = match self.0.get(parent) {
            Some(dir) => dir.clone(),
            None => {
                let dir = Rc::new(StateDir::open(parent, Durability::Machine)?);
                self.0.insert(parent.to_owned(), dir.clone());
                dir
            }
        };
        Ok(Destination { dir, name: name.into(), path: path.to_owned() })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, &StateDir)> {
        self.0.iter().map(|(path, dir)| (path.as_path(), dir.as_ref()))
    }
}

impl Destination {
    /// A hidden name beside it.
    pub(super) fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = std::ffi::OsString::from(".");
        name.push(&self.name);
        name.push(format!(".mainstay-{suffix}"));
        name.into()
    }

    pub(super) fn path_beside(&self, suffix: &str) -> PathBuf {
        self.path.with_file_name(self.beside(suffix))
    }

    /// # Errors
    /// As stat(2) and read(2), and when it is nothing that could be replaced.
    pub(super) fn found(&self) -> io::Result<Found> {
        let Some(entry) = self.dir.entry(&self.name)? else { return Ok(Found::Nothing) };
        match entry.kind {
            EntryKind::File => {
                let bytes = self.dir.read_up_to(&self.name, super::LARGEST_OLD)?;
                Ok(Found::File { bytes, entry })
            }
            EntryKind::Link => {
                let target = self.dir.link_target(&self.name)?;
                let tree = match self.is_version(&target) {
                    true => Some(tree_digest(&self.dir.open_dir(&target)?)?),
                    false => None,
                };
                Ok(Found::Link { target, tree })
            }
            EntryKind::Directory => Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a directory, and not a link to one: move it away first",
            )),
            EntryKind::Other => Err(io::Error::other("it is neither a file nor a link")),
        }
    }

    /// A directory beside it that holds one version of it.
    pub(super) fn is_version(&self, target: &Path) -> bool {
        let begin = self.beside("");
        target.components().count() == 1
            && target.as_os_str().as_bytes().starts_with(begin.as_os_str().as_bytes())
            && self
                .dir
                .entry(target)
                .is_ok_and(|entry| entry.is_some_and(|entry| entry.kind == EntryKind::Directory))
    }

    /// What the staged name holds, as a digest.
    pub(super) fn staged_digest(&self, staged: &Path) -> io::Result<Option<Digest>> {
        let name = staged.file_name().unwrap_or_default();
        match self.dir.entry(name)?.map(|entry| entry.kind) {
            Some(EntryKind::File) => {
                let bytes = self.dir.read_up_to(name, super::LARGEST_OLD)?;
                Ok(Some(profile::digest(&[&bytes])))
            }
            Some(EntryKind::Link) => {
                let target = self.dir.link_target(name)?;
                match self.is_version(&target) {
                    true => Ok(Some(tree_digest(&self.dir.open_dir(&target)?)?)),
                    false => Ok(None),
                }
            }
            None | Some(EntryKind::Directory | EntryKind::Other) => Ok(None),
        }
    }
}

impl Found {
    /// `None`: nothing lies there.
    pub(super) fn digest(&self) -> Option<Digest> {
        match self {
            Found::Nothing => None,
            Found::File { bytes, .. } => Some(profile::digest(&[bytes])),
            Found::Link { tree: Some(digest), .. } => Some(*digest),
            Found::Link { target, tree: None } => {
                Some(profile::digest(&[b"link\n", target.as_os_str().as_bytes()]))
            }
        }
    }
}

/// Of all files in a directory: their paths and contents.
pub(super) fn tree_digest(dir: &StateDir) -> io::Result<Digest> {
    let mut parts: Vec<(PathBuf, Digest)> = Vec::new();
    collect(dir, Path::new(""), DEEPEST, &mut parts)?;
    Ok(digest_of_parts(parts.iter().map(|(path, digest)| (path.as_path(), *digest))))
}

/// In the order of their paths.
pub(super) fn digest_of_parts<'a>(parts: impl Iterator<Item = (&'a Path, Digest)>) -> Digest {
    let mut all = Vec::new();
    for (path, digest) in parts {
        let path = path.as_os_str().as_bytes();
        all.extend_from_slice(&(path.len() as u64).to_be_bytes());
        all.extend_from_slice(path);
        all.extend_from_slice(&digest.0);
    }
    profile::digest(&[b"tree\n", &all])
}

fn collect(
    dir: &StateDir,
    path: &Path,
    depth: usize,
    parts: &mut Vec<(PathBuf, Digest)>,
) -> io::Result<()> {
    let mut names = dir.names()?;
    // As a map of paths has them.
    names.sort();
    for name in names {
        let below = path.join(&name);
        let kind = dir.entry(&name)?.map(|entry| entry.kind);
        match kind {
            Some(EntryKind::Directory) if depth > 0 => {
                collect(&dir.open_dir(&name)?, &below, depth - 1, parts)?;
            }
            Some(EntryKind::File) => {
                let bytes = dir.read_up_to(&name, super::LARGEST_OLD)?;
                parts.push((below, profile::digest(&[&bytes])));
            }
            // Somebody else's: it makes another digest.
            Some(EntryKind::Directory | EntryKind::Link | EntryKind::Other) => {
                parts.push((below, profile::digest(&[b"other"])));
            }
            None => {}
        }
    }
    parts.sort();
    Ok(())
}
