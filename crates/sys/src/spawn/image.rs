//! What the child reads between clone and exec, in one piece of memory: our heap is not there in
//! children (`heap`).

use super::Program;
use std::{
    ffi::{CStr, CString},
    io, mem, ptr, slice,
};

/// A program as the child sees it. Nothing in it points to the heap.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) argv: *const *const libc::c_char,
    pub(super) env: *const *const libc::c_char,
    /// Where the digits of LISTEN_PID go.
    pub(super) listen_pid: *mut libc::c_char,
    pub(super) candidates: List<*const libc::c_char>,
    pub(super) cwd: *const libc::c_char,
    pub(super) stdin: *const libc::c_char,
    /// The file by which it enters its cgroup.
    pub(super) procs: *const libc::c_char,
    pub(super) identity: Option<(u32, u32, List<u32>)>,
    pub(super) umask: Option<u32>,
    pub(super) nice: Option<i32>,
    pub(super) rlimits: List<(u32, u64)>,
    pub(super) original_nofile: Option<(u64, u64)>,
    /// Digits; null where it is as it is for us.
    pub(super) oom_score: *const libc::c_char,
    pub(super) ignored: List<i32>,
    pub(super) die_with_parent: bool,
    pub(super) session: bool,
    pub(super) terminal: bool,
    pub(super) executes_descriptor: bool,
    /// Holds all of the above.
    arena: Arena,
}

impl Image {
    /// `used`: an arena that is free again, taken if it is large enough.
    pub(super) fn new(
        program: &Program,
        procs: Option<&CStr>,
        used: Option<Arena>,
    ) -> io::Result<Image> {
        let mut arena = Arena::new(size(program, procs), used)?;
        let rlimits: Vec<(u32, u64)> = program
            .rlimits
            .iter()
            .map(|(resource, limit)| (resource.0, limit.unwrap_or(libc::RLIM_INFINITY)))
            .collect();
        let oom_score = program.oom_score.and_then(|score| CString::new(score.to_string()).ok());
        let env = arena.texts(&program.env);
        // SAFETY: `texts` gives as many pointers as it was given texts.
        let listen_pid = program.listen_pid.and_then(|(index, digits)| unsafe {
            let entries = slice::from_raw_parts(env, program.env.len());
            Some(entries.get(index)?.wrapping_add(digits).cast_mut())
        });
        Ok(Image {
            argv: arena.texts(&program.argv),
            env,
            listen_pid: listen_pid.unwrap_or(ptr::null_mut()),
            candidates: List {
                first: arena.texts(&program.candidates),
                length: program.candidates.len(),
            },
            cwd: arena.text(program.cwd.as_deref()),
            stdin: arena.text(program.stdin.as_deref()),
            procs: arena.text(procs),
            identity: program
                .identity
                .as_ref()
                .map(|(uid, gid, groups)| (*uid, *gid, arena.list(groups))),
            umask: program.umask,
            nice: program.nice,
            rlimits: arena.list(&rlimits),
            original_nofile: program.original_nofile,
            oom_score: arena.text(oom_score.as_deref()),
            ignored: arena.list(&program.ignored),
            die_with_parent: program.die_with_parent,
            session: program.session,
            terminal: program.terminal,
            executes_descriptor: program.executes_descriptor,
            arena,
        })
    }

    pub(super) fn into_arena(self) -> Arena {
        self.arena
    }
}

/// With its sign and a NUL.
const LONGEST_SCORE: usize = 12;

/// What the arena has to hold at most.
fn size(program: &Program, procs: Option<&CStr>) -> usize {
    const POINTER: usize = mem::size_of::<usize>();
    let texts = |texts: &[CString]| -> usize {
        texts.iter().map(|text| text.as_bytes_with_nul().len() + POINTER).sum::<usize>()
            + 2 * POINTER
    };
    let text = |text: Option<&CStr>| text.map_or(0, |text| text.to_bytes_with_nul().len());
    let groups = program.identity.as_ref().map_or(0, |(_, _, groups)| groups.len());
    texts(&program.argv)
        + texts(&program.env)
        + texts(&program.candidates)
        + text(program.cwd.as_deref())
        + text(program.stdin.as_deref())
        + text(procs)
        + LONGEST_SCORE
        + 16 * (groups + program.rlimits.len() + program.ignored.len() + 8)
}

/// Items in the arena.
#[derive(Debug, Clone, Copy)]
pub(super) struct List<T> {
    first: *const T,
    length: usize,
}

impl<T> List<T> {
    /// # Safety
    /// The image must still be there.
    pub(super) unsafe fn items(&self) -> &[T] {
        // SAFETY: copied from a slice of this length; aligned by the arena.
        unsafe { slice::from_raw_parts(self.first, self.length) }
    }
}

/// A mapping of its own, filled from the front.
#[derive(Debug)]
pub(super) struct Arena {
    start: *mut u8,
    size: usize,
    used: usize,
}

impl Arena {
    fn new(size: usize, used: Option<Arena>) -> io::Result<Arena> {
        if let Some(mut again) = used.filter(|used| used.size >= size) {
            again.used = 0;
            return Ok(again);
        }
        let size = size.next_multiple_of(rustix::param::page_size());
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, wherever there is room.
        let start = unsafe { libc::mmap(ptr::null_mut(), size, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Arena { start: start.cast(), size, used: 0 })
    }

    fn copy<T: Copy>(&mut self, items: &[T]) -> *mut T {
        let at = self.used.next_multiple_of(mem::align_of::<T>());
        let end = at + mem::size_of_val(items);
        assert!(end <= self.size, "the size was counted before");
        self.used = end;
        // SAFETY: within the mapping, which nobody else knows; mappings begin at a page.
        unsafe {
            let to = self.start.add(at).cast::<T>();
            ptr::copy_nonoverlapping(items.as_ptr(), to, items.len());
            to
        }
    }

    fn list<T: Copy>(&mut self, items: &[T]) -> List<T> {
        List { first: self.copy(items), length: items.len() }
    }

    /// Null where there is none.
    fn text(&mut self, text: Option<&CStr>) -> *const libc::c_char {
        text.map_or(ptr::null(), |text| self.copy(text.to_bytes_with_nul()).cast())
    }

    /// Pointers to all of them, and a null one behind the last.
    fn texts(&mut self, texts: &[CString]) -> *const *const libc::c_char {
        let mut pointers: Vec<*const libc::c_char> = texts
            .iter()
            .map(|text| self.copy(text.as_bytes_with_nul()).cast_const().cast())
            .collect();
        pointers.push(ptr::null());
        self.copy(&pointers)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: our own mapping; whoever points into it has gone with the image.
        unsafe {
            libc::munmap(self.start.cast(), self.size);
        }
    }
}
