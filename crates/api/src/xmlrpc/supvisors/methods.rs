//! The methods of the namespace `supvisors`, under the names of 0.8 and those of today.

use crate::xmlrpc::methods::{Call, Method};

/// What is called, under whichever of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FleetCall {
    ApiVersion,
    State,
    AllStateModes,
    StateModes,
    /// As 0.8 has it: its name.
    MasterName,
    Master,
    Core,
    Strategies,
    StatisticsStatus,
    /// As 0.8 has it: one struct.
    NodeInfo,
    InstanceInfo,
    AllInstancesInfo,
    NetworkInfo,
    ApplicationInfo,
    AllApplicationsInfo,
    ApplicationRules,
    ProcessInfo,
    AllProcessInfo,
    ProcessRules,
    LocalProcessInfo,
    AllLocalProcessInfo,
    InnerProcessInfo,
    AllInnerProcessInfo,
    Conflicts,
    StartApplication,
    TestStartApplication,
    StopApplication,
    RestartApplication,
    StartArgs,
    StartProcess,
    TestStartProcess,
    StartAnyProcess,
    StopProcess,
    RestartProcess,
    UpdateNumprocs,
    Enable,
    Disable,
    Conciliate,
    RestartSequence,
    Restart,
    Shutdown,
    EndSync,
    LogLevel,
    Statistics,
}

macro_rules! methods {
    ($($name:literal $call:ident $least:literal [$($kind:literal),+] $help:literal;)*) => {
        pub(crate) const FLEET_METHODS: &[Method] = &[$(Method {
            name: concat!("supvisors.", $name),
            call: Call::Fleet(FleetCall::$call),
            least: $least,
            signature: &[$($kind),+],
            help: $help,
        }),*];
    };
}

// In the order of the alphabet; the number is that of the parameters that have to be there.
methods! {
    "change_log_level" LogLevel 1 ["boolean", "string"]
        "Not there: the level is in [log] of the configuration.";
    "conciliate" Conciliate 1 ["boolean", "string"]
        "Settles what runs on several nodes.";
    "disable" Disable 1 ["boolean", "string", "boolean"]
        "Stops a program here, and keeps it from being started.";
    "enable" Enable 1 ["boolean", "string", "boolean"]
        "Lets a program be started here again.";
    "enable_host_statistics" Statistics 1 ["boolean", "boolean"]
        "Not there: measures are at [telemetry] listen.";
    "enable_process_statistics" Statistics 1 ["boolean", "boolean"]
        "Not there: measures are at [telemetry] listen.";
    "end_sync" EndSync 0 ["boolean", "string"]
        "Not there: nobody ends the synchronisation by hand.";
    "get_address_info" NodeInfo 1 ["struct", "string"]
        "A node, as this one sees it.";
    "get_all_addresses_info" AllInstancesInfo 0 ["array"]
        "The nodes, as this one sees them.";
    "get_all_applications_info" AllApplicationsInfo 0 ["array"]
        "How each application is.";
    "get_all_inner_process_info" AllInnerProcessInfo 1 ["array", "string"]
        "What is known here of the processes of a node.";
    "get_all_instances_info" AllInstancesInfo 0 ["array"]
        "The nodes, as this one sees them.";
    "get_all_instances_state_modes" AllStateModes 0 ["array"]
        "How the fleet is, for each node.";
    "get_all_local_process_info" AllLocalProcessInfo 0 ["array"]
        "How each process is on this node.";
    "get_all_nodes_info" AllInstancesInfo 0 ["array"]
        "The nodes, as this one sees them.";
    "get_all_process_info" AllProcessInfo 0 ["array"]
        "How each process is, wherever it runs.";
    "get_api_version" ApiVersion 0 ["string"]
        "The version of Supvisors whose interface is spoken here.";
    "get_application_info" ApplicationInfo 1 ["struct", "string"]
        "How an application is.";
    "get_application_rules" ApplicationRules 1 ["struct", "string"]
        "The rules of an application.";
    "get_conflicts" Conflicts 0 ["array"]
        "The processes that run on several nodes.";
    "get_core_identifiers" Core 0 ["array"]
        "The nodes that are enough to begin with.";
    "get_inner_process_info" InnerProcessInfo 2 ["array", "string", "string"]
        "What is known here of a process of a node.";
    "get_instance_info" InstanceInfo 1 ["array", "string"]
        "A node, as this one sees it.";
    "get_instance_state_modes" StateModes 1 ["array", "string"]
        "How the fleet is, for a node.";
    "get_local_process_info" LocalProcessInfo 1 ["struct", "string"]
        "How a process is on this node.";
    "get_master_address" MasterName 0 ["string"]
        "The name of the master; empty if there is none.";
    "get_master_identifier" Master 0 ["struct"]
        "The master; empty if there is none.";
    "get_master_node" MasterName 0 ["string"]
        "The name of the master; empty if there is none.";
    "get_network_info" NetworkInfo 1 ["array", "string"]
        "Where a node is reached.";
    "get_node_info" NodeInfo 1 ["struct", "string"]
        "A node, as this one sees it.";
    "get_process_info" ProcessInfo 1 ["array", "string"]
        "How a process is, or all of a group, wherever they run.";
    "get_process_rules" ProcessRules 1 ["array", "string"]
        "The rules of a process, or of all of a group.";
    "get_statistics_status" StatisticsStatus 0 ["struct"]
        "That no statistics are collected.";
    "get_strategies" Strategies 0 ["struct"]
        "The strategies of the fleet.";
    "get_supvisors_state" State 0 ["struct"]
        "How the fleet is.";
    "restart" Restart 0 ["boolean"]
        "Stops all applications in order, then every node begins a new run.";
    "restart_application" RestartApplication 2 ["boolean", "string", "string", "boolean"]
        "Stops an application and starts it again, and waits unless told otherwise.";
    "restart_process" RestartProcess 2 ["boolean", "string", "string", "string", "boolean"]
        "Stops a process and starts it again wherever that may be.";
    "restart_sequence" RestartSequence 0 ["boolean", "boolean"]
        "Starts what of all applications is not up, in order.";
    "shutdown" Shutdown 0 ["boolean"]
        "Stops all applications in order, then every node ends.";
    "start_any_process" StartAnyProcess 2 ["string", "string", "string", "string", "boolean"]
        "Starts the first stopped process whose name matches and that finds a home.";
    "start_application" StartApplication 2 ["boolean", "string", "string", "boolean"]
        "Starts an application, and waits until it is up unless told otherwise.";
    "start_args" StartArgs 2 ["boolean", "string", "string", "boolean"]
        "Starts a process on this node, with arguments behind its own.";
    "start_process" StartProcess 2 ["boolean", "string", "string", "string", "boolean"]
        "Starts a process, or all of a group, with arguments behind its own.";
    "stop_application" StopApplication 1 ["boolean", "string", "boolean"]
        "Stops an application, and waits until it is down unless told otherwise.";
    "stop_process" StopProcess 1 ["boolean", "string", "boolean"]
        "Stops a process, or all of a group, wherever they run.";
    "test_start_application" TestStartApplication 2 ["array", "string", "string"]
        "What a start of an application would do.";
    "test_start_process" TestStartProcess 2 ["array", "string", "string"]
        "What a start of a process, or of all of a group, would do.";
    "update_collecting_period" Statistics 1 ["boolean", "double"]
        "Not there: measures are at [telemetry] listen.";
    "update_numprocs" UpdateNumprocs 2 ["boolean", "string", "int", "boolean", "boolean"]
        "Not there: the number of instances is in the configuration.";
}
