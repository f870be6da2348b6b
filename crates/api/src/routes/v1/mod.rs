//! `/v1`, and the table of its routes: the one place that says what can be asked, for the router and for OpenAPI.

mod apps;
pub(crate) mod environ;
pub(crate) mod events;
mod fleet;
mod jobs;
mod log;
mod metrics;
pub(crate) mod node;
mod nodes;
mod rollout;

use crate::{
    RouterState,
    extract::Nothing,
    openapi::{self, Anything, Contents, EventStream, LogLines},
};
use axum::{
    Json, Router,
    routing::{get, post, put},
};
use mainstay_wire::api::{
    AppDetail, AppJobs, AppList, AppRestartRequest, Changes, ConciliateRequest, Conflicts,
    EnvironChanged, EnvironVariables, FleetStatus, JobAnswer, MaintenanceRequest, MetricValues,
    MetricsTaken, MoveRequest, NodeRequest, NodeStateAnswer, NodeStatus, RefreshRequest,
    RestartRequest, RollbackRequest, RolloutDone, RolloutHistory, RolloutPreview, RolloutStatus,
    RolloutWhy, ShutdownRequest, SignalRequest, StartPlan, StartRequest, UpgradeRequest, WhyAnswer,
};
use serde_json::{Map, Value};

/// A route, as the description shows it.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) body: Contents,
    pub(crate) answer: Contents,
    /// What may stand in the query.
    pub(crate) query: &'static [&'static str],
}

macro_rules! table {
    ($($method:ident $path:literal $handler:path: $body:ty => $answer:ty,
       $([$($query:literal),*])? $summary:literal;)*) => {
        pub(crate) const ROUTES: &[Route] = &[$(Route {
            method: stringify!($method),
            path: $path,
            summary: $summary,
            body: Contents::of::<$body>(),
            answer: Contents::of::<$answer>(),
            query: &[$($($query),*)?],
        }),*];

        pub(crate) fn router() -> Router<RouterState> {
            Router::new()$(.route($path, $method($handler)))*
        }
    };
}

table! {
    get "/v1/status" node::status: Nothing => Json<NodeStatus>,
        "The node and its jobs";
    get "/v1/events" events::stream: Nothing => EventStream, ["since", "follow", "job", "fleet", "here"]
        "What happens, as server-sent events; resumes after Last-Event-ID. Of a job, or of all nodes of \
         the fleet";
    get "/v1/plan" node::plan: Nothing => Json<Changes>,
        "What a reload would change";
    post "/v1/reload" node::reload: Nothing => Json<Changes>, ["wait"]
        "Brings the configuration into force as it is written now, and waits for what that starts \
         and stops";
    get "/v1/logs" log::of_all: Nothing => LogLines, ["jobs", "all", "lines", "since", "follow", "format", "here"]
        "What jobs of the configuration have written, or those that are named, or all that ever did";
    post "/v1/maintenance" node::maintenance: Json<MaintenanceRequest> => Json<NodeStateAnswer>,
        "Enters or leaves maintenance";
    post "/v1/shutdown" node::shutdown: Json<ShutdownRequest> => Json<NodeStateAnswer>, ["wait"]
        "Stops all jobs and ends the run; with `drain` what the fleet has placed here goes elsewhere \
         first";
    post "/v1/upgrade" node::upgrade: Json<UpgradeRequest> => Json<NodeStateAnswer>,
        "Replaces keeper and agent by another binary; the jobs go on";
    get "/v1/jobs/{job}" jobs::one: Nothing => Json<JobAnswer>, ["here"]
        "One job, as it is on the node where it runs";
    get "/v1/jobs/{job}/log" log::of_job: Nothing => LogLines, ["lines", "since", "follow", "format", "here"]
        "What a job has written; `mainstay` is Mainstay's own log";
    get "/v1/jobs/{job}/why" jobs::why: Nothing => Json<WhyAnswer>, ["here"]
        "Why a job is as it is";
    post "/v1/jobs/{job}/start" jobs::start: Json<StartRequest> => Json<JobAnswer>, ["wait", "here"]
        "Starts a job, and waits until it is healthy; without checks until it has lived for a while";
    post "/v1/jobs/{job}/stop" jobs::stop: Nothing => Json<JobAnswer>, ["wait", "here"]
        "Stops a job, and waits until nothing of it is left";
    post "/v1/jobs/{job}/restart" jobs::restart: Json<RestartRequest> => Json<JobAnswer>, ["wait", "here"]
        "Stops a job and starts it again";
    post "/v1/jobs/{job}/kill" jobs::kill: Nothing => Json<JobAnswer>, ["wait", "here"]
        "Kills a job without grace";
    post "/v1/jobs/{job}/signal" jobs::signal: Json<SignalRequest> => Json<JobAnswer>, ["here"]
        "Sends a signal to a job";
    post "/v1/jobs/{job}/reload" jobs::reload: Nothing => Json<JobAnswer>, ["wait", "here"]
        "Lets a job reload in its own way";
    post "/v1/jobs/{job}/enable" jobs::enable: Nothing => Json<JobAnswer>, ["wait", "here"]
        "Lets a job be started again, and waits until it is if nothing keeps it";
    post "/v1/jobs/{job}/disable" jobs::disable: Nothing => Json<JobAnswer>, ["wait", "here"]
        "Stops a job and keeps it from being started, over runs; waits until nothing of it is left";
    get "/v1/apps" apps::all: Nothing => Json<AppList>,
        "The apps of the fleet, or of the node if it belongs to none: how far they are, and what is \
         wrong with them";
    get "/v1/apps/{app}" apps::one: Nothing => Json<AppDetail>,
        "One app, and its jobs wherever they run";
    get "/v1/apps/{app}/plan" apps::plan: Nothing => Json<StartPlan>,
        "Where each job of an app would go if it were started now, and why not";
    post "/v1/apps/{app}/start" apps::start: Nothing => Json<AppJobs>, ["wait", "here"]
        "Starts the jobs of an app, in order";
    post "/v1/apps/{app}/stop" apps::stop: Nothing => Json<AppJobs>, ["wait", "here"]
        "Stops the jobs of an app, in order";
    post "/v1/apps/{app}/restart" apps::restart: Json<AppRestartRequest> => Json<AppJobs>, ["wait", "here"]
        "Stops the jobs of an app and starts them again, in order, or in waves of so many at a time";
    get "/v1/fleet" fleet::show: Nothing => Json<FleetStatus>,
        "The fleet as this node sees it: its nodes, apps and placed jobs";
    post "/v1/fleet/shutdown" fleet::shutdown: Nothing => Json<FleetStatus>,
        "Stops all apps of the fleet in order, then ends every node";
    post "/v1/fleet/restart" fleet::restart: Nothing => Json<FleetStatus>,
        "Stops all apps of the fleet in order, then every node begins a new run in its place";
    post "/v1/fleet/drain" fleet::drain: Json<NodeRequest> => Json<FleetStatus>,
        "Lets nothing be placed on a node any more, over boots; what runs there goes elsewhere";
    post "/v1/fleet/undrain" fleet::undrain: Json<NodeRequest> => Json<FleetStatus>,
        "Lets jobs be placed on a node again";
    post "/v1/fleet/readmit" fleet::readmit: Json<NodeRequest> => Json<FleetStatus>,
        "Lets a node take part again that was isolated";
    post "/v1/jobs/{job}/move" fleet::move_job: Json<MoveRequest> => Json<FleetStatus>, ["wait"]
        "Stops a placed job where it runs and starts it on a node";
    post "/v1/apps/{app}/move" fleet::move_app: Json<MoveRequest> => Json<FleetStatus>, ["wait"]
        "Stops the jobs of an app where they run and starts them on a node";
    get "/v1/nodes/{node}/{*path}" nodes::pass: Nothing => Anything,
        "What another node of the fleet answers to GET /v1/{path}";
    post "/v1/nodes/{node}/{*path}" nodes::pass: Anything => Anything,
        "What another node of the fleet answers to POST /v1/{path}";
    put "/v1/nodes/{node}/{*path}" nodes::pass: Anything => Anything,
        "What another node of the fleet answers to PUT /v1/{path}";
    get "/v1/conflicts" fleet::conflicts: Nothing => Json<Conflicts>,
        "The placed jobs that run on several nodes";
    post "/v1/conflicts" fleet::conciliate: Json<ConciliateRequest> => Json<Conflicts>,
        "Solves the conflicts of one job, or all, by a rule";
    get "/v1/rollout" rollout::show: Nothing => Json<RolloutStatus>,
        "What is rolled out: its profiles, templates and services, what is under way and what has failed";
    get "/v1/rollout/plan" rollout::plan: Nothing => Json<RolloutPreview>, ["profile"]
        "What a refresh would change: the sources are asked, nothing is stored or told. Secrets are \
         shown by name";
    get "/v1/rollout/diff" rollout::diff: Nothing => Json<RolloutPreview>, ["profile", "version"]
        "What somebody else has edited; of a profile, what a rollback to an earlier version would change";
    get "/v1/rollout/history" rollout::history: Nothing => Json<RolloutHistory>, ["profile"]
        "The versions that profiles had";
    get "/v1/rollout/why/{subject}" rollout::why: Nothing => Json<RolloutWhy>,
        "Why profile.NAME, template.NAME or service.NAME is as it is";
    post "/v1/rollout/refresh" rollout::refresh: Json<RefreshRequest> => Json<RolloutDone>, ["wait"]
        "Asks the sources now, tries again what has failed, and waits for what comes of it";
    post "/v1/rollout/rollback" rollout::rollback: Json<RollbackRequest> => Json<RolloutDone>, ["wait"]
        "Applies an earlier version of a profile, and waits for what comes of it";
    post "/v1/rollout/pause" rollout::pause: Nothing => Json<RolloutStatus>,
        "Lets no update begin, over boots";
    post "/v1/rollout/resume" rollout::resume: Nothing => Json<RolloutStatus>,
        "Lets updates begin again, and asks the sources";
    get "/v1/environ" environ::show: Nothing => Json<EnvironVariables>,
        "Variables that users have changed for later starts; null: taken away";
    put "/v1/environ" environ::change: Json<EnvironVariables> => Json<EnvironChanged>,
        "Sets variables for later starts, and takes some away (null)";
    post "/v1/metrics" metrics::feed: Json<MetricValues> => Json<MetricsTaken>,
        "Feeds metrics of [telemetry]: adds to counters, sets gauges, observes";
    get "/v1/openapi.json" openapi::describe: Nothing => Json<Map<String, Value>>,
        "This description";
}
