//! The harness is also the programs that it measures with: one binary, hidden roles.
//!
//! - `__lines N`: N numbered lines of 100 bytes as fast as a pipe takes them; 0 means for ever
//! - `__tick`: a line every millisecond, so that a pause in the log can be seen
//! - `__floor N COMMAND…`: the smallest parent that keeps N children alive
//! - `__floor-chain N COMMAND…`: the same for N children one after the other
//! - `__ready COMMAND…`: says that it is ready, as sd_notify does, and becomes the command
//! - `__clean DIR`: ends what an interrupted run left behind

use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use mainstay_sys::spawn::Bare;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Pid, WaitOptions, wait, waitpid};

use crate::failure::{Doing, Result};
use crate::process::tree;

pub(crate) const LINE: usize = 100;

#[derive(Debug)]
pub(crate) enum Role {
    Lines(u64),
    Tick,
    Floor { children: usize, command: Vec<String> },
    FloorChain { links: usize, command: Vec<String> },
    Ready(Vec<String>),
    Clean(PathBuf),
}

impl Role {
    pub(crate) fn parse(name: &str, arguments: &[String]) -> std::result::Result<Role, String> {
        let count = || -> std::result::Result<u64, String> {
            arguments
                .first()
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| format!("{name} needs a number"))
        };
        match name {
            "__lines" => Ok(Role::Lines(count()?)),
            "__tick" => Ok(Role::Tick),
            "__floor" if arguments.len() > 1 => {
                Ok(Role::Floor { children: count()? as usize, command: arguments[1..].to_vec() })
            }
            "__floor-chain" if arguments.len() > 1 => {
                Ok(Role::FloorChain { links: count()? as usize, command: arguments[1..].to_vec() })
            }
            "__ready" if !arguments.is_empty() => Ok(Role::Ready(arguments.to_vec())),
            "__clean" if arguments.len() == 1 => Ok(Role::Clean(PathBuf::from(&arguments[0]))),
            _ => Err(format!("unknown role {name}, or wrong arguments for it")),
        }
    }
}

pub(crate) fn play(role: Role) -> Result<()> {
    match role {
        Role::Lines(0) => lines(u64::MAX),
        Role::Lines(count) => lines(count),
        Role::Tick => tick(),
        Role::Floor { children, command } => floor(children, &command),
        Role::FloorChain { links, command } => floor_chain(links, &command),
        Role::Ready(command) => ready(&command),
        Role::Clean(dir) => {
            tree::kill_marked(&dir);
            Ok(())
        }
    }
}

/// Only the number at the start of a line changes, so a block costs little more than its write.
fn lines(count: u64) -> Result<()> {
    const BLOCK: u64 = 640;
    let mut block = Vec::with_capacity(BLOCK as usize * LINE);
    for _ in 0..BLOCK {
        block.extend_from_slice(&[b'x'; LINE - 1]);
        block.push(b'\n');
    }
    let mut out = io::stdout().lock();
    let mut next = 0;
    while next < count {
        let lines = BLOCK.min(count - next);
        for line in 0..lines {
            write_number(&mut block[line as usize * LINE..][..12], next + line);
        }
        out.write_all(&block[..lines as usize * LINE]).doing("write lines")?;
        next += lines;
    }
    out.flush().doing("write lines")
}

fn write_number(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

fn tick() -> Result<()> {
    let mut out = io::stdout().lock();
    for number in 0_u64.. {
        writeln!(out, "{number}").and_then(|()| out.flush()).doing("write a tick")?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Does not return when all goes well.
fn ready(command: &[String]) -> Result<()> {
    let socket = std::env::var_os("NOTIFY_SOCKET").unwrap_or_default();
    UnixDatagram::unbound()
        .and_then(|sender| sender.send_to(b"READY=1", &socket))
        .doing("say that it is ready")?;
    let error = Command::new(&command[0]).args(&command[1..]).exec();
    Err(error).doing(format_args!("become {}", command[0]))
}

/// Above stdio and what little a parent has open itself.
const WINDOW: i32 = 16;
/// A pipe for output, a socket to listen on, and one to spare: so many does a supervisor hold.
const HELD: usize = 3;

fn floor(children: usize, command: &[String]) -> Result<()> {
    let bare = Bare::new(command, WINDOW).doing("prepare the command")?;
    let mut held = Vec::new();
    for _ in 0..children {
        for _ in 0..HELD {
            let copy = fcntl_dupfd_cloexec(rustix::stdio::stdout(), WINDOW);
            held.push(copy.doing("hold a descriptor")?);
        }
        bare.start().doing("clone")?;
    }
    loop {
        wait(WaitOptions::empty()).doing("wait for a child")?;
        bare.start().doing("clone")?;
    }
}

/// One after the other, each when the one before has ended.
fn floor_chain(links: usize, command: &[String]) -> Result<()> {
    let bare = Bare::new(command, WINDOW).doing("prepare the command")?;
    for _ in 0..links {
        let pid = bare.start().doing("clone")?;
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        waitpid(pid, WaitOptions::empty()).doing("wait for a child")?;
    }
    Ok(())
}
