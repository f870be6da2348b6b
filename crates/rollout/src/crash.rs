//! The points at which a test lets the process die: one after each step that is on the disk.

/// A step is on the disk.
#[cfg(not(test))]
pub(crate) fn point() -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
pub(crate) use planted::{point, survive, until};

#[cfg(test)]
mod planted {
    use std::{cell::Cell, io};

    thread_local! {
        /// Points that are still passed.
        static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    /// Once dead, it does nothing more.
    pub(crate) fn point() -> io::Result<()> {
        LEFT.with(|left| match left.get() {
            0 => Err(io::Error::other("the process has died")),
            usize::MAX => Ok(()),
            more => {
                left.set(more - 1);
                Ok(())
            }
        })
    }

    /// Passes so many points, and dies at the next.
    pub(crate) fn until(points: usize) {
        LEFT.with(|left| left.set(points));
    }

    /// Whether it lives; from now on it does.
    pub(crate) fn survive() -> bool {
        LEFT.with(|left| left.replace(usize::MAX)) != 0
    }
}
