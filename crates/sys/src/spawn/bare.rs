//! The least that a start can be: a clone with the table of descriptors shared, a table of its own
//! above a window, exec. `bench` holds the keeper against it, and a test has a child without a group;
//! nothing else may use it, for it takes none of the care that a child needs whose neighbours are on
//! their way as well.

use super::{clone, pointers};
use crate::spawn::window::CLOSE_RANGE_UNSHARE;
use std::{ffi::CString, io, os::fd::RawFd};

/// A program, ready to be started again and again with our environment and descriptors 0 to 2.
#[derive(Debug)]
pub struct Bare {
    argv: Vec<CString>,
    env: Vec<CString>,
    /// Descriptors from here on are not the child's.
    above: RawFd,
}

impl Bare {
    /// # Errors
    /// When a string holds a NUL, or there is no program.
    pub fn new(argv: &[String], above: RawFd) -> io::Result<Bare> {
        let env = std::env::vars().map(|(name, value)| format!("{name}={value}"));
        let strings = |texts: &mut dyn Iterator<Item = String>| {
            texts.map(CString::new).collect::<Result<Vec<_>, _>>()
        };
        let (argv, env) = (strings(&mut argv.iter().cloned())?, strings(&mut env.into_iter())?);
        if argv.is_empty() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        Ok(Bare { argv, env, above })
    }

    /// Starts it; its pid.
    ///
    /// # Errors
    /// As clone(2).
    pub fn start(&self) -> io::Result<u32> {
        let (argv, env) = (pointers(&self.argv), pointers(&self.env));
        let pid = clone(libc::CLONE_FILES)?;
        if pid == 0 {
            let (above, last) = (self.above as libc::c_uint, libc::c_uint::MAX);
            // SAFETY: we are the child, with memory of our own; raw system calls only.
            unsafe {
                libc::syscall(libc::SYS_close_range, above, last, CLOSE_RANGE_UNSHARE);
                libc::execve(*argv.as_ptr(), argv.as_ptr(), env.as_ptr());
                libc::_exit(127)
            }
        }
        Ok(pid)
    }
}
