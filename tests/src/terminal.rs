//! A terminal to run commands at.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::{
    fs::File,
    io::Read,
    os::unix::ffi::OsStrExt,
    process::{Command, ExitStatus},
};

/// Runs a command whose stdout and stderr are a terminal; how it ended and what was shown.
///
/// # Panics
/// When there is no terminal to be had.
pub fn on_terminal(mut command: Command) -> (ExitStatus, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
        .and_then(|master| grantpt(&master).map(|()| master))
        .and_then(|master| unlockpt(&master).map(|()| master))
        .expect("there are terminals");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let open = || {
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        File::options().read(true).write(true).open(path).expect("our own terminal")
    };
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    let mut child = command.stdout(open()).stderr(open()).spawn().expect("it can be started");
    // The command holds the terminal as well.
    drop(command);
    let (mut shown, mut room) = (Vec::new(), [0; 4096]);
    let mut master = File::from(master);
    // Reading fails once nobody has it open any more.
    while let Ok(count @ 1..) = master.read(&mut room) {
        shown.extend_from_slice(&room[..count]);
    }
    let status = child.wait().expect("our own child");
    (status, String::from_utf8_lossy(&shown).into_owned())
}
