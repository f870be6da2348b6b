//! `mainstay rollout units`: the units by which systemd is told where the node has no right to. It
//! needs no node, only its configuration.

use crate::{
    args::RolloutArgs,
    context::context,
    failure::{CONFIG, Failure},
    term::{self, Page, print, print_json},
};
use mainstay_core::plan::{RolloutPlan, ServiceTarget};
use mainstay_rollout::service::SignalFiles;
use serde_json::json;
use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Unless the configuration says another place.
const USUAL: &str = "/run/mainstay-units";

pub(super) fn units(args: &RolloutArgs) -> Result<i32, Failure> {
    let context = context();
    let path = mainstay_config::find(args.node.dir.config.as_deref(), &context)
        .map_err(|text| Failure::new(CONFIG, text))?;
    let plan = match mainstay_config::load(&path, &context) {
        Ok(loaded) => loaded.plan.rollout,
        Err(errors) => {
            term::tell_diagnostics(errors.render(term::stderr_color()).trim_end());
            return Ok(CONFIG);
        }
    };
    let Some(plan) = plan else {
        return Err(Failure::failed("nothing is rolled out here: there are no [templates]"));
    };
    let directory = plan.signal_files.clone().unwrap_or_else(|| PathBuf::from(USUAL));
    let (units, enable) = (SignalFiles::new(&directory).units(), path_units(&plan));
    if let Some(dir) = &args.install {
        let written = install(dir, &units)?;
        if args.json.json {
            print_json(&json!({ "directory": dir, "written": written, "enable": enable }))?;
            return Ok(0);
        }
        let mut page = Page::new();
        for (name, changed) in &written {
            let word = if *changed { "written" } else { "as it was" };
            page.line(format!("{}  {word}", dir.join(name).display()));
        }
        page.line("then: systemctl daemon-reload");
        match enable.is_empty() {
            true => page.line("no service of this configuration is told by systemd"),
            false => page.line(format!("      systemctl enable --now {}", quoted(&enable))),
        }
        if plan.signal_files.is_none() {
            page.line(format!("and in the configuration: [rollout] signal_files = \"{USUAL}\""));
        }
        page.show()?;
        return Ok(0);
    }
    if args.json.json {
        let units: Vec<_> =
            units.iter().map(|(name, text)| json!({ "name": name, "text": text })).collect();
        print_json(&json!({ "units": units, "enable": enable }))?;
        return Ok(0);
    }
    for (name, text) in &units {
        print(&format!("# {name}\n{text}\n"))?;
    }
    for unit in &enable {
        print(&format!("# to enable: {unit}\n"))?;
    }
    Ok(0)
}

/// What has to be enabled for the services of this plan.
fn path_units(plan: &RolloutPlan) -> Vec<String> {
    let of = plan.services.iter().flat_map(|service| match &service.target {
        ServiceTarget::Unit(unit) => SignalFiles::path_units(unit, &service.reload),
        ServiceTarget::Job(_) | ServiceTarget::Command => Vec::new(),
    });
    let mut all: Vec<String> = of.collect();
    all.sort();
    all.dedup();
    all
}

/// Each with whether it is another one than before.
fn install(dir: &Path, units: &[(String, String)]) -> Result<Vec<(String, bool)>, Failure> {
    let failed = |path: &Path, error: &std::io::Error| {
        Failure::of(format!("cannot write {}", path.display()), error)
    };
    fs::create_dir_all(dir).map_err(|error| failed(dir, &error))?;
    let mut written = Vec::new();
    for (name, text) in units {
        let path = dir.join(name);
        let changed = match fs::read_to_string(&path) {
            Ok(there) => there != *text,
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            Err(error) => return Err(failed(&path, &error)),
        };
        if changed {
            fs::write(&path, text).map_err(|error| failed(&path, &error))?;
        }
        written.push((name.clone(), changed));
    }
    Ok(written)
}

/// A name that is escaped has signs that a shell takes for its own.
fn quoted(units: &[String]) -> String {
    let quoted = units.iter().map(|it| match it.contains('\\') {
        true => format!("'{it}'"),
        false => it.clone(),
    });
    quoted.collect::<Vec<_>>().join(" ")
}
