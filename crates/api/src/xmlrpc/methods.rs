//! The methods: one table for those who call them and those who ask what can be called. Those of
//! `supvisors` are beside it.

use super::supvisors::methods::{FLEET_METHODS, FleetCall};

/// A method, as the table shows it.
#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) call: Call,
    /// So many of its parameters have to be there.
    pub(crate) least: usize,
    /// The type of its result, then those of its parameters.
    pub(crate) signature: &'static [&'static str],
    pub(crate) help: &'static str,
}

impl Method {
    /// By name.
    pub(crate) fn all() -> Vec<&'static Method> {
        let mut all: Vec<&Method> = METHODS.iter().chain(FLEET_METHODS).collect();
        all.sort_unstable_by_key(|method| method.name);
        all
    }

    pub(crate) fn named(name: &str) -> Option<&'static Method> {
        METHODS.iter().chain(FLEET_METHODS).find(|method| method.name == name)
    }

    /// Whether it may be called with so many parameters.
    pub(crate) fn takes(&self, params: usize) -> bool {
        (self.least..self.signature.len()).contains(&params)
    }
}

/// Of Supervisor's, only whether to wait may be left out: a truth that comes last.
const fn least(signature: &[&str]) -> usize {
    let most = signature.len() - 1;
    let waits = most > 0 && matches!(signature[most].as_bytes(), b"boolean");
    if waits { most - 1 } else { most }
}

macro_rules! methods {
    ($($name:literal $call:ident [$($kind:literal),+] $help:literal;)*) => {
        pub(crate) const METHODS: &[Method] = &[$(Method {
            name: $name,
            call: Call::$call,
            least: least(&[$($kind),+]),
            signature: &[$($kind),+],
            help: $help,
        }),*];
    };
}

/// What is called, under whichever of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    ApiVersion,
    Version,
    Identification,
    State,
    Pid,
    ReadMain,
    ClearMain,
    Shutdown,
    RestartAll,
    Reread,
    AddGroup,
    RemoveGroup,
    Start,
    StartGroup,
    StartAll,
    Stop,
    StopGroup,
    StopAll,
    Signal,
    SignalGroup,
    SignalAll,
    ConfigInfo,
    Info,
    AllInfo,
    ReadStdout,
    ReadStderr,
    TailStdout,
    TailStderr,
    Clear,
    ClearAll,
    SendStdin,
    SendEvent,
    ListMethods,
    MethodHelp,
    MethodSignature,
    Multicall,
    Fleet(FleetCall),
}

// In the order of the alphabet.
methods! {
    "supervisor.addProcessGroup" AddGroup ["boolean", "string"]
        "Adds a group of the configuration that was read last, and starts what starts by itself.";
    "supervisor.clearAllProcessLogs" ClearAll ["array"]
        "Empties the logs of all processes.";
    "supervisor.clearLog" ClearMain ["boolean"]
        "Empties the log of the node itself.";
    "supervisor.clearProcessLog" Clear ["boolean", "string"]
        "Empties the log of a process.";
    "supervisor.clearProcessLogs" Clear ["boolean", "string"]
        "Empties the log of a process.";
    "supervisor.getAPIVersion" ApiVersion ["string"]
        "The version of Supervisor's interface that is spoken here.";
    "supervisor.getAllConfigInfo" ConfigInfo ["array"]
        "What the configuration that was read last says of each process.";
    "supervisor.getAllProcessInfo" AllInfo ["array"]
        "How each process is.";
    "supervisor.getIdentification" Identification ["string"]
        "The name of the node.";
    "supervisor.getPID" Pid ["int"]
        "The pid of the keeper, which is the parent of all processes.";
    "supervisor.getProcessInfo" Info ["struct", "string"]
        "How a process is.";
    "supervisor.getState" State ["struct"]
        "How the node is.";
    "supervisor.getSupervisorVersion" Version ["string"]
        "The version of Mainstay.";
    "supervisor.getVersion" ApiVersion ["string"]
        "The version of Supervisor's interface that is spoken here.";
    "supervisor.readLog" ReadMain ["string", "int", "int"]
        "Reads the log of the node itself: from an offset so many bytes, or the last of them.";
    "supervisor.readMainLog" ReadMain ["string", "int", "int"]
        "Reads the log of the node itself: from an offset so many bytes, or the last of them.";
    "supervisor.readProcessLog" ReadStdout ["string", "string", "int", "int"]
        "Reads what a process has written: from an offset so many bytes, or the last of them.";
    "supervisor.readProcessStderrLog" ReadStderr ["string", "string", "int", "int"]
        "Reads what a process has written to stderr: from an offset so many bytes, or the last.";
    "supervisor.readProcessStdoutLog" ReadStdout ["string", "string", "int", "int"]
        "Reads what a process has written: from an offset so many bytes, or the last of them.";
    "supervisor.reloadConfig" Reread ["array"]
        "Reads the configuration: the groups that it adds, changes and removes. None of it is done.";
    "supervisor.removeProcessGroup" RemoveGroup ["boolean", "string"]
        "Takes a group away that has been stopped.";
    "supervisor.restart" RestartAll ["boolean"]
        "Reads the configuration, and starts every process anew that runs or starts by itself.";
    "supervisor.sendProcessStdin" SendStdin ["boolean", "string", "string"]
        "Sends characters to a process whose stdin is open.";
    "supervisor.sendRemoteCommEvent" SendEvent ["boolean", "string", "string"]
        "Not there: nothing listens to such events here.";
    "supervisor.shutdown" Shutdown ["boolean"]
        "Stops all processes and ends the node.";
    "supervisor.signalAllProcesses" SignalAll ["array", "string"]
        "Sends a signal to all processes.";
    "supervisor.signalProcess" Signal ["boolean", "string", "string"]
        "Sends a signal to a process, or to all of a group.";
    "supervisor.signalProcessGroup" SignalGroup ["array", "string", "string"]
        "Sends a signal to all processes of a group.";
    "supervisor.startAllProcesses" StartAll ["array", "boolean"]
        "Starts all processes, and waits for them unless told otherwise.";
    "supervisor.startProcess" Start ["boolean", "string", "boolean"]
        "Starts a process, and waits until it runs unless told otherwise.";
    "supervisor.startProcessGroup" StartGroup ["array", "string", "boolean"]
        "Starts all processes of a group, and waits for them unless told otherwise.";
    "supervisor.stopAllProcesses" StopAll ["array", "boolean"]
        "Stops all processes, and waits for them unless told otherwise.";
    "supervisor.stopProcess" Stop ["boolean", "string", "boolean"]
        "Stops a process, and waits until it is gone unless told otherwise.";
    "supervisor.stopProcessGroup" StopGroup ["array", "string", "boolean"]
        "Stops all processes of a group, and waits for them unless told otherwise.";
    "supervisor.tailProcessLog" TailStdout ["array", "string", "int", "int"]
        "The end of what a process has written, where that is, and whether more was passed over.";
    "supervisor.tailProcessStderrLog" TailStderr ["array", "string", "int", "int"]
        "The end of what a process has written to stderr, and where that is.";
    "supervisor.tailProcessStdoutLog" TailStdout ["array", "string", "int", "int"]
        "The end of what a process has written, where that is, and whether more was passed over.";
    "system.listMethods" ListMethods ["array"]
        "The names of all methods.";
    "system.methodHelp" MethodHelp ["string", "string"]
        "What a method does.";
    "system.methodSignature" MethodSignature ["array", "string"]
        "The type of a method's result, then those of its parameters.";
    "system.multicall" Multicall ["array", "array"]
        "Makes several calls, one after the other: of each a list with its result, or its fault.";
}
