//! Where a node lives: its run directory and its state directory, and which node is meant.
//!
//! [`place`] decides; here the machine is looked at: variables, files, and where a node is.

mod former;
mod of_user;
mod place;
mod presence;

pub(crate) use former::{Former, project_in};
pub(crate) use of_user::run_dirs_of_user;
use place::{ConfigPath, RunPlace};
pub(crate) use place::{Place, StatePlace, TypedDirs, UserEnv};
pub(crate) use presence::Presence;

use crate::{
    args::{DirArgs, RunArgs},
    failure::{Failure, USAGE},
    term,
};
use mainstay_core::text::bytes;
use rustix::{
    fs::{Access, access},
    process::geteuid,
};
use std::{
    env, fs,
    path::{Path, PathBuf, absolute},
};

/// Without `-c` and `MAINSTAY_CONFIG`.
const HERE: &str = "mainstay.toml";
const SYSTEM: &str = "/etc/mainstay";

/// The places in which the node that is meant may be, the likeliest first.
#[derive(Debug)]
pub(crate) struct Candidates {
    likeliest: Candidate,
    others: Vec<Candidate>,
    /// No configuration is named, and where we are there is none.
    unguided: bool,
}

#[derive(Debug)]
struct Candidate {
    project: PathBuf,
    run: RunPlace,
}

impl UserEnv {
    pub(crate) fn of_process() -> Result<UserEnv, Failure> {
        let cwd = env::current_dir()
            .map_err(|error| Failure::of("the directory we are in cannot be named", error))?;
        Ok(UserEnv {
            uid: geteuid().as_raw(),
            cwd,
            config: variable("MAINSTAY_CONFIG"),
            run_dir: variable("MAINSTAY_RUN_DIR"),
            state_dir: variable("MAINSTAY_STATE_DIR"),
            runtime_home: variable("XDG_RUNTIME_DIR"),
            state_home: variable("XDG_STATE_HOME"),
            home: variable("HOME"),
        })
    }

    /// The project that a run with these arguments belongs to.
    pub(crate) fn project_of(&self, args: &RunArgs) -> PathBuf {
        let path = match (args.from.as_slice(), args.command.is_empty()) {
            ([_, file, ..], _) => Some(PathBuf::from(bytes::to_os(file).into_owned())),
            (_, false) => None,
            (_, true) => self.config_path(args.config.as_deref()).or_else(|| {
                let system = Path::new(SYSTEM);
                (!self.has_config() && system.exists()).then(|| system.to_owned())
            }),
        };
        self.real_project(path.as_deref())
    }

    fn config_path(&self, typed: Option<&Path>) -> Option<PathBuf> {
        typed.map(Path::to_owned).or_else(|| self.config.clone())
    }

    fn has_config(&self) -> bool {
        self.cwd.join(HERE).exists()
    }

    /// Links lead to the same project.
    fn real_project(&self, config: Option<&Path>) -> PathBuf {
        let config = match config.map(|path| (path, fs::metadata(self.cwd.join(path)))) {
            Some((path, Ok(found))) if found.is_dir() => ConfigPath::Dir(path.to_owned()),
            Some((_, Ok(found))) if !found.is_file() => ConfigPath::Nowhere,
            Some((path, _)) => ConfigPath::File(path.to_owned()),
            None => ConfigPath::Nowhere,
        };
        let project = self.project(&config);
        project.canonicalize().unwrap_or(project)
    }

    /// Where the node of a command may be.
    pub(crate) fn candidates(&self, args: &DirArgs) -> Result<Candidates, Failure> {
        let typed = TypedDirs { run: args.run_dir.as_deref(), state: None };
        typed.run.map(made_absolute).transpose()?;
        let config = self.config_path(args.config.as_deref());
        let candidate = |project: PathBuf| {
            let run = self.place(typed, &project).run;
            Candidate { project, run }
        };
        let likeliest = candidate(self.real_project(config.as_deref()));
        let unguided = config.is_none() && !self.has_config();
        let others = if unguided { vec![candidate(SYSTEM.into())] } else { Vec::new() };
        Ok(Candidates { likeliest, others, unguided })
    }
}

impl Candidates {
    /// The run directory of the one that is running; if none is, the likeliest. Who is in no project
    /// means the only node that there is.
    pub(crate) fn running(&self) -> PathBuf {
        self.first(Presence::Running)
    }

    /// The same for one that was killed.
    pub(crate) fn dead(&self) -> PathBuf {
        self.first(Presence::Dead)
    }

    /// The project of the likeliest.
    pub(crate) fn project(&self) -> &Path {
        &self.likeliest.project
    }

    pub(crate) fn is_named(&self) -> bool {
        matches!(self.likeliest.run, RunPlace::Named(_))
    }

    fn first(&self, wanted: Presence) -> PathBuf {
        let likeliest = self.likeliest.run.dir();
        let is_wanted = |dir: &Path| Presence::of(dir) == Some(wanted);
        let Some(parent) = self.likeliest.run.parent() else { return likeliest.to_owned() };
        let places = std::iter::once(&self.likeliest).chain(&self.others);
        if let Some(found) = places.map(|it| it.run.dir()).find(|dir| is_wanted(dir)) {
            return found.to_owned();
        }
        if is_wanted(parent) && Former::new(parent).may_be_of(&self.likeliest.project) {
            return parent.to_owned();
        }
        let is_no_project = self.unguided && Presence::of(likeliest).is_none();
        let only = is_no_project.then(|| only_one(parent, is_wanted)).flatten();
        only.unwrap_or_else(|| likeliest.to_owned())
    }
}

/// The only one of this kind among the usual places.
fn only_one(parent: &Path, is_wanted: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let mut found = of_user::in_parent(parent).filter(|dir| is_wanted(dir));
    found.next().filter(|_| found.next().is_none())
}

/// The run directory of the node that is meant.
pub(crate) fn run_dir(args: &DirArgs) -> Result<PathBuf, Failure> {
    let candidates = UserEnv::of_process()?.candidates(args)?;
    Ok(candidates.running())
}

/// Whether it is where nobody has to say where it is, or below that.
pub(crate) fn is_usual(dir: &Path) -> bool {
    UserEnv::of_process().is_ok_and(|env| dir.starts_with(env.usual_run_dir()))
}

/// The state directory of a run; its run directory, with a warning, where none can be written.
pub(crate) fn usable_state_dir(place: &Place) -> PathBuf {
    let run_dir = place.run.dir();
    let tried = match &place.state {
        StatePlace::Named(dir) => return dir.clone(),
        StatePlace::OfRoot(dir) | StatePlace::OfProject { dir, .. } => match writable(dir) {
            true => return dir.clone(),
            false => format!("{} is not writable", dir.display()),
        },
        StatePlace::Nowhere => "without a home".to_owned(),
    };
    term::tell(&format!(
        "no state directory ({tried}): logs go to {} and may not outlive a reboot; --state-dir \
         names another place",
        run_dir.display()
    ));
    run_dir.to_owned()
}

/// The state directory of the node that runs or ran in `run_dir`. Without either, only a run
/// directory that was not named has a usual state directory.
pub(crate) fn existing_state_dir(
    typed: Option<&Path>,
    run_dir: &Path,
    candidates: &Candidates,
) -> Result<PathBuf, Failure> {
    typed.map(made_absolute).transpose()?;
    let place =
        UserEnv::of_process()?.place(TypedDirs { run: None, state: typed }, candidates.project());
    if let StatePlace::Named(dir) = place.state {
        return Ok(dir);
    }
    if let Some(dir) = state_dir_of(run_dir) {
        return made_absolute(&dir);
    }
    if candidates.is_named() {
        return Err(Failure::failed(format!(
            "no node has ever run in {}: --state-dir names a state directory itself",
            run_dir.display()
        )));
    }
    Ok(match place.state {
        StatePlace::Named(dir) | StatePlace::OfRoot(dir) | StatePlace::OfProject { dir, .. } => dir,
        StatePlace::Nowhere => run_dir.to_owned(),
    })
}

/// The state directory that the last run in a run directory has used.
pub(crate) fn state_dir_of(run_dir: &Path) -> Option<PathBuf> {
    mainstay_agent::applied_state_dir(run_dir)
        .or_else(|| mainstay_wire::run_dir::state_dir_of(run_dir))
}

pub(crate) fn named(flag: Option<&Path>, name: &str) -> Option<PathBuf> {
    flag.map(Path::to_owned).or_else(|| variable(name))
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

pub(crate) fn made_absolute(path: &Path) -> Result<PathBuf, Failure> {
    absolute(path)
        .map_err(|error| Failure::new(USAGE, format!("'{}' is no path: {error}", path.display())))
}

fn writable(dir: &Path) -> bool {
    fs::create_dir_all(dir).is_ok() && access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}
