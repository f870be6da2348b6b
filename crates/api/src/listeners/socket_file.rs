//! `[api] socket_group`: who beside its owner may use the unix socket of the node.

use super::Opening;
use mainstay_agent::Handle;
use mainstay_pool::USERS;
use std::{
    fs, io,
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
};
use tokio::sync::watch;

/// Keeps the socket as the plan in force wants it, until the run is over.
pub(crate) async fn keep(handle: &Handle, opening: Opening, mut ending: watch::Receiver<bool>) {
    let path = handle.dirs().run.join("mainstay.sock");
    let mut plan = handle.api();
    let mut opened: Option<String> = None;
    let mut opening = Some(opening);
    loop {
        let group = plan.borrow_and_update().socket_group.clone();
        // What nobody has asked to be opened is as the keeper made it.
        if group.is_some() || opened.is_some() {
            let (path, wanted) = (path.clone(), group.clone());
            let done = USERS.run(move || open_to(&path, wanted.as_deref())).await;
            if let Err(error) = done.map_err(io::Error::from).flatten() {
                let name = group.as_deref().unwrap_or_default();
                tracing::error!("cannot open mainstay.sock to the group '{name}': {error}");
            }
            opened = group;
        }
        drop(opening.take());
        tokio::select! {
            changed = plan.changed() => if changed.is_err() { return },
            _ = ending.wait_for(|over| *over) => return,
        }
    }
}

fn open_to(path: &Path, group: Option<&str>) -> io::Result<()> {
    let mode = |mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    // Never open to a group that is not the right one, not even for a moment.
    mode(0o600)?;
    let Some(group) = group else { return Ok(()) };
    let gid = mainstay_sys::user::lookup_group(group)?
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such group"))?;
    chown(path, None, Some(gid))?;
    mode(0o660)
}
