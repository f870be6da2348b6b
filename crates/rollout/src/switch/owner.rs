//! Who owns what a template makes, and who may read it.

use super::destination::Found;
use mainstay_core::plan::TemplatePlan;
use mainstay_sys::user::{lookup_group, lookup_user};
use std::io;

/// For files that anybody may read, and for those with a secret.
const PUBLIC: u32 = 0o644;
const PRIVATE: u32 = 0o600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) mode: u32,
    /// `None`: whoever makes it.
    pub(super) owner: Option<(u32, u32)>,
}

/// As the template says; else as the file that is there, without what all but its owner may do where
/// a secret is used.
///
/// # Errors
/// When nobody has that name.
pub(super) fn access(
    template: &TemplatePlan,
    found: &Found,
    uses_secret: bool,
) -> io::Result<Access> {
    let there = match found {
        Found::File { entry, .. } => Some(entry),
        Found::Nothing | Found::Link { .. } => None,
    };
    let mode = match (template.mode, there, uses_secret) {
        (Some(mode), _, _) => mode,
        (None, Some(entry), false) => entry.mode,
        (None, Some(entry), true) => entry.mode & 0o700,
        (None, None, false) => PUBLIC,
        (None, None, true) => PRIVATE,
    };
    let owner = match &template.owner {
        Some(owner) => Some(look_up(owner)?),
        None => there.map(|entry| (entry.uid, entry.gid)),
    };
    Ok(Access { mode, owner })
}

/// `user`, `user:group` or `:group`. A user alone brings its own group.
fn look_up(owner: &str) -> io::Result<(u32, u32)> {
    let nobody = |kind: &str, name: &str| {
        io::Error::new(io::ErrorKind::NotFound, format!("there is no {kind} '{name}'"))
    };
    let (user, group) = match owner.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (owner, None),
    };
    let (uid, own_group) = match user {
        "" => (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
        name => {
            let user = lookup_user(name)?.ok_or_else(|| nobody("user", name))?;
            (user.uid, user.gid)
        }
    };
    let gid = match group {
        None | Some("") => own_group,
        Some(name) => lookup_group(name)?.ok_or_else(|| nobody("group", name))?,
    };
    Ok((uid, gid))
}
