//! The directories of a node, decided from what was typed, the variables and the configuration.
//!
//! | | run | state |
//! |---|---|---|
//! | named | `--run-dir`, else `MAINSTAY_RUN_DIR` | `--state-dir`, else `MAINSTAY_STATE_DIR` |
//! | as root | `/run/mainstay` | `/var/lib/mainstay` |
//! | else | `$XDG_RUNTIME_DIR/mainstay/PROJECT`, else `/tmp/mainstay-UID/PROJECT` | `$XDG_STATE_HOME/mainstay/PROJECT`, else `~/.local/state/mainstay/PROJECT` |
//!
//! PROJECT is the name of the directory that the configuration is in, and a hash of its path: nodes
//! of two projects never meet. The version before lived in the same directories without PROJECT.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// Where a configuration is, as far as that tells a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigPath {
    File(PathBuf),
    Dir(PathBuf),
    /// It has no place: there is none, or it comes through a pipe.
    Nowhere,
}

/// Directories that were typed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TypedDirs<'a> {
    pub(crate) run: Option<&'a Path>,
    pub(crate) state: Option<&'a Path>,
}

/// Who asks, from where, and what the variables say.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserEnv {
    pub(crate) uid: u32,
    pub(crate) cwd: PathBuf,
    /// `MAINSTAY_CONFIG`
    pub(crate) config: Option<PathBuf>,
    /// `MAINSTAY_RUN_DIR`
    pub(crate) run_dir: Option<PathBuf>,
    /// `MAINSTAY_STATE_DIR`
    pub(crate) state_dir: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`
    pub(crate) runtime_home: Option<PathBuf>,
    /// `XDG_STATE_HOME`
    pub(crate) state_home: Option<PathBuf>,
    /// `HOME`
    pub(crate) home: Option<PathBuf>,
}

/// Where a node lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) run: RunPlace,
    pub(crate) state: StatePlace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunPlace {
    Named(PathBuf),
    /// The only one of root.
    OfRoot(PathBuf),
    /// In `parent`, with those of the user's other projects.
    OfProject {
        parent: PathBuf,
        dir: PathBuf,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StatePlace {
    Named(PathBuf),
    OfRoot(PathBuf),
    OfProject {
        parent: PathBuf,
        dir: PathBuf,
    },
    /// The user has no home.
    Nowhere,
}

impl UserEnv {
    /// The directory of the project that a configuration belongs to.
    pub(crate) fn project(&self, config: &ConfigPath) -> PathBuf {
        match config {
            ConfigPath::File(file) => self.absolute(file.parent().unwrap_or(file)),
            ConfigPath::Dir(dir) => self.absolute(dir),
            ConfigPath::Nowhere => self.cwd.clone(),
        }
    }

    pub(crate) fn place(&self, typed: TypedDirs<'_>, project: &Path) -> Place {
        Place {
            run: self.run_place(typed.run, project),
            state: self.state_place(typed.state, project),
        }
    }

    fn run_place(&self, typed: Option<&Path>, project: &Path) -> RunPlace {
        match (typed.or(self.run_dir.as_deref()), self.uid) {
            (Some(dir), _) => RunPlace::Named(self.absolute(dir)),
            (None, 0) => RunPlace::OfRoot(self.usual_run_dir()),
            (None, _) => {
                let parent = self.usual_run_dir();
                RunPlace::OfProject { dir: parent.join(label(project)), parent }
            }
        }
    }

    fn state_place(&self, typed: Option<&Path>, project: &Path) -> StatePlace {
        match (typed.or(self.state_dir.as_deref()), self.usual_state_dir(), self.uid) {
            (Some(dir), ..) => StatePlace::Named(self.absolute(dir)),
            (None, Some(dir), 0) => StatePlace::OfRoot(dir),
            (None, Some(parent), _) => {
                StatePlace::OfProject { dir: parent.join(label(project)), parent }
            }
            (None, None, _) => StatePlace::Nowhere,
        }
    }

    /// That of root's node; for others, what holds those of their projects.
    pub(crate) fn usual_run_dir(&self) -> PathBuf {
        match (self.uid, &self.runtime_home) {
            (0, _) => PathBuf::from("/run/mainstay"),
            (_, Some(home)) => self.absolute(home).join("mainstay"),
            (_, None) => self.run_dir_in_tmp(),
        }
    }

    /// Where it is without `XDG_RUNTIME_DIR`, as in a cron job.
    pub(crate) fn run_dir_in_tmp(&self) -> PathBuf {
        PathBuf::from(format!("/tmp/mainstay-{}", self.uid))
    }

    fn usual_state_dir(&self) -> Option<PathBuf> {
        if self.uid == 0 {
            return Some(PathBuf::from("/var/lib/mainstay"));
        }
        let in_home = || Some(self.home.as_ref()?.join(".local/state"));
        let home = self.state_home.clone().or_else(in_home)?;
        Some(self.absolute(&home).join("mainstay"))
    }

    /// Without `.` in it.
    fn absolute(&self, path: &Path) -> PathBuf {
        self.cwd.join(path).components().collect()
    }
}

impl RunPlace {
    pub(crate) fn dir(&self) -> &Path {
        match self {
            RunPlace::Named(dir) | RunPlace::OfRoot(dir) | RunPlace::OfProject { dir, .. } => dir,
        }
    }

    /// What holds the run directories of all projects. A node of the version before lives in it.
    pub(crate) fn parent(&self) -> Option<&Path> {
        match self {
            RunPlace::Named(_) | RunPlace::OfRoot(_) => None,
            RunPlace::OfProject { parent, .. } => Some(parent),
        }
    }
}

/// A name for a project that is like no other's: for people its beginning, for us the hash. Older
/// and newer versions look for it by the same.
fn label(project: &Path) -> String {
    const LONGEST: usize = 40;
    let name = project.file_name().unwrap_or(OsStr::new("root")).as_bytes();
    let plain = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => char::from(*byte),
        // Nothing of ours is hidden, and nothing ends in a suffix.
        _ => '_',
    };
    let name: String = name.iter().take(LONGEST).map(plain).collect();
    let hash = fnv1a(project.as_os_str().as_bytes());
    format!("{name}-{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

/// FNV-1a with 64 bits: the same wherever and whenever it is worked out.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a table of words: `uid=1000 cwd=/home/me/shop`.
    fn env(words: &str) -> UserEnv {
        let mut env = UserEnv::default();
        for word in words.split_whitespace() {
            let (name, value) = word.split_once('=').expect("a word");
            let path = Some(PathBuf::from(value));
            match name {
                "uid" => env.uid = value.parse().expect("a number"),
                "cwd" => env.cwd = value.into(),
                "RUN" => env.run_dir = path,
                "STATE" => env.state_dir = path,
                "RUNTIME" => env.runtime_home = path,
                "XSTATE" => env.state_home = path,
                "HOME" => env.home = path,
                _ => panic!("{word}"),
            }
        }
        env
    }

    fn config(text: &str) -> ConfigPath {
        match text {
            "-" => ConfigPath::Nowhere,
            dir if dir.ends_with('/') => ConfigPath::Dir(dir.into()),
            file => ConfigPath::File(file.into()),
        }
    }

    fn typed(text: &str) -> Option<&Path> {
        (text != "-").then(|| Path::new(text))
    }

    #[test]
    fn directories_follow_from_user_variables_arguments_and_configuration() {
        const ME: &str = "uid=1000 cwd=/home/me/shop HOME=/home/me";
        const SHOP: &str = "shop-8607ad0f";
        let xdg = &format!("{ME} RUNTIME=/run/user/1000 XSTATE=/home/me/state");
        let named = &format!("{xdg} RUN=/srv/run STATE=state");
        // environment, -c, --run-dir, --state-dir; run, state
        #[rustfmt::skip]
        let table = [
            // Root has one node, wherever it is started.
            ("uid=0 cwd=/root HOME=/root", "-", "-", "-", "/run/mainstay", "/var/lib/mainstay"),
            ("uid=0 cwd=/srv RUNTIME=/run/user/0", "a/x.toml", "-", "-", "/run/mainstay", "/var/lib/mainstay"),
            ("uid=0 cwd=/root RUN=run", "-", "-", "-", "/root/run", "/var/lib/mainstay"),
            // Others have one for each project: however it is named, it is the directory that counts.
            (xdg, "-", "-", "-", "/run/user/1000/mainstay/SHOP", "/home/me/state/mainstay/SHOP"),
            (xdg, "mainstay.toml", "-", "-", "/run/user/1000/mainstay/SHOP", "/home/me/state/mainstay/SHOP"),
            (xdg, "./dev.toml", "-", "-", "/run/user/1000/mainstay/SHOP", "/home/me/state/mainstay/SHOP"),
            (xdg, "./", "-", "-", "/run/user/1000/mainstay/SHOP", "/home/me/state/mainstay/SHOP"),
            (xdg, "/home/me/shop/", "-", "-", "/run/user/1000/mainstay/SHOP", "/home/me/state/mainstay/SHOP"),
            (ME, "-", "-", "-", "/tmp/mainstay-1000/SHOP", "/home/me/.local/state/mainstay/SHOP"),
            ("uid=1000 cwd=/home/me/shop", "-", "-", "-", "/tmp/mainstay-1000/SHOP", "nowhere"),
            // What is named is taken as it is, and each for itself.
            (xdg, "-", "run", "-", "/home/me/shop/run", "/home/me/state/mainstay/SHOP"),
            (xdg, "-", "-", "/srv/state", "/run/user/1000/mainstay/SHOP", "/srv/state"),
            (named, "-", "-", "-", "/srv/run", "/home/me/shop/state"),
            (named, "/else/where/x.toml", "/srv/a", "/srv/b", "/srv/a", "/srv/b"),
        ];
        for (words, path, run, state, run_wanted, state_wanted) in table {
            let env = env(words);
            let project = env.project(&config(path));
            let place = env.place(TypedDirs { run: typed(run), state: typed(state) }, &project);
            let row = (words, path, run, state);
            assert_eq!(place.run.dir(), Path::new(&run_wanted.replace("SHOP", SHOP)), "{row:?}");
            let state = match &place.state {
                StatePlace::Named(dir)
                | StatePlace::OfRoot(dir)
                | StatePlace::OfProject { dir, .. } => dir.clone(),
                StatePlace::Nowhere => "nowhere".into(),
            };
            assert_eq!(state, Path::new(&state_wanted.replace("SHOP", SHOP)), "{row:?}");
        }
    }

    #[test]
    fn two_checkouts_of_one_name_have_two_labels_and_each_fits_a_file_name() {
        let labels = ["/home/me/shop", "/home/me/old/shop", "/", "/srv/.päck age", "/srv/a.sock"]
            .map(|path| label(Path::new(path)));
        for (at, one) in labels.iter().enumerate() {
            assert!(labels.iter().skip(at + 1).all(|other| one != other), "{labels:?}");
            assert!(one.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)), "{one}");
        }
        assert!(label(Path::new(&format!("/{}", "x".repeat(300)))).len() < 64);
        assert!(labels[2].starts_with("root-"), "{labels:?}");
    }
}
