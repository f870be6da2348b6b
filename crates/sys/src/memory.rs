//! Giving memory back that a start or a reload has needed and nothing needs any more, who goes
//! first when there is none, and what need not be copied.

use std::{
    ffi::{c_int, c_void},
    fs, io,
    ops::Deref,
    os::fd::{AsFd, AsRawFd},
    ptr::{self, NonNull},
    slice,
};

/// Keeps the allocator from making a heap of its own for every thread, and from keeping the largest
/// buffers for later. What is in between is kept until [`give_back`]: asking the kernel for it anew
/// takes as long as a good part of the work that needs it. To be called before there are threads.
pub fn be_frugal() {
    #[cfg(target_env = "gnu")]
    // SAFETY: only sets numbers of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        // Given, it is no longer raised to the largest buffer that was ever freed.
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 4 << 20);
    }
}

/// The content of a file that nobody changes any more, without a copy of it.
#[derive(Debug)]
pub struct MappedFile {
    start: NonNull<c_void>,
    length: usize,
}

impl MappedFile {
    /// # Errors
    /// As mmap; an empty file cannot be mapped.
    pub fn new(file: impl AsFd) -> io::Result<MappedFile> {
        let size = rustix::fs::fstat(&file)?.st_size;
        let length = usize::try_from(size).map_err(io::Error::other)?;
        let (read, kind) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_POPULATE);
        let number = file.as_fd().as_raw_fd();
        // SAFETY: a mapping of its own, at a place that the kernel chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, read, kind, number, 0) };
        match NonNull::new(start) {
            Some(start) if start.as_ptr() != libc::MAP_FAILED => Ok(MappedFile { start, length }),
            Some(_) | None => Err(io::Error::last_os_error()),
        }
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped for as long as this value is there, and nobody writes to it.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.length) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: its own mapping, which nobody can refer to any more.
        unsafe {
            libc::munmap(self.start.as_ptr(), self.length);
        }
    }
}

pub(crate) const OOM_SCORE: &std::ffi::CStr = c"/proc/self/oom_score_adj";

/// How soon the kernel takes this process when memory runs out: -1000 (never) to 1000.
#[must_use]
pub fn oom_score() -> Option<i32> {
    fs::read_to_string(OOM_SCORE.to_str().ok()?).ok()?.trim().parse().ok()
}

/// Says how soon; whether we may. Those who are started from now on inherit it.
pub fn set_oom_score(score: i32) -> bool {
    OOM_SCORE.to_str().is_ok_and(|path| fs::write(path, score.to_string()).is_ok())
}

/// Gives back what is free on the heap, and the pages of the program itself: those in use come back
/// from the page cache one by one, those that only the start has used do not.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: touches nothing but free memory.
    unsafe {
        libc::malloc_trim(0);
    }
    // SAFETY: the callback keeps to the contract of dl_iterate_phdr, see there.
    unsafe {
        libc::dl_iterate_phdr(Some(drop_program), std::ptr::null_mut());
    }
}

/// Called for the program itself first, and asks for no more.
extern "C" fn drop_program(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    _data: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr passes a valid description, whose program headers are mapped.
    let (base, headers) = unsafe {
        let info = &*info;
        (info.dlpi_addr, std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()))
    };
    let page = rustix::param::page_size() as u64;
    let read_only = |it: &&libc::Elf64_Phdr| it.p_type == libc::PT_LOAD && it.p_flags & PF_W == 0;
    for segment in headers.iter().filter(read_only) {
        let start = (base + segment.p_vaddr) / page * page;
        let length = (base + segment.p_vaddr + segment.p_memsz) - start;
        // SAFETY: nobody can write there, so that every page is as it is in the file; it is read
        // again when it is needed.
        unsafe {
            libc::madvise(start as *mut c_void, length as usize, libc::MADV_DONTNEED);
        }
    }
    1
}

const PF_W: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_goes_on_without_the_pages_it_gave_back() {
        let text = vec![7u8; 1 << 20];
        be_frugal();
        give_back();
        assert_eq!(text.iter().map(|it| u64::from(*it)).sum::<u64>(), 7 << 20);
    }
}
