//! `mainstay fleet key`: needs no node.

use crate::{
    args::FleetArgs,
    failure::Failure,
    term::{Page, print, print_json},
};
use mainstay_core::text::bytes;
use mainstay_engine::FleetKeys;
use serde_json::json;
use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
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

/// Whole or not at all; nobody else can read it at any time.
fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    let create =
        |path: &Path| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    if !force {
        let mut file = create(path)?;
        file.write_all(text.as_bytes())?;
        return file.sync_all();
    }
    let beside = beside(path);
    // One that was interrupted may have left its own.
    let _ = fs::remove_file(&beside);
    let mut file = create(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
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
