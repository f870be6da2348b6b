//! A short run of every target, the same inputs every time.

use mainstay_fuzz::{ALL, Until, fuzz, target};

fn stands(name: &str) {
    let target = target(name).expect("a target");
    if let Err(broken) = fuzz(target, 1, Until::Inputs(target.short)) {
        panic!("{broken:?}: see scripts/fuzz --target {name} --input {}", broken.file.display());
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("there is /proc");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(peak < 512 << 10, "{peak} KiB");
}

macro_rules! short {
    ($($test:ident $name:literal),* $(,)?) => {
        $(#[test] fn $test() { stands($name); })*

        #[test]
        fn every_target_has_its_short_run() {
            let mut tried = vec![$($name),*];
            let mut all: Vec<&str> = ALL.iter().map(|target| target.name).collect();
            tried.sort_unstable();
            all.sort_unstable();
            assert_eq!(tried, all);
        }
    };
}

short! {
    toml "toml",
    expand "expand",
    duration_and_size "duration-and-size",
    env_file "env-file",
    procfile "procfile",
    supervisord "supervisord",
    supvisors "supvisors",
    rules "rules",
    config_o_mat "config-o-mat",
    erb "erb",
    process_compose "process-compose",
    containerpilot "containerpilot",
    sse "sse",
    xmlrpc "xmlrpc",
    link "link",
    journal "journal",
    state "state",
    handover "handover",
    http "http",
    datagram "datagram",
    sealed_datagram "sealed-datagram",
    peer_frame "peer-frame",
    notify "notify",
    log "log",
    log_entry "log-entry",
    cron "cron",
    profile "profile",
    rollout_state "rollout-state",
    raindrops "raindrops",
}
