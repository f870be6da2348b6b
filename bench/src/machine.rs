//! The machine the figures come from.

use std::fmt;
use std::fs;
use std::process::Command;

use crate::consul::Consul;
use crate::peer::pm2::Pm2;

#[derive(Debug)]
pub(crate) struct Machine {
    pub processor: String,
    pub cores: usize,
    pub memory_gb: f64,
    pub kernel: String,
    pub load: f64,
    pub versions: Vec<(String, String)>,
}

impl Machine {
    pub(crate) fn look() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, key: &str| {
            text.lines()
                .find(|line| line.starts_with(key))
                .and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
                .unwrap_or_default()
        };
        let kilobytes = field(&read("/proc/meminfo"), "MemTotal");
        Machine {
            processor: field(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gb: kilobytes
                .split_whitespace()
                .next()
                .and_then(|kb| kb.parse::<f64>().ok())
                .map_or(0.0, |kb| kb / 1e6),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: load(),
            versions: versions(),
        }
    }

    pub(crate) fn warning(&self) -> Option<String> {
        let limit = 0.25 * self.cores as f64;
        (self.load > limit).then(|| {
            format!(
                "load average is {:.2} on {} cores; figures will be noisy, ratios less so",
                self.load, self.cores
            )
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} cores, {:.0} GB, Linux {}, load average {:.2} at the start",
            self.processor, self.cores, self.memory_gb, self.kernel, self.load
        )?;
        for (name, version) in &self.versions {
            write!(f, "; {name} {version}")?;
        }
        Ok(())
    }
}

pub(crate) fn load() -> f64 {
    fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .unwrap_or(0.0)
}

fn versions() -> Vec<(String, String)> {
    let pm2 = Pm2::find().and_then(|pm2| Some(("pm2".to_owned(), pm2.version()?)));
    let consul = Consul::version().map(|version| ("consul".to_owned(), version));
    let packages = ["s6", "runit", "supervisor"].into_iter().filter_map(package);
    packages.chain(pm2).chain(consul).collect()
}

fn package(name: &str) -> Option<(String, String)> {
    let output = Command::new("dpkg-query").args(["-W", "-f", "${Version}", name]).output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| (name.to_owned(), version))
}
