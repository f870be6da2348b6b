//! A disk that can be frozen: whoever writes to it waits until it is thawed, and cannot be killed.

use crate::{Command, Node, Setup, until};
use std::{
    fs::File,
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    path::Path,
};

/// The disk under a node's state directory.
#[derive(Debug)]
pub struct FrozenDisk {
    root: File,
    frozen: bool,
}

/// Why this machine cannot have such a disk.
#[must_use]
pub fn no_frozen_disk() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root can freeze a disk");
    }
    (!Path::new("/dev/loop-control").exists()).then_some("there are no loop devices")
}

fn mount(directory: &str) -> String {
    format!(
        "mkdir -p \"${directory}\"; truncate -s 32M disk; mkfs.ext4 -q disk
         mount -o loop disk \"${directory}\""
    )
}

impl FrozenDisk {
    /// A node whose state directory is on a disk of its own.
    #[must_use]
    pub fn below(setup: Setup) -> (Node, FrozenDisk) {
        let node = setup.with_mounts(&mount("MAINSTAY_STATE_DIR")).start();
        let root = File::open(node.state_dir()).expect("it is mounted");
        (node, FrozenDisk { root, frozen: false })
    }

    /// A node whose run directory is on a disk of its own.
    #[must_use]
    pub fn below_run_dir(setup: Setup) -> (Node, FrozenDisk) {
        let node = setup.with_mounts(&mount("MAINSTAY_RUN_DIR")).start();
        let root = File::open(node.run_dir()).expect("it is mounted");
        (node, FrozenDisk { root, frozen: false })
    }

    /// A node that is started on a state directory whose disk is frozen by then.
    #[must_use]
    pub fn from_the_start(setup: Setup) -> (Node, FrozenDisk) {
        let freeze = "fsfreeze -f \"$MAINSTAY_STATE_DIR\"";
        let mounts = format!("{}\n{freeze}", mount("MAINSTAY_STATE_DIR"));
        let node = setup.with_mounts(&mounts).launch();
        let root = until("it is mounted", || {
            let root = File::open(node.state_dir()).ok()?;
            // The root of another file system.
            root.metadata().is_ok_and(|it| it.ino() == 2).then_some(root)
        });
        (node, FrozenDisk { root, frozen: true })
    }

    pub fn freeze(&mut self) {
        self.fsfreeze("-f");
        self.frozen = true;
    }

    pub fn thaw(&mut self) {
        self.fsfreeze("-u");
        self.frozen = false;
    }

    fn fsfreeze(&self, option: &str) {
        // By descriptor: the node, and with it the mount namespace, may be gone.
        let path = format!("/proc/{}/fd/{}", std::process::id(), self.root.as_raw_fd());
        let done = Command::new("fsfreeze").args([option, &path]).status();
        assert!(done.expect("fsfreeze can be started").success(), "fsfreeze {option} {path}");
    }
}

impl Drop for FrozenDisk {
    fn drop(&mut self) {
        if self.frozen {
            self.thaw();
        }
    }
}
