//! What can be typed about configurations and about the command itself.

use super::{JsonArgs, NodeArgs, WaitArgs, any_bytes};
use clap::Args;
use clap_complete::Shell;
use mainstay_import::Format;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mainstay run                          the configuration in ./mainstay.toml or /etc/mainstay/
  mainstay run -c examples/quickstart   a directory: its *.toml files are one configuration
  mainstay run -- ./server --port 80    one command; its exit code is passed on
  mainstay run --from procfile Procfile what another supervisor reads
  mainstay run --detach                 leave it behind; `mainstay shutdown` ends it")]
pub(crate) struct RunCommandArgs {
    /// Leave the node behind, in a session of its own: return with 0 when it has started, else with
    /// its error
    #[arg(long)]
    pub(crate) detach: bool,
    /// With --detach: print JSON
    #[arg(long, requires = "detach")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// Configuration file or directory [default: MAINSTAY_CONFIG, else ./mainstay.toml, else
    /// /etc/mainstay/]
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["command", "from"])]
    pub(crate) config: Option<PathBuf>,
    /// Run files of another supervisor: procfile, supervisord, supvisors, process-compose or
    /// containerpilot
    #[arg(long, num_args = 2.., value_names = ["FORMAT", "FILE"],
          value_parser = any_bytes(), conflicts_with = "command")]
    pub(crate) from: Vec<String>,
    /// Run directory, with the sockets [default: MAINSTAY_RUN_DIR, else /run/mainstay as root, else
    /// one for the project in $XDG_RUNTIME_DIR/mainstay or /tmp/mainstay-UID]
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
    /// State directory, with the logs [default: MAINSTAY_STATE_DIR, else /var/lib/mainstay as root,
    /// else one for the project in $XDG_STATE_HOME/mainstay]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// When to restart COMMAND: never, on-failure or always [default: never]
    #[arg(long, value_name = "RULE", requires = "command")]
    pub(crate) restart: Option<String>,
    /// One command to run instead of a configuration
    #[arg(last = true, value_name = "COMMAND", value_parser = any_bytes())]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Exits with 78 if the configuration is invalid; every mistake is shown.")]
pub(crate) struct CheckArgs {
    /// Configuration file or directory [default: as for run]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Reads the configuration that the node was started with, as it is written \
                        now. Nothing is changed; `mainstay reload` does exactly what is shown.")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mainstay plan && mainstay reload   look first, then bring the edited configuration into force
  mainstay reload web                web's own `reload`: a signal, or a command and how it ends

Only what changed is touched; an invalid configuration changes nothing (exit 78).")]
pub(crate) struct ReloadArgs {
    /// Let these jobs reload in their own way, instead of the configuration
    #[arg(value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
    /// Jobs on this node alone, wherever its fleet has them
    #[arg(long, requires = "jobs")]
    pub(crate) here: bool,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mainstay import supervisord /etc/supervisord.conf > mainstay.toml
  mainstay import procfile Procfile | mainstay check -c /dev/stdin
  mainstay import config-o-mat /etc/configurator --out /etc/mainstay

Several files are read as the original reads them: those that follow go over the first; rules of
Supvisors in XML stand beside it.
What differs is a comment in the output, and is told on stderr as well: then it ends with 3.")]
pub(crate) struct ImportArgs {
    /// procfile, supervisord, supvisors, process-compose, containerpilot or config-o-mat
    pub(crate) format: Format,
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write mainstay.toml, and the templates that it names, into this directory instead of printing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// End with 0 although something differs
    #[arg(long)]
    pub(crate) accept: bool,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mainstay schema > mainstay.schema.json   for an editor; name it in `#:schema` above the file
  mainstay schema --markdown               the reference of all keys, to read")]
pub(crate) struct SchemaArgs {
    /// The reference page of all keys instead
    #[arg(long)]
    pub(crate) markdown: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mainstay completions bash > /etc/bash_completion.d/mainstay
  mainstay completions zsh > ~/.zfunc/_mainstay
  mainstay completions fish > ~/.config/fish/completions/mainstay.fish")]
pub(crate) struct CompletionsArgs {
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mainstay man | man -l -                    read it
  mainstay man --dir /usr/local/share/man/man1   one page for each command")]
pub(crate) struct ManArgs {
    /// Write a page for each command here [default: the main page, to stdout]
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}
