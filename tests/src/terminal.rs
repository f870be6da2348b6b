//! A terminal to run commands at.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::{
    fs::File,
    io::Read,
    os::fd::OwnedFd,
    process::{Command, ExitStatus},
};

/// A terminal, from the side of who shows it: dropped, it is closed.
#[derive(Debug)]
pub struct Terminal {
    master: OwnedFd,
    name: String,
}

impl Default for Terminal {
    fn default() -> Terminal {
        Terminal::new()
    }
}

impl Terminal {
    /// # Panics
    /// When there is no terminal to be had.
    #[must_use]
    pub fn new() -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .and_then(|master| grantpt(&master).map(|()| master))
            .and_then(|master| unlockpt(&master).map(|()| master))
            .expect("there are terminals");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        Terminal { master, name: name.into_string().expect("a path of devpts") }
    }

    /// The path of the other side.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is shown until nobody has it open any more.
    fn shown(self) -> String {
        let (mut shown, mut room) = (Vec::new(), [0; 4096]);
        let mut master = File::from(self.master);
        // Reading fails once nobody has it open any more.
        while let Ok(count @ 1..) = master.read(&mut room) {
            shown.extend_from_slice(&room[..count]);
        }
        String::from_utf8_lossy(&shown).into_owned()
    }
}

/// Runs a command whose stdout and stderr are a terminal; how it ended and what was shown.
///
/// # Panics
/// When there is no terminal to be had.
pub fn on_terminal(mut command: Command) -> (ExitStatus, String) {
    let terminal = Terminal::new();
    let open =
        || File::options().read(true).write(true).open(&terminal.name).expect("our own terminal");
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    let mut child = command.stdout(open()).stderr(open()).spawn().expect("it can be started");
    // The command holds the terminal as well.
    drop(command);
    let shown = terminal.shown();
    (child.wait().expect("our own child"), shown)
}
