//! The two sides: a real supervisord with Supvisors, in a network of its own, and a node; each with
//! the same files in a directory of its own.

use mainstay_tests::{Node, Scratch, Setup, needs, needs_root, signal};
use rustix::process::Signal;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Where `scripts/setup-supvisors` puts it.
const SUPVISORS: &str = "/opt/mainstay-supvisors/bin";

/// Supvisors wants to find itself in its list by an address that is no loopback. A machine need not
/// have the file that names it.
const NETWORK: &str = "set -e
ip link set lo up
ip link add v0 type veth peer name v1
ip addr add 10.9.0.1/24 dev v0
ip link set v0 up
ip link set v1 up
hostname nick
cp -a /etc etc
cp hosts etc/hosts
mount --bind etc /etc
exec \"$@\"
";

/// A server of XML-RPC, and where it is.
pub(super) struct PluginSide {
    dir: PathBuf,
    server: PluginServer,
}

/// With what goes when it does.
enum PluginServer {
    Supvisors { child: Child, _scratch: Scratch },
    Mainstay { _node: Box<Node> },
}

impl PluginSide {
    pub(super) fn supvisors() -> PluginSide {
        needs_root();
        let scratch = Scratch::new();
        let dir = scratch.path().to_owned();
        configure(&dir);
        fs::write(dir.join("hosts"), "127.0.0.1 localhost\n10.9.0.1 nick\n").expect("written");
        let output = File::create(dir.join("out")).expect("a scratch directory can be written");
        let child = Command::new("unshare")
            .args(["--net", "--uts", "--mount", "sh", "-c", NETWORK, "sh"])
            .arg(tool("supervisord"))
            .args(["-n", "-c"])
            .arg(dir.join("supervisord.conf"))
            .current_dir(&dir)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a descriptor"))
            .stderr(output)
            .spawn()
            .expect("unshare can be started");
        PluginSide { dir, server: PluginServer::Supvisors { child, _scratch: scratch } }
    }

    pub(super) fn mainstay() -> PluginSide {
        let scratch = Scratch::new();
        let dir = scratch.path().to_owned();
        configure(&dir);
        let node = Setup::import("supvisors", &dir.join("supervisord.conf")).launch_in(scratch);
        PluginSide { dir, server: PluginServer::Mainstay { _node: Box::new(node) } }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The name that it gives its node.
    pub(super) fn names(&self) -> Vec<String> {
        match &self.server {
            PluginServer::Supvisors { .. } => vec!["10.9.0.1:60111".to_owned(), "nick".to_owned()],
            PluginServer::Mainstay { .. } => {
                let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
                vec![host.trim().to_owned()]
            }
        }
    }

    /// One command of the plugin, to its end: what it said, and its exit code.
    pub(super) fn ctl(&self, line: &str) -> (String, Option<i32>) {
        let output = Command::new(tool("supervisorctl"))
            .arg("-c")
            .arg(self.dir.join("supervisord.conf"))
            .args(line.split_whitespace())
            .env("LC_ALL", "C.UTF-8")
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .output()
            .expect("supervisorctl can be started");
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        (text, output.status.code())
    }
}

impl Drop for PluginSide {
    fn drop(&mut self) {
        if let PluginServer::Supvisors { child, .. } = &mut self.server {
            signal(child.id(), Signal::TERM);
            let _ = child.wait();
        }
    }
}

fn tool(name: &str) -> PathBuf {
    needs("unshare");
    let path = Path::new(SUPVISORS).join(name);
    assert!(path.is_file(), "this test needs {}: run scripts/setup", path.display());
    path
}

fn configure(dir: &Path) {
    let programs = include_str!("programs.conf").replace("DIR", &dir.display().to_string());
    fs::write(dir.join("supervisord.conf"), programs).expect("a scratch directory can be written");
    fs::write(dir.join("rules.xml"), include_str!("rules.xml")).expect("written");
}
