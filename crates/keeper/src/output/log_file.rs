//! The files of one owner: `current`, and closed ones named `<seq>-<time>`.
//!
//! A full disk costs the oldest closed files, then whole entries: they are counted, and one line
//! tells of the gap as soon as a line can be written again.
#![expect(clippy::disallowed_methods, reason = "the writer's work, which is done apart")]

use mainstay_core::plan::{FileFormat, Keep};
use mainstay_sys::own_dir::OwnDir;
use mainstay_wire::stamp;
use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

#[derive(Debug)]
pub(super) struct LogFile {
    dir: PathBuf,
    current: Option<CurrentFile>,
    next_seq: u64,
    /// Entries lost since the last one that was written.
    gap: u64,
    /// Those of them that were reported when the gap began.
    reported: u64,
}

#[derive(Debug)]
struct CurrentFile {
    file: File,
    /// What it holds from before it could not be closed, not counted in `size`.
    before: u64,
    size: u64,
    /// Wall clock of its first entry, as far as we know.
    since: i64,
    /// When it was last looked whether it is still there.
    looked_at: i64,
}

/// Entries that a file lacks.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(crate) struct Gap {
    lines: u64,
    reported: u64,
}

/// What became of some entries.
#[derive(Debug, Default)]
pub(super) struct WriteReport {
    pub(super) dropped: u64,
    /// A gap ended here: so many more entries are missing than were reported when it began.
    pub(super) gap_rest: u64,
    pub(super) closed: Vec<PathBuf>,
    /// The first error of a gap.
    pub(super) error: Option<io::Error>,
}

impl LogFile {
    pub(super) fn new(dir: PathBuf) -> LogFile {
        LogFile { dir, current: None, next_seq: 0, gap: 0, reported: 0 }
    }

    /// What is missing and not told in the file yet.
    pub(super) fn gap(&self) -> Option<Gap> {
        (self.gap > 0).then_some(Gap { lines: self.gap, reported: self.reported })
    }

    pub(super) fn resume_gap(&mut self, gap: Gap) {
        (self.gap, self.reported) = (gap.lines, gap.reported);
    }

    /// Writes entries, each of which ends with a newline where the format has such an end.
    pub(super) fn write(
        &mut self,
        mut entries: &[u8],
        keep: &Keep,
        format: FileFormat,
        wall: i64,
    ) -> WriteReport {
        let mut written = WriteReport::default();
        if self.gap > 0 && !self.tell_gap(format, wall, &mut written) {
            // Nothing may come before the word about what is missing, however short it is.
            self.lose(entries, &mut written);
            return written;
        }
        while !entries.is_empty() {
            let cut = self.fitting(entries, keep, wall);
            if cut == 0 {
                self.rotate(keep, wall, &mut written);
                continue;
            }
            let (now, later) = entries.split_at(cut);
            entries = later;
            if let Err(error) = self.append(now, wall) {
                written.error = Some(error);
                self.lose(now, &mut written);
                self.lose(later, &mut written);
                self.reported = written.dropped;
                break;
            }
        }
        written
    }

    fn lose(&mut self, entries: &[u8], written: &mut WriteReport) {
        let lines = count_entries(entries);
        self.gap += lines;
        written.dropped += lines;
    }

    /// How many bytes may go into the current file; 0: it has to be closed first.
    fn fitting(&self, entries: &[u8], keep: &Keep, wall: i64) -> usize {
        let Some(current) = self.current.as_ref().filter(|current| current.size > 0) else {
            let room = usize::try_from(keep.size).unwrap_or(usize::MAX);
            return if entries.len() <= room {
                entries.len()
            } else {
                whole_entries(entries, room, true)
            };
        };
        let age = Duration::from_nanos(u64::try_from(wall - current.since).unwrap_or(0));
        if age > keep.age {
            return 0;
        }
        let room = usize::try_from(keep.size.saturating_sub(current.size)).unwrap_or(usize::MAX);
        if entries.len() <= room { entries.len() } else { whole_entries(entries, room, false) }
    }

    /// Closes the current file under a name of its own and removes what is too old.
    pub(super) fn rotate(&mut self, keep: &Keep, wall: i64, written: &mut WriteReport) {
        if self.current.is_none() && self.open(wall).is_err() {
            return;
        }
        let Some(current) = self.current.take() else { return };
        if current.size == 0 {
            self.current = Some(current);
            return;
        }
        let name = format!("{:08}-{}", self.next_seq, stamp::compact(wall));
        let closed = self.dir.join(name);
        match fs::rename(self.dir.join("current"), &closed) {
            Ok(()) => {
                self.next_seq += 1;
                written.closed.push(closed);
            }
            // Somebody took it away: the next entry begins a new one.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // It cannot be named: go on in it rather than lose it.
            Err(_) => {
                let before = current.before + current.size;
                self.current = Some(CurrentFile { since: wall, before, size: 0, ..current });
            }
        }
        let archives = archives(&self.dir);
        let surplus = archives.len().saturating_sub(keep.files as usize);
        for archive in &archives[..surplus] {
            let _ = fs::remove_file(archive);
            written.closed.retain(|closed| closed != archive);
        }
    }

    fn append(&mut self, entries: &[u8], wall: i64) -> io::Result<()> {
        if self.current.as_mut().is_some_and(|current| current.is_taken_away(wall)) {
            self.current = None;
        }
        if self.current.is_none() {
            self.open(wall)?;
        }
        for _ in 0..8 {
            let Some(current) = self.current.as_mut() else { break };
            let error = match write_whole(current, entries) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let full =
                matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            if !full || !remove_oldest(&self.dir) {
                return Err(error);
            }
        }
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }

    fn open(&mut self, wall: i64) -> io::Result<()> {
        let dir = own_dir(&self.dir)?;
        if self.next_seq == 0 {
            let last = archives(&self.dir).last().and_then(|path| sequence(path));
            self.next_seq = last.unwrap_or(0) + 1;
        }
        let mut file = dir.append("current".as_ref(), 0o640)?;
        let metadata = file.metadata()?;
        let mut size = metadata.len();
        if size > 0 {
            // What a crash cut off must not run into the next entry.
            file.seek(SeekFrom::Start(size - 1))?;
            let mut last = [0];
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
                size += 1;
            }
        }
        let begun = metadata
            .created()
            .ok()
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let since = begun.and_then(|begun| i64::try_from(begun.as_nanos()).ok()).unwrap_or(wall);
        self.current = Some(CurrentFile { file, before: 0, size, since, looked_at: wall });
        Ok(())
    }

    /// Whether it could be told.
    fn tell_gap(&mut self, format: FileFormat, wall: i64, written: &mut WriteReport) -> bool {
        let text =
            format!("mainstay: {} lines are missing here: they could not be written", self.gap);
        let line = match format {
            FileFormat::Cri => format!("{} stderr F {text}\n", stamp::rfc3339(wall)),
            FileFormat::Raw | FileFormat::None => format!("{text}\n"),
        };
        let told = self.append(line.as_bytes(), wall).is_ok();
        if told {
            written.gap_rest = std::mem::take(&mut self.gap) - std::mem::take(&mut self.reported);
        }
        told
    }
}

impl CurrentFile {
    /// Whether somebody has removed it, looked at once a second: then it would only eat space.
    fn is_taken_away(&mut self, wall: i64) -> bool {
        if wall.saturating_sub(self.looked_at).unsigned_abs() < 1_000_000_000 {
            return false;
        }
        self.looked_at = wall;
        let Ok(metadata) = self.file.metadata() else { return false };
        if metadata.len() < self.before + self.size {
            // Somebody has cut it off: there is more room in it than we thought.
            (self.before, self.size) = (0, metadata.len());
        }
        metadata.nlink() == 0
    }
}

/// Whole or not at all: what a full disk cut short is taken back.
fn write_whole(current: &mut CurrentFile, entries: &[u8]) -> io::Result<()> {
    let mut left = entries;
    while !left.is_empty() {
        match current.file.write(left) {
            Ok(count @ 1..) => left = &left[count..],
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                take_back(&current.file, entries.len() - left.len());
                return Err(error);
            }
        }
    }
    current.size += entries.len() as u64;
    Ok(())
}

/// Cuts off what was written last. How long the file is it says itself: somebody may have cut it
/// off as well, and would find zeros where we believe its end to be.
fn take_back(file: &File, count: usize) {
    if let (1.., Ok(metadata)) = (count, file.metadata()) {
        let _ = file.set_len(metadata.len().saturating_sub(count as u64));
    }
}

/// The longest run of whole entries within `room`; with `one`, at least the first.
fn whole_entries(entries: &[u8], room: usize, one: bool) -> usize {
    match memchr::memrchr(b'\n', &entries[..room.min(entries.len())]) {
        Some(end) => end + 1,
        None if one => memchr::memchr(b'\n', entries).map_or(entries.len(), |end| end + 1),
        None => 0,
    }
}

fn count_entries(entries: &[u8]) -> u64 {
    let ends = memchr::memchr_iter(b'\n', entries).count() as u64;
    // A piece without an end of its own is something too.
    ends.max(u64::from(!entries.is_empty()))
}

/// `logs/<job>` below the state directory, made if need be.
fn own_dir(path: &Path) -> io::Result<OwnDir> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
    let logs = path.parent().unwrap_or(Path::new("."));
    let state = logs.parent().unwrap_or(Path::new("."));
    OwnDir::open(state)?.dir(&name(logs), 0o750)?.dir(&name(path), 0o750)
}

fn sequence(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.split_once('-')?.0.parse().ok()
}

/// Closed files, oldest first.
fn archives(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<_> = entries
        .map(|entry| entry.path())
        .filter_map(|path| Some((sequence(&path)?, path)))
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Makes room: the oldest closed file of this owner, else of any.
fn remove_oldest(dir: &Path) -> bool {
    let own = archives(dir).into_iter().next();
    let oldest = own.or_else(|| {
        let siblings = fs::read_dir(dir.parent()?).ok()?.filter_map(Result::ok);
        let all = siblings.flat_map(|sibling| archives(&sibling.path()));
        all.min_by_key(|path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok())
    });
    oldest.is_some_and(|path| fs::remove_file(path).is_ok())
}
