//! `mainstay completions` and `mainstay man`: made of what can be typed.

use crate::{
    args::{Cli, CompletionsArgs, ManArgs},
    failure::Failure,
    term::print,
};
use clap::CommandFactory;
use clap_mangen::Man;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<i32, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "mainstay", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(0)
}

pub(crate) fn man(args: &ManArgs) -> Result<i32, Failure> {
    let command = Cli::command();
    let Some(dir) = &args.dir else {
        print(&String::from_utf8_lossy(&page(command)?))?;
        return Ok(0);
    };
    clap_mangen::generate_to(command, dir)
        .map_err(|error| Failure::of(format!("cannot write to {}", dir.display()), error))?;
    Ok(0)
}

fn page(command: clap::Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    Man::new(command).render(&mut text).map_err(|error| Failure::of("cannot write it", error))?;
    Ok(text)
}
