//! A disk that can be frozen: whoever writes to it waits until it is thawed, and cannot be killed.

use crate::{Command, Node, Setup};
use std::{fs::File, os::fd::AsRawFd, path::Path};

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

impl FrozenDisk {
    /// A node whose state directory is on a disk of its own.
    #[must_use]
    pub fn below(setup: Setup) -> (Node, FrozenDisk) {
        let node = setup
            .with_mounts(
                "mkdir -p \"$MAINSTAY_STATE_DIR\"; truncate -s 32M disk; mkfs.ext4 -q disk
                 mount -o loop disk \"$MAINSTAY_STATE_DIR\"",
            )
            .start();
        let root = File::open(node.state_dir()).expect("it is mounted");
        (node, FrozenDisk { root, frozen: false })
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
