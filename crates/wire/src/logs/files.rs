//! The files of one job: `current` and closed ones, `<seq>-<time>` or `<seq>-<time>.gz`.

use super::{
    Lines,
    entry::{Entry, Joiner},
    follow::Follower,
};
use flate2::read::MultiGzDecoder;
use mainstay_sys::nonblocking::open_own_file;
use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

pub(super) const CURRENT: &str = "current";
const BLOCK: usize = 64 << 10;
/// Of a longer line the pieces are lines.
pub(super) const LONGEST: u64 = 1 << 20;

/// The parts of a log that were asked for, opened, oldest first.
pub(super) struct Files {
    dir: PathBuf,
    parts: Vec<Box<dyn BufRead + Send>>,
    /// Where the current file ended when it was opened, and the last closed file by then.
    current: Option<(File, u64)>,
    last_closed: u64,
}

/// Closed files by number, oldest first. A compressed one stands for the one it was made of.
pub(super) fn closed(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found: Vec<(u64, PathBuf)> = match fs::read_dir(dir) {
        Ok(entries) => entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                Some((path.file_name()?.to_str()?.split_once('-')?.0.parse().ok()?, path))
            })
            .collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    found.sort();
    found.dedup_by_key(|(seq, _)| *seq);
    Ok(found)
}

/// The current file and the number of the last one closed before it.
pub(super) fn current(dir: &Path) -> io::Result<(Option<File>, u64)> {
    loop {
        let last = |dir| Ok::<_, io::Error>(closed(dir)?.last().map_or(0, |(seq, _)| *seq));
        let before = last(dir)?;
        let file = match open_own_file(&dir.join(CURRENT)).map(File::from) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // A file closed in between would be passed over or shown twice.
        if last(dir)? == before {
            return Ok((file, before));
        }
    }
}

pub(super) fn open_closed(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let file = File::from(open_own_file(path)?);
    Ok(match path.extension().is_some_and(|extension| extension == "gz") {
        true => Box::new(MultiGzDecoder::new(file)),
        false => Box::new(file),
    })
}

impl Files {
    pub(super) fn open(dir: PathBuf, lines: Lines) -> io::Result<Files> {
        let (current, last_closed) = current(&dir)?;
        let mut parts: Vec<Box<dyn BufRead + Send>> = Vec::new();
        let mut wanted = match lines {
            Lines::All => usize::MAX,
            Lines::Last(count) => count,
        };
        let mut position = None;
        if let Some(mut file) = current {
            let end = file.seek(SeekFrom::End(0))?;
            let (start, count) = tail(&mut file, end, wanted)?;
            wanted -= count;
            position = Some((file.try_clone()?, end));
            // A second description of the file, so that both positions are independent.
            let mut part = File::open(format!("/proc/self/fd/{}", raw(&file)))
                .or_else(|_| open_own_file(&dir.join(CURRENT)).map(File::from))?;
            part.seek(SeekFrom::Start(start))?;
            parts.push(Box::new(BufReader::new(part.take(end - start))));
        }
        for (_, path) in closed(&dir)?.into_iter().rev().filter(|(seq, _)| *seq <= last_closed) {
            if wanted == 0 {
                break;
            }
            let (part, count) = match last_lines(&path, wanted) {
                Ok(found) => found,
                // Removed by rotation, or replaced by its compressed form, since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            wanted -= count;
            parts.push(part);
        }
        parts.reverse();
        Ok(Files { dir, parts, current: position, last_closed })
    }

    /// Goes on where these files end.
    pub(super) fn follower(&self) -> Follower {
        let current =
            self.current.as_ref().and_then(|(file, end)| Some((file.try_clone().ok()?, *end)));
        Follower::new(self.dir.clone(), current, self.last_closed)
    }

    pub(super) fn entries(self) -> impl Iterator<Item = Entry> + Send {
        let mut joiner = Joiner::default();
        let mut parts = self.parts.into_iter();
        let mut part = parts.next();
        std::iter::from_fn(move || {
            let mut line = Vec::new();
            loop {
                let Some(reader) = part.as_mut() else { return joiner.finish() };
                line.clear();
                // What cannot be read any further ends here, like what ends.
                let mut piece = reader.take(LONGEST);
                if !matches!(piece.read_until(b'\n', &mut line), Ok(1..)) {
                    part = parts.next();
                    continue;
                }
                if let Some(entry) = joiner.push(line.strip_suffix(b"\n").unwrap_or(&line)) {
                    return Some(entry);
                }
            }
        })
    }
}

fn raw(file: &File) -> i32 {
    std::os::fd::AsRawFd::as_raw_fd(file)
}

/// Where the last `wanted` lines before `end` begin, and how many there are.
fn tail(file: &mut File, end: u64, wanted: usize) -> io::Result<(u64, usize)> {
    match wanted {
        0 => return Ok((end, 0)),
        usize::MAX => return Ok((0, 0)),
        _ => {}
    }
    let (mut start, mut lines) = (end, 0);
    let mut block = vec![0; BLOCK];
    while start > 0 {
        let length = usize::try_from(start).unwrap_or(BLOCK).min(BLOCK);
        let base = start - length as u64;
        file.seek(SeekFrom::Start(base))?;
        file.read_exact(&mut block[..length])?;
        for at in (0..length).rev() {
            // The newline before a line counts that line; the one at the very end counts none.
            if block[at] == b'\n' && base + at as u64 + 1 < end {
                lines += 1;
                if lines == wanted {
                    return Ok((base + at as u64 + 1, lines));
                }
            }
        }
        start = base;
    }
    Ok((0, if end > 0 { lines + 1 } else { 0 }))
}

fn last_lines(path: &Path, wanted: usize) -> io::Result<(Box<dyn BufRead + Send>, usize)> {
    if path.extension().is_none_or(|extension| extension != "gz") {
        let mut file = File::from(open_own_file(path)?);
        let end = file.seek(SeekFrom::End(0))?;
        let (start, count) = tail(&mut file, end, wanted)?;
        file.seek(SeekFrom::Start(start))?;
        return Ok((Box::new(BufReader::new(file)), count));
    }
    if wanted == usize::MAX {
        return Ok((Box::new(BufReader::new(open_closed(path)?)), 0));
    }
    let mut counted = BufReader::new(open_closed(path)?);
    let lines = pass_over(&mut counted, usize::MAX)?;
    let mut part = BufReader::new(open_closed(path)?);
    pass_over(&mut part, lines.saturating_sub(wanted))?;
    Ok((Box::new(part), lines.min(wanted)))
}

/// Passes over so many lines; how many there were.
fn pass_over(reader: &mut impl BufRead, most: usize) -> io::Result<usize> {
    let mut lines = 0;
    let mut line = Vec::new();
    while lines < most && reader.take(LONGEST).read_until(b'\n', &mut line)? > 0 {
        lines += 1;
        line.clear();
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("mainstay-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("temp dir");
        dir
    }

    fn texts(files: Files) -> Vec<String> {
        files.entries().map(|entry| String::from_utf8(entry.text).expect("text")).collect()
    }

    #[test]
    fn the_last_lines_are_found_across_plain_and_compressed_files() {
        let dir = dir("tail");
        let gz = File::create(dir.join("00000001-20260101T000000Z.gz")).expect("gz");
        let mut gz = flate2::write::GzEncoder::new(gz, flate2::Compression::fast());
        gz.write_all(b"1\n2\n3\n").expect("gz");
        gz.finish().expect("gz");
        fs::write(dir.join("00000002-20260101T000001Z"), "4\n5\n").expect("file");
        fs::write(dir.join("current"), "6\n7\n").expect("file");
        let last = |lines| texts(Files::open(dir.clone(), lines).expect("readable"));
        assert_eq!(last(Lines::Last(0)), [""; 0]);
        assert_eq!(last(Lines::Last(1)), ["7"]);
        assert_eq!(last(Lines::Last(3)), ["5", "6", "7"]);
        assert_eq!(last(Lines::Last(5)), ["3", "4", "5", "6", "7"]);
        assert_eq!(last(Lines::Last(100)), ["1", "2", "3", "4", "5", "6", "7"]);
        assert_eq!(last(Lines::All), ["1", "2", "3", "4", "5", "6", "7"]);
        fs::remove_dir_all(&dir).expect("clean up");
    }

    #[test]
    fn long_files_are_read_from_their_end() {
        let dir = dir("long");
        let text: String = (0..50_000).map(|n| format!("line {n}\n")).collect();
        fs::write(dir.join("current"), text).expect("file");
        let found = texts(Files::open(dir.clone(), Lines::Last(20_000)).expect("readable"));
        assert_eq!((found.len(), found[0].as_str()), (20_000, "line 30000"));
        fs::remove_dir_all(&dir).expect("clean up");
    }
}
