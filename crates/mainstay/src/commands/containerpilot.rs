//! Called as `containerpilot`: the flags of ContainerPilot 3, so that an image that has it needs
//! another binary and nothing else.
//!
//! | flags | what happens |
//! |---|---|
//! | `-version` | two lines, as before |
//! | `-template [-out F]` | the file, rendered |
//! | `-reload`, `-maintenance enable`, `-putenv`, `-putmetric`, `-ping` | asked at the control socket that the file names |
//! | none of these | `mainstay run --from containerpilot FILE` |
//!
//! If several are given the first of this table counts. Whatever fails has an exit code that says so.

use crate::{
    args::RunArgs,
    client,
    commands::{node::run, version::VERSION},
    context::context,
    failure::{CONFIG, FAILED, Failure, NO_AGENT, USAGE},
    term::{self, print},
};
use mainstay_config::Errors;
use mainstay_core::text::bytes;
use mainstay_import::Format;
use mainstay_net::http::Method;
use serde_json::{Map, Value};
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

const NAME: &str = "containerpilot";
/// A reload reads files and may stop jobs.
const PATIENCE: Duration = Duration::from_secs(60);
const USAGE_TEXT: &str = "Usage of containerpilot:
  -config FILE        the configuration, or a directory of them; default: the variable CONTAINERPILOT
  -maintenance VALUE  enable: enter maintenance; anything else: leave it
  -out FILE           where -template writes; default, and -: to stdout
  -ping               ask whether it runs
  -putenv NAME=VALUE  set a variable for what is started from now on; NAME alone unsets it
  -putmetric NAME=VALUE  tell a value of a metric of the configuration
  -reload             bring the configuration into force as it is written now
  -template           print the configuration with its template rendered
  -version            show the version
This is Mainstay, called by another name: `mainstay --help` shows what else it can do.";

/// What was typed.
#[derive(Debug, Default, PartialEq)]
struct Flags {
    config: Option<String>,
    out: Option<String>,
    maintenance: Option<String>,
    putenv: Map<String, Value>,
    putmetric: Map<String, Value>,
    version: bool,
    template: bool,
    reload: bool,
    ping: bool,
    help: bool,
}

/// A flag that is not understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum FlagError {
    #[error("there is no flag -{0}")]
    Unknown(String),
    #[error("-{0} needs a value")]
    NoValue(String),
    #[error("-{name} is true or false, not '{value}'")]
    NoSwitch { name: String, value: String },
    #[error("-putmetric takes NAME=VALUE, not '{0}'")]
    NoMetric(String),
}

/// Whether this process was started under that name.
pub(crate) fn is_called() -> bool {
    let name = env::args_os().next().map(PathBuf::from);
    name.as_deref().and_then(Path::file_name).is_some_and(|name| name == NAME)
}

pub(crate) fn containerpilot() -> Result<i32, Failure> {
    let words = env::args_os().skip(1).map(|word| bytes::from_os(&word)).collect();
    let flags = Flags::parse(words).map_err(|error| usage(error.to_string()))?;
    if flags.help {
        print(&format!("{USAGE_TEXT}\n"))?;
        return Ok(0);
    }
    if flags.version {
        let hash = option_env!("MAINSTAY_GIT_HASH").unwrap_or("unknown");
        print(&format!("Version: {VERSION}\nGitHash: {hash}\n"))?;
        return Ok(0);
    }
    let set = |name| env::var_os(name).map(|value| bytes::from_os(&value));
    let set = |name| set(name).filter(|value: &String| !value.is_empty());
    let Some(config) = flags.config.clone().or_else(|| set("CONTAINERPILOT")) else {
        return Err(usage("-config flag is required, or the variable CONTAINERPILOT".to_owned()));
    };
    let config = PathBuf::from(bytes::to_os(&config).into_owned());
    if flags.template {
        return template(&config, flags.out.as_deref());
    }
    if flags.reload {
        return ask(&config, Method::POST, "/v3/reload", None);
    }
    if let Some(value) = &flags.maintenance {
        let path = match value.as_str() {
            "enable" => "/v3/maintenance/enable",
            _ => "/v3/maintenance/disable",
        };
        return ask(&config, Method::POST, path, None);
    }
    if !flags.putenv.is_empty() {
        return ask(&config, Method::POST, "/v3/environ", Some(Value::Object(flags.putenv)));
    }
    if !flags.putmetric.is_empty() {
        return ask(&config, Method::POST, "/v3/metric", Some(Value::Object(flags.putmetric)));
    }
    if flags.ping {
        let code = ask(&config, Method::GET, "/v3/ping", None)?;
        if code == 0 {
            print("ok\n")?;
        }
        return Ok(code);
    }
    let file = bytes::from_os(config.as_os_str());
    let from = vec![Format::ContainerPilot.to_string(), file];
    run::run(RunArgs { from, ..RunArgs::default() }, None)
}

fn usage(text: String) -> Failure {
    Failure::new(USAGE, format!("{text}\n{USAGE_TEXT}"))
}

fn tell(errors: &Errors) -> i32 {
    let color = term::stderr_color();
    term::tell_diagnostics(errors.render(color).trim_end());
    CONFIG
}

fn template(config: &Path, out: Option<&str>) -> Result<i32, Failure> {
    let text = match mainstay_import::containerpilot_render(config, &context()) {
        Ok(text) => text,
        Err(errors) => return Ok(tell(&errors)),
    };
    match out {
        None | Some("" | "-") => print(&text)?,
        Some(path) => fs::write(bytes::to_os(path), text)
            .map_err(|error| Failure::of(format!("cannot write {path}"), error))?,
    }
    Ok(0)
}

/// Puts a question to the control socket that the file names.
fn ask(config: &Path, method: Method, path: &str, body: Option<Value>) -> Result<i32, Failure> {
    let socket = match mainstay_import::containerpilot_socket(config, &context()) {
        Ok(socket) => socket,
        Err(errors) => return Ok(tell(&errors)),
    };
    let at = socket.display();
    match client::once(&socket, method, path, body.as_ref(), PATIENCE) {
        Ok((200..=299, _)) => Ok(0),
        Ok((422, text)) if path == "/v3/reload" => {
            Err(Failure::new(CONFIG, format!("nothing is changed: {}", text.trim())))
        }
        Ok((_, text)) if !text.trim().is_empty() => Err(Failure::failed(text.trim())),
        Ok((status, _)) => Err(Failure::new(FAILED, format!("{path} was answered with {status}"))),
        Err(error) if error.io_kind() == Some(io::ErrorKind::NotFound) => Err(Failure::new(
            NO_AGENT,
            format!(
                "there is no control socket {at}: containerpilot does not run, or with another \
                     configuration"
            ),
        )),
        Err(error) => {
            Err(Failure::new(NO_AGENT, format!("the control socket {at} does not answer: {error}")))
        }
    }
}

impl Flags {
    /// As Go reads flags: one dash or two, a value after a blank or `=`; whatever comes after the
    /// first word that is no flag is left alone.
    fn parse(words: Vec<String>) -> Result<Flags, FlagError> {
        let mut flags = Flags::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
                break;
            };
            // A dash alone is a word, two end the flags.
            if flag.is_empty() {
                break;
            }
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, None),
            };
            if let Some(switch) = flags.switch(name) {
                *switch = match value {
                    None => true,
                    Some(value) => truth(&value)
                        .ok_or_else(|| FlagError::NoSwitch { name: name.to_owned(), value })?,
                };
                continue;
            }
            if !matches!(name, "config" | "out" | "maintenance" | "putenv" | "putmetric") {
                return Err(FlagError::Unknown(name.to_owned()));
            }
            let Some(value) = value.or_else(|| words.next()) else {
                return Err(FlagError::NoValue(name.to_owned()));
            };
            flags.set(name, value)?;
        }
        Ok(flags)
    }

    fn switch(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "version" => Some(&mut self.version),
            "template" => Some(&mut self.template),
            "reload" => Some(&mut self.reload),
            "ping" => Some(&mut self.ping),
            "h" | "help" => Some(&mut self.help),
            _ => None,
        }
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), FlagError> {
        match name {
            "config" => self.config = Some(value).filter(|value| !value.is_empty()),
            "out" => self.out = Some(value),
            "maintenance" => self.maintenance = Some(value),
            "putenv" => {
                let (key, value) = match value.split_once('=') {
                    Some((key, value)) => (key.to_owned(), Value::String(value.to_owned())),
                    None => (value, Value::Null),
                };
                self.putenv.insert(key, value);
            }
            _ => {
                let Some((key, number)) = value.split_once('=') else {
                    return Err(FlagError::NoMetric(value));
                };
                self.putmetric.insert(key.to_owned(), Value::String(number.to_owned()));
            }
        }
        Ok(())
    }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(line: &str) -> Result<Flags, FlagError> {
        Flags::parse(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn flags_are_read_as_go_reads_them() {
        let with = |config: &str| Flags { config: Some(config.to_owned()), ..Flags::default() };
        for line in ["-config x", "-config=x", "--config x", "--config=x", "-config x -ping=false"]
        {
            assert_eq!(parsed(line), Ok(with("x")), "{line}");
        }
        // Arguments that are no flags end them, and are left alone.
        for line in ["-config x run -reload", "-config x -- -reload", "-config x - -reload"] {
            assert_eq!(parsed(line), Ok(with("x")), "{line}");
        }
        let flags =
            parsed("-reload -ping=1 --version -template=t -out - -maintenance off").expect("valid");
        assert!(flags.reload && flags.ping && flags.version && flags.template);
        assert_eq!((flags.out.as_deref(), flags.maintenance.as_deref()), (Some("-"), Some("off")));
    }

    #[test]
    fn what_is_put_is_cut_at_its_first_equals_sign() {
        let flags = parsed("-putenv A=b=c -putenv B= --putenv C -putmetric m=1.5 -putmetric=n=2")
            .expect("valid");
        assert_eq!(Value::Object(flags.putenv), json!({ "A": "b=c", "B": "", "C": null }));
        assert_eq!(Value::Object(flags.putmetric), json!({ "m": "1.5", "n": "2" }));
    }

    #[test]
    fn a_flag_that_is_wrong_is_named() {
        for (line, told) in [
            ("-confg x", "-confg"),
            ("-config", "-config needs a value"),
            ("-ping=maybe", "maybe"),
            ("-putmetric m", "NAME=VALUE"),
        ] {
            assert!(parsed(line).expect_err(line).to_string().contains(told), "{line}");
        }
    }
}
