//! Memory that children do without.
//!
//! A clone copies every mapping with its page tables, and whoever writes to a page next pays for a
//! copy of it: with thousands of jobs that is most of what a start costs. A child between clone and
//! exec needs its code, its stack and one piece of memory that is made for it. So our heap is left
//! out of it, and other mappings as well (MADV_DONTFORK).

use std::{
    fs,
    sync::{
        Once,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Where the part of the heap that is left out begins; 0: everything is copied.
static BEGIN: AtomicUsize = AtomicUsize::new(0);
/// Up to where that was said.
static END: AtomicUsize = AtomicUsize::new(0);
static OTHERS: Once = Once::new();

/// From now on our heap, and what else they do not need, is not there in children. For a process
/// that starts children with [`crate::spawn`] only. Call it before there are threads.
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
    let errno = errno();
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

fn errno() -> usize {
    // SAFETY: the address of a thread-local integer.
    unsafe { libc::__errno_location() as usize }
}

/// Says it of what has been added since the last clone.
pub(crate) fn mark() {
    let begin = BEGIN.load(Ordering::Relaxed);
    if begin == 0 {
        return;
    }
    OTHERS.call_once(mark_others);
    // SAFETY: asks only.
    let end = unsafe { libc::sbrk(0) as usize };
    if END.swap(end, Ordering::Relaxed) != end && end > begin {
        leave_out(begin, end);
    }
}

fn leave_out(begin: usize, end: usize) {
    // SAFETY: changes nothing in this process. A child reads nothing there.
    unsafe {
        libc::madvise(begin as *mut libc::c_void, end - begin, libc::MADV_DONTFORK);
    }
}

/// A line of `/proc/self/maps`.
struct Mapping<'a> {
    begin: usize,
    end: usize,
    name: &'a str,
}

impl Mapping<'_> {
    fn parse(line: &str) -> Option<Mapping<'_>> {
        let (range, rest) = line.split_once(' ')?;
        let (begin, end) = range.split_once('-')?;
        let address = |text: &str| usize::from_str_radix(text, 16).ok();
        // Permissions, offset, device, inode; then the name, which may hold blanks.
        let name = rest.splitn(5, ' ').nth(4).map_or("", str::trim);
        Some(Mapping { begin: address(begin)?, end: address(end)?, name })
    }

    fn holds(&self, address: usize) -> bool {
        (self.begin..self.end).contains(&address)
    }
}

/// Stacks of other threads, libraries that only they use, the clock of the kernel, and the loader if
/// it has done its work: all but the program, the C library and this thread's own.
fn mark_others() {
    let Ok(text) = fs::read_to_string("/proc/self/maps") else { return };
    let all: Vec<Mapping<'_>> = text.lines().filter_map(Mapping::parse).collect();
    // SAFETY: asks only.
    let loader = unsafe { libc::getauxval(libc::AT_BASE) as usize };
    let code = [mark as fn() as usize, libc::syscall as *const () as usize];
    let loader = (!is_bound_at_start()).then_some(loader);
    let files: Vec<&str> = all
        .iter()
        .filter(|mapping| code.iter().chain(&loader).any(|address| mapping.holds(*address)))
        .map(|mapping| mapping.name)
        .collect();
    let errno = errno();
    // What has no name and follows a file belongs to it.
    let mut before: Option<(usize, bool)> = None;
    for mapping in &all {
        let needed = match mapping.name {
            "" => {
                mapping.holds(errno)
                    || before.is_some_and(|(end, needed)| end == mapping.begin && needed)
            }
            name => is_ours(name) || files.contains(&name),
        };
        if !needed {
            leave_out(mapping.begin, mapping.end);
        }
        before = Some((mapping.end, needed && !mapping.name.starts_with('[')));
    }
}

/// Whether it is none of those that the kernel has put there for programs that ask for the time.
fn is_ours(name: &str) -> bool {
    name.starts_with('[') && !name.starts_with("[vvar") && name != "[vdso]"
}

/// Whether every function has its address since the start of the program: then no call, in a child
/// neither, asks the loader.
fn is_bound_at_start() -> bool {
    const NOW: u64 = 1;
    // SAFETY: asks only.
    let (headers, count, size) = unsafe {
        let ask = |what| libc::getauxval(what) as usize;
        (ask(libc::AT_PHDR), ask(libc::AT_PHNUM), ask(libc::AT_PHENT))
    };
    if headers == 0 || size != size_of::<libc::Elf64_Phdr>() || cfg!(target_pointer_width = "32") {
        return false;
    }
    // SAFETY: the kernel says where the program's own headers are and how many; they are mapped.
    let headers = unsafe { std::slice::from_raw_parts(headers as *const libc::Elf64_Phdr, count) };
    let at = |kind| headers.iter().find(|header| header.p_type == kind);
    let (Some(own), Some(dynamic)) = (at(libc::PT_PHDR), at(libc::PT_DYNAMIC)) else {
        return false;
    };
    let moved = (headers.as_ptr() as u64).wrapping_sub(own.p_vaddr);
    let entries = dynamic.p_memsz as usize / size_of::<[u64; 2]>();
    // SAFETY: the program's own dynamic section, a part of it that is mapped, of its stated length.
    let entries = unsafe {
        std::slice::from_raw_parts(moved.wrapping_add(dynamic.p_vaddr) as *const [u64; 2], entries)
    };
    entries.iter().any(|[tag, value]| match *tag {
        DT_FLAGS => value & DF_BIND_NOW != 0,
        DT_FLAGS_1 => value & NOW != 0,
        _ => false,
    })
}

const DT_FLAGS: u64 = 30;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_BIND_NOW: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_bound_at_its_start_as_the_program_is() {
        assert!(is_bound_at_start());
    }

    #[test]
    fn what_the_kernel_put_there_for_the_time_is_not_needed() {
        assert!(is_ours("[stack]") && is_ours("[heap]"));
        assert!(!is_ours("[vdso]") && !is_ours("[vvar_vclock]") && !is_ours("/lib/libc.so.6"));
    }
}
