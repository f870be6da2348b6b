//! `scripts/fuzz`: goes on for as long as it is told to, with numbers that are new every time.

use mainstay_fuzz::{ALL, Target, Until, fuzz, target};
use std::{
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const USAGE: &str = "usage: fuzz [--target NAME] [--seconds N] [--seed N]
       fuzz --target NAME --input FILE       one input that broke it
       fuzz --list";

struct Options {
    targets: Vec<&'static Target>,
    seconds: u64,
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
    let mut options =
        Options { targets: ALL.iter().collect(), seconds: 60, seed: now, input: None };
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

/// The time is shared between the targets.
fn run(options: &Options) -> Result<(), String> {
    if let Some(file) = &options.input {
        let input = std::fs::read(file).map_err(|error| format!("cannot read {file}: {error}"))?;
        options.targets.iter().for_each(|target| (target.run)(&input));
        return Ok(());
    }
    let each = Duration::from_secs(options.seconds) / options.targets.len().max(1) as u32;
    for target in &options.targets {
        let stood = fuzz(target, options.seed, Until::Time(each)).map_err(|broken| {
            format!(
                "{} broke at input {} of seed {}: kept as {}",
                broken.target,
                broken.number,
                broken.seed,
                broken.file.display()
            )
        })?;
        println!("{:<20} {stood} inputs", target.name);
    }
    Ok(())
}
