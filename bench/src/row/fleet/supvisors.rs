//! Nodes of Supvisors: supervisords that know each other, in a network of their own. They want to find
//! themselves in their list by an address that is no loopback, and by the name of the host.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::Pid;
use serde::Deserialize;

use super::OTHERS;
use super::nodes::{Nodes, View};
use crate::failure::{Doing, Failure, Result};
use crate::peer::{Place, Who, write};
use crate::process::tree;
use crate::row::Scene;

/// Where `scripts/setup-supvisors` puts it.
const SUPVISORS: &str = "/opt/mainstay-supvisors/bin";
const PORT: usize = 60110;

/// Says that it is there, and keeps it.
const NETWORK: &str = "set -e
ip link set lo up
ip link add v0 type veth peer name v1
ip addr add 10.9.0.1/24 dev v0
ip link set v0 up
ip link set v1 up
hostname bench
cp -a /etc etc
printf '127.0.0.1 localhost\\n10.9.0.1 bench\\n' >etc/hosts
mount --bind etc /etc
echo there
exec sleep 1000000
";

/// Answers each line, a socket, with a line: how the fleet looks from there.
const WATCHER: &str = r#"
import json, sys, xmlrpc.client
from supervisor.xmlrpc import SupervisorTransport

def view(socket):
    server = xmlrpc.client.ServerProxy("http://x", SupervisorTransport(None, None, "unix://" + socket))
    state = server.supvisors.get_supvisors_state()
    processes = server.supvisors.get_all_process_info()
    node = lambda identifier: int(identifier[-1]) if identifier else None
    states = state["instance_states"].items()
    return {
        "rests": state["fsm_statename"] == "OPERATION",
        "running": [node(it) for it, state in states if state == "RUNNING"],
        "master": node(state["master_identifier"]),
        "homes": {
            it["process_name"]: node(it["identifiers"][0])
            for it in processes
            if it["statename"] == "RUNNING" and len(it["identifiers"]) == 1
        },
    }

for line in sys.stdin:
    try:
        answer = view(line.strip())
    except Exception:
        answer = None
    print(json.dumps(answer), flush=True)
"#;

pub(super) struct SupvisorsNodes {
    place: Place,
    count: usize,
    network: Pid,
    watcher: RefCell<Watcher>,
}

struct Watcher {
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

#[derive(Deserialize)]
struct Seen {
    rests: bool,
    running: BTreeSet<usize>,
    master: Option<usize>,
    homes: BTreeMap<String, usize>,
}

/// Why it cannot be measured here.
pub(super) fn missing() -> Option<&'static str> {
    if !Path::new(SUPVISORS).join("supervisord").is_file() {
        return Some("it is not there: scripts/setup-supvisors installs it");
    }
    let root = rustix::process::geteuid().is_root();
    (!root).then_some("it needs a network of its own, which root makes")
}

impl SupvisorsNodes {
    pub(super) fn make(scene: &Scene, count: usize) -> Result<SupvisorsNodes> {
        let place = scene.place("supvisors")?;
        place.remove();
        let place = Place::make(place.run, place.state)?;
        configure(&place, scene, count)?;
        let network = network(&place)?;
        let mut python = tree::marked(format!("{SUPVISORS}/python"), &place.run);
        python.args(["-c", WATCHER]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = python.spawn().doing("start a watcher")?;
        let watcher = RefCell::new(Watcher::of(&mut child)?);
        Ok(SupvisorsNodes { place, count, network, watcher })
    }

    fn socket(&self, number: usize) -> PathBuf {
        self.place.run.join(format!("n{number}.sock"))
    }
}

impl Watcher {
    fn of(child: &mut Child) -> Result<Watcher> {
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (questions, answers) = pipes.ok_or_else(|| Failure::new("a watcher without pipes"))?;
        Ok(Watcher { questions, answers: BufReader::new(answers) })
    }

    fn ask(&mut self, socket: &Path) -> Option<Seen> {
        writeln!(self.questions, "{}", socket.display()).ok()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).ok()?;
        serde_json::from_str::<Option<Seen>>(&answer).ok()?
    }
}

impl Nodes for SupvisorsNodes {
    fn who(&self) -> Who {
        Who::Supvisors
    }

    fn count(&self) -> usize {
        self.count
    }

    fn jobs(&self) -> usize {
        OTHERS + 1
    }

    fn launch(&self, number: usize) -> Result<Pid> {
        let mut command = tree::marked("nsenter", &self.place.run);
        command.args(["--net", "--uts", "--mount", "--target", &self.network.to_string()]);
        let log = fs::File::create(self.place.state.join(format!("n{number}.out")));
        command.arg(format!("{SUPVISORS}/supervisord")).args(["-n", "-c"]);
        command.arg(self.place.run.join(format!("n{number}.conf"))).stdin(Stdio::null());
        command.stdout(log.doing("keep what is said")?).stderr(Stdio::null());
        let child = command.spawn().doing("start supervisord")?;
        Ok(Pid::from_child(&child))
    }

    fn seen_by(&self, number: usize) -> Option<View> {
        let seen = self.watcher.borrow_mut().ask(&self.socket(number))?;
        let Seen { rests, running, master, homes } = seen;
        Some(View { rests, running, master, homes })
    }
}

impl Drop for SupvisorsNodes {
    fn drop(&mut self) {
        self.place.remove();
    }
}

fn configure(place: &Place, scene: &Scene, count: usize) -> Result<()> {
    let (run, state, job) = (place.run.display(), place.state.display(), scene.job.display());
    let node = |number| format!("<n{number}>10.9.0.1:{}", PORT + number);
    let list: Vec<String> = (0..count).map(node).collect();
    let programs: String = super::jobs()
        .map(|name| {
            format!("\n[program:{name}]\ncommand={job} 1000000\nautostart=false\nstartsecs=0\n")
        })
        .collect();
    let names: Vec<String> = super::jobs().collect();
    let rules: String = names
        .iter()
        .map(|name| {
            format!(
                "<program name=\"{name}\"><start_sequence>1</start_sequence>\
                 <expected_loading>10</expected_loading>\
                 <running_failure_strategy>RESTART_PROCESS</running_failure_strategy></program>"
            )
        })
        .collect();
    write(
        &place.run.join("rules.xml"),
        &format!(
            "<root><application name=\"shop\"><start_sequence>1</start_sequence>\
             <programs>{rules}</programs></application></root>"
        ),
    )?;
    for number in 0..count {
        let text = format!(
            "[unix_http_server]\nfile={run}/n{number}.sock\n\
             [inet_http_server]\nport=10.9.0.1:{}\n\
             [supervisord]\nnodaemon=true\nlogfile={state}/n{number}.log\npidfile={run}/n{number}.pid\n\
             childlogdir={state}\n\
             [rpcinterface:supervisor]\n\
             supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface\n\
             [rpcinterface:supvisors]\n\
             supervisor.rpcinterface_factory=supvisors.plugin:make_supvisors_rpcinterface\n\
             supvisors_list={}\nrules_files={run}/rules.xml\nstarting_strategy=LESS_LOADED\n\
             {programs}\n[group:shop]\nprograms={}\n",
            PORT + number,
            list.join(","),
            names.join(","),
        );
        write(&place.run.join(format!("n{number}.conf")), &text)?;
    }
    Ok(())
}

/// The process that keeps the network.
fn network(place: &Place) -> Result<Pid> {
    let mut command: Command = tree::marked("unshare", &place.run);
    command.args(["--net", "--uts", "--mount", "sh", "-c", NETWORK]).current_dir(&place.run);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().doing("make a network")?;
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut said).doing("make a network")?;
    }
    match said.trim() {
        "there" => Ok(Pid::from_child(&child)),
        _ => Err(Failure::new("no network could be made")),
    }
}
