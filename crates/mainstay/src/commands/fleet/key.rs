//! `mainstay fleet key`: needs no node.

use crate::{
    args::FleetArgs,
    failure::Failure,
    term::{Page, print, print_json},
};
use mainstay_core::text::bytes;
use mainstay_engine::FleetKeys;
use mainstay_sys::state_dir::{Durability, StateDir};
use serde_json::json;
use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

pub(super) fn key(args: &FleetArgs) -> Result<i32, Failure> {
    let text = FleetKeys::generate().map_err(|error| Failure::of("cannot make a key", error))?;
    let Some(path) = &args.out else {
        match args.json.json {
            true => print_json(&json!({ "key": text }))?,
            false => print(&text)?,
        }
        return Ok(0);
    };
    write(path, &text, args.force).map_err(|error| refused(path, &error))?;
    if args.json.json {
        print_json(&json!({ "file": bytes::from_os(path.as_os_str()) }))?;
        return Ok(0);
    }
    let mut page = Page::new();
    page.line(format!("{} has a new key: give every node of the fleet a copy", path.display()));
    page.show()?;
    Ok(0)
}

/// Nobody else can read it at any time. One that is there is replaced as a whole or not at all.
fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    if force {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let dir = StateDir::open(dir.unwrap_or(Path::new(".")), Durability::Machine)?;
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        return dir.replace(name, 0o600, text.as_bytes()).map(drop);
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::failed(format!(
            "{shown} is there already, and stays as it is: a fleet may be using it (--force replaces it)"
        )),
        _ => Failure::failed(format!("cannot write {shown}: {error}")),
    }
}
