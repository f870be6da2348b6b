//! Memory that children do without.
//!
//! A clone copies the page tables of all that is not shared, and whoever writes to such a page
//! next pays for a copy of it: with thousands of jobs that is most of what a start costs. A child
//! between clone and exec reads its stack and one piece of memory that is made for it, so our heap
//! is left out of it (MADV_DONTFORK).

use std::sync::atomic::{AtomicUsize, Ordering};

/// Where the part of the heap that is left out begins; 0: all of it is copied.
static BEGIN: AtomicUsize = AtomicUsize::new(0);
/// Up to where that was said.
static END: AtomicUsize = AtomicUsize::new(0);

/// From now on what is allocated is not there in children. For a process that starts children
/// with [`crate::spawn`] only. Call it before there are threads.
pub fn leave_out_of_children() {
    // SAFETY: sets parameters of the allocator.
    #[cfg(target_env = "gnu")]
    unsafe {
        // One heap for all threads and all sizes: mappings of their own would be copied.
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST);
        libc::mallopt(libc::M_TRIM_THRESHOLD, SPARE);
    }
    let Some(begin) = crate::proc::heap_begin() else { return };
    // A static program has what belongs to its first thread, errno for one, before the heap.
    // SAFETY: the address of a thread-local integer.
    let errno = unsafe { libc::__errno_location() as usize };
    let begin = if (begin..begin + THREAD).contains(&errno) { errno + THREAD } else { begin };
    BEGIN.store(begin.next_multiple_of(rustix::param::page_size()), Ordering::Relaxed);
}

/// More than the C library keeps for a thread.
const THREAD: usize = 64 << 10;

/// The most that the allocator lets be said: what is larger gets a mapping of its own.
#[cfg(target_env = "gnu")]
const LARGEST: libc::c_int = 32 << 20;
/// What is kept at the end of the heap instead of being given back.
#[cfg(target_env = "gnu")]
const SPARE: libc::c_int = 512 << 10;

/// Says it of what has been added since the last clone.
pub(crate) fn mark() {
    let begin = BEGIN.load(Ordering::Relaxed);
    if begin == 0 {
        return;
    }
    // SAFETY: asks only.
    let end = unsafe { libc::sbrk(0) as usize };
    if END.swap(end, Ordering::Relaxed) != end && end > begin {
        // SAFETY: changes nothing in this process. Children read nothing of the heap.
        unsafe {
            libc::madvise(begin as *mut libc::c_void, end - begin, libc::MADV_DONTFORK);
        }
    }
}
