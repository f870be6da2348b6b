//! `scripts/fuzz`: goes on for as long as it is told to, with numbers that are new every time.

use mainstay_fuzz::{ALL, EXPOSED, Target, Until, fuzz, target};
use std::{
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

const USAGE: &str = "usage: fuzz [--target NAME] [--seconds N] [--seed N]
       fuzz --each N [--exposed N]           so many seconds for each target, and for those that
                                             a stranger can reach
       fuzz --target NAME --input FILE       one input that broke it
       fuzz --list";

struct Options {
    targets: Vec<&'static Target>,
    /// For all of them together.
    seconds: u64,
    /// For each of them, instead.
    each: Option<u64>,
    /// For those that a stranger can reach, instead.
    exposed: Option<u64>,
    seed: u64,
    input: Option<String>,
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let mut options = Options {
        targets: ALL.iter().collect(),
        seconds: 60,
        each: None,
        exposed: None,
        seed: now,
        input: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
        let number = |text: String| text.parse().map_err(|_| format!("'{text}' is not a number"));
        match word.as_str() {
            "--target" => {
                let name = value()?;
                let found = target(&name).ok_or_else(|| format!("there is no target '{name}'"))?;
                options.targets = vec![found];
            }
            "--seconds" => options.seconds = number(value()?)?,
            "--each" => options.each = Some(number(value()?)?),
            "--exposed" => options.exposed = Some(number(value()?)?),
            "--seed" => options.seed = number(value()?)?,
            "--input" => options.input = Some(value()?),
            "--list" => {
                ALL.iter().for_each(|target| println!("{}", target.name));
                options.targets.clear();
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

impl Options {
    /// How long a target is tried; what is given for all is shared between them.
    fn time(&self, target: &Target) -> Duration {
        let shared = Duration::from_secs(self.seconds) / self.targets.len().max(1) as u32;
        let exposed = self.exposed.filter(|_| EXPOSED.contains(&target.name));
        exposed.or(self.each).map_or(shared, Duration::from_secs)
    }
}

/// One target that breaks does not spare the others.
fn run(options: &Options) -> Result<(), String> {
    if let Some(file) = &options.input {
        let input = std::fs::read(file).map_err(|error| format!("cannot read {file}: {error}"))?;
        options.targets.iter().for_each(|target| (target.run)(&input));
        return Ok(());
    }
    let mut broken = Vec::new();
    for target in &options.targets {
        let begun = Instant::now();
        match fuzz(target, options.seed, Until::Time(options.time(target))) {
            Ok(stood) => {
                println!("{:<20} {stood} inputs in {:.0?}", target.name, begun.elapsed());
            }
            Err(it) => broken.push(format!(
                "{} broke at input {} of seed {}: kept as {}",
                it.target,
                it.number,
                it.seed,
                it.file.display()
            )),
        }
    }
    match broken.is_empty() {
        true => Ok(()),
        false => Err(broken.join("\n")),
    }
}
