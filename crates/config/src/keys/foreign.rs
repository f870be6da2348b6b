//! Keys that other supervisors have, and ours that mean the same: what somebody who comes from
//! there types first.

/// Keys of a job.
const OF_JOBS: &[(&str, &str)] = &[
    ("args", "put them into exec: exec = [\"program\", \"argument\"]"),
    ("autorestart", "use restart = \"always\", \"on-failure\" or \"never\""),
    ("availability", "use restart = { on, delay, limit }, and main = true for exit_on_end"),
    ("check", "use health = { exec = \"…\" }, { http = \"…\" } or { tcp = \"…\" }"),
    ("checks", "use health = { http = \"…\" }, or a list of such tables"),
    ("cmd", "use exec"),
    ("command", "use exec; it is not run by a shell: exec = [\"sh\", \"-c\", \"…\"] is"),
    ("depends_on", "use when = { source = \"JOB\", once = \"healthy\" }"),
    ("directory", "use cwd"),
    ("disabled", "use autostart = false"),
    ("dir", "use cwd"),
    ("entrypoint", "use exec"),
    ("environment", "use env = { NAME = \"value\" }"),
    ("exitcodes", "use exit_codes"),
    ("health_check", "use health = { exec = \"…\" }, { http = \"…\" } or { tcp = \"…\" }"),
    ("healthcheck", "use health = { exec = \"…\" }, { http = \"…\" } or { tcp = \"…\" }"),
    ("liveness_probe", "use health = { http = \"…\" } or { exec = \"…\" }"),
    ("numprocs", "use instances"),
    ("priority", "use when = { source = \"JOB\", once = \"healthy\" }; else the order of the file"),
    ("processes", "use instances"),
    ("readiness_probe", "use health = { http = \"…\" } or { exec = \"…\" }"),
    ("replicas", "use instances"),
    ("requires", "use when = { source = \"JOB\", once = \"healthy\" }, or while to follow it"),
    ("run", "use exec"),
    ("script", "use exec = [\"sh\", \"-c\", \"…\"]"),
    ("shutdown", "use stop = { signal, timeout, exec }"),
    ("startretries", "use start_retries"),
    ("startsecs", "use start_seconds"),
    ("stop_signal", "use stop = { signal = \"SIGTERM\" }"),
    ("stopsignal", "use stop = { signal = \"SIGTERM\" }"),
    ("stopwaitsecs", "use stop = { timeout = \"10s\" }"),
    ("working_dir", "use cwd"),
    ("working_directory", "use cwd"),
    ("workdir", "use cwd"),
];

/// Tables.
const OF_FILES: &[(&str, &str)] = &[
    ("group", "use [apps.NAME], and app = \"NAME\" in its jobs"),
    ("job", "use [jobs.NAME]"),
    ("process", "use [jobs.NAME]"),
    ("processes", "use [jobs.NAME]"),
    ("program", "use [jobs.NAME]"),
    ("programs", "use [jobs.NAME]"),
];

/// What to use instead of a name in the table at this path.
pub(crate) fn ours(path: &[String], name: &str) -> Option<&'static str> {
    table(path).iter().find(|(foreign, _)| *foreign == name).map(|(_, ours)| *ours)
}

/// The names that `ours` knows in the table at this path.
pub(crate) fn names<'a>(path: &[String]) -> impl Iterator<Item = &'a str> + use<'a> {
    table(path).iter().map(|(foreign, _)| -> &'a str { foreign })
}

fn table(path: &[String]) -> &'static [(&'static str, &'static str)] {
    match path {
        [] => OF_FILES,
        [table, _] if table == "jobs" => OF_JOBS,
        _ => &[],
    }
}
