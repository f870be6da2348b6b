//! The window: low descriptors by which children get what they inherit, so that a clone need not
//! copy our whole table, which grows with every job.
//!
//! ```text
//!  0 1 2 … [slot][its slot][slot][slot] …………………… ours, of all jobs
//!  └────── copied ───────┘└─ not in the child's own table
//! ```
//!
//! A child is cloned with CLONE_FILES: at first it has our table, not a copy. Its first step is a
//! table of its own, of the numbers up to its slot only; its second closes them all but its slot.
//! The lowest slot that is free is taken: what is copied is closed again, number by number. A
//! slot is an end of a socket pair through which it is sent what it inherits: that has never a
//! number in our table where the child could mistake something else for it, whatever we open and
//! close meanwhile. A slot belongs to one child until that has received it, from a table of its
//! own. A child that hangs before that costs a slot and nothing else.

use super::{MAX_DESCRIPTORS, image::Arena};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use std::{
    cell::Cell,
    fmt,
    io::{self, IoSlice},
    mem::{self, MaybeUninit},
    os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd},
    ptr,
};

/// Slots at most: a child needs one from its clone until it has run for a moment, and many are
/// cloned before the first of them runs.
const SLOTS: u64 = 96;
/// Our ends of the slots are above the window: each number in it is copied for every child.
const SENDERS: RawFd = 256;
/// One slot for so many descriptors that we may have open.
const DESCRIPTORS_A_SLOT: u64 = 64;
/// With what tells of failures.
pub(super) const MAX_SENT: usize = MAX_DESCRIPTORS + 1;
pub(super) const CLOSE_RANGE_UNSHARE: libc::c_uint = 2;

/// The slots by which children get their descriptors.
pub struct Window {
    /// With ascending numbers.
    slots: Vec<Slot>,
    /// That of the last child, for the next: making one anew interrupts the other threads.
    arena: Cell<Option<Arena>>,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("slots", &self.slots).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) struct Slot {
    sender: OwnedFd,
    receiver: OwnedFd,
    /// Who was cloned with it last; 0: nobody.
    child: Cell<u32>,
}

/// The way of one child to its descriptors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passage {
    receiver: RawFd,
}

impl Window {
    /// Opens slots, as low as numbers are free, for a table of `limit` descriptors. Without any
    /// (few descriptors, a kernel before 5.9) children get a copy of our table.
    #[must_use]
    pub fn open(limit: u64) -> Window {
        let count = if can_close_ranges() { (limit / DESCRIPTORS_A_SLOT).min(SLOTS) } else { 0 };
        let mut slots: Vec<Slot> = (0..count).map_while(|_| Slot::open().ok()).collect();
        slots.sort_by_key(|slot| slot.receiver.as_raw_fd());
        Window { slots, ..Window::none() }
    }

    /// One without slots.
    #[must_use]
    pub fn none() -> Window {
        Window { slots: Vec::new(), arena: Cell::new(None) }
    }

    pub(super) fn take_arena(&self) -> Option<Arena> {
        self.arena.take()
    }

    pub(super) fn keep_arena(&self, arena: Arena) {
        self.arena.set(Some(arena));
    }

    /// Sends what a child inherits through a slot that is free, if there is one.
    pub(super) fn send(&self, descriptors: &[BorrowedFd<'_>]) -> Option<(&Slot, Passage)> {
        let slot = self.slots.iter().find(|slot| slot.is_free())?;
        slot.send(descriptors).ok()?;
        Some((slot, Passage { receiver: slot.receiver.as_raw_fd() }))
    }

    /// A child is dead: what it was sent and has not received is closed, and its slot is free.
    pub fn child_died(&self, pid: u32) {
        for slot in self.slots.iter().filter(|slot| slot.child.get() == pid) {
            slot.clear();
        }
    }
}

impl Slot {
    fn open() -> io::Result<Slot> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (receiver, sender) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        // Not to be had where only few descriptors are allowed.
        let sender = rustix::io::fcntl_dupfd_cloexec(&sender, SENDERS).unwrap_or(sender);
        Ok(Slot { sender, receiver, child: Cell::new(0) })
    }

    /// Nothing that was sent is left to be received.
    fn is_free(&self) -> bool {
        let mut unread: libc::c_int = 0;
        // SAFETY: the kernel writes one integer.
        let asked =
            unsafe { libc::ioctl(self.sender.as_raw_fd(), libc::TIOCOUTQ, &raw mut unread) };
        asked == 0 && unread == 0
    }

    fn send(&self, descriptors: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_SENT))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        rights.push(SendAncillaryMessage::ScmRights(descriptors));
        let text = [IoSlice::new(b"d")];
        sendmsg(&self.sender, &text, &mut rights, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            .map(drop)
    }

    pub(super) fn given_to(&self, child: u32) {
        self.child.set(child);
    }

    /// Closes what nobody will receive.
    pub(super) fn clear(&self) {
        self.child.set(0);
        // Without room for descriptors they are closed.
        let _ = rustix::net::recv(&self.receiver, &mut [0u8; 1], rustix::net::RecvFlags::DONTWAIT);
    }
}

impl Passage {
    /// In the child, as its first step: a table of its own, and in it what it was sent; how many
    /// there are.
    ///
    /// # Safety
    /// In the child of a clone with CLONE_FILES and without CLONE_VM, before anything else.
    pub(super) unsafe fn cross(self, received: &mut [RawFd; MAX_SENT]) -> usize {
        let own = self.receiver as libc::c_uint;
        let (end, last) = (own + 1, libc::c_uint::MAX);
        // SAFETY: raw system calls. As long as the table is the keeper's, nothing is closed in it.
        unsafe {
            if libc::syscall(libc::SYS_close_range, end, last, CLOSE_RANGE_UNSHARE) != 0
                && (libc::syscall(libc::SYS_unshare, libc::CLONE_FILES) != 0
                    || libc::syscall(libc::SYS_close_range, end, last, 0) != 0)
            {
                libc::_exit(127);
            }
            close_between(3, own);
            let count = receive(self.receiver, received);
            libc::syscall(libc::SYS_close, own);
            count
        }
    }
}

/// Closes what is open from `first` up to, but not, `end`.
pub(super) fn close_between(first: libc::c_uint, end: libc::c_uint) {
    if first < end {
        // SAFETY: the caller is a child that has a table of its own.
        unsafe {
            libc::syscall(libc::SYS_close_range, first, end - 1, 0);
        }
    }
}

/// # Safety
/// In the child: what is received has no owner but its numbers.
unsafe fn receive(socket: RawFd, received: &mut [RawFd; MAX_SENT]) -> usize {
    const HEADER: usize = mem::size_of::<libc::cmsghdr>();
    #[repr(C)]
    struct Control {
        header: libc::cmsghdr,
        numbers: [RawFd; MAX_SENT],
    }
    // SAFETY: plain records, for which all zero is a value; the kernel fills what it is told of.
    unsafe {
        let mut control: Control = mem::zeroed();
        let mut text = [0u8; 1];
        let mut part =
            libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: mem::size_of_val(&text) };
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = mem::size_of::<Control>() as _;
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        if libc::syscall(libc::SYS_recvmsg, socket, &raw mut message, flags) < 0
            || (message.msg_controllen as usize) < HEADER
            || control.header.cmsg_type != libc::SCM_RIGHTS
        {
            return 0;
        }
        let bytes = (control.header.cmsg_len as usize).saturating_sub(HEADER);
        let count = (bytes / mem::size_of::<RawFd>()).min(MAX_SENT);
        ptr::copy_nonoverlapping(control.numbers.as_ptr(), received.as_mut_ptr(), count);
        count
    }
}

/// Whether the kernel has close_range(2), which also gives a table of its own.
fn can_close_ranges() -> bool {
    let last = libc::c_uint::MAX;
    // SAFETY: no descriptor has this number.
    unsafe { libc::syscall(libc::SYS_close_range, last, last, 0) == 0 }
}
