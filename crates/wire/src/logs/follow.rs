//! Following a job's files across rotation: nothing twice, nothing left out.

use super::{
    entry::{Entry, Joiner},
    files::{self, closed, current, open_closed},
};
use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::PathBuf,
};

/// Of a longer line the pieces are lines.
const LONGEST: usize = files::LONGEST as usize;
const BLOCK: usize = 64 << 10;
/// So many at a time.
const BLOCKS: usize = 16;

#[derive(Debug)]
pub(super) struct Follower {
    dir: PathBuf,
    file: Option<File>,
    /// The last file that was closed before `file` was begun.
    last_closed: u64,
    /// A line whose end has not been written yet.
    partial: Vec<u8>,
    joiner: Joiner,
}

impl Follower {
    /// Goes on in `current` at the given place.
    pub(super) fn new(dir: PathBuf, current: Option<(File, u64)>, last_closed: u64) -> Follower {
        let file = current.and_then(|(mut file, at)| {
            file.seek(SeekFrom::Start(at)).ok()?;
            Some(file)
        });
        Follower { dir, file, last_closed, partial: Vec::new(), joiner: Joiner::default() }
    }

    /// For a job that appeared just now.
    pub(super) fn from_beginning(dir: PathBuf) -> Follower {
        Follower::new(dir, None, 0)
    }

    /// What was written since the last time, or the next part of it: a writer may be faster than
    /// any reader. Nothing: there is no more.
    pub(super) fn read(&mut self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        if let Some(mut file) = self.file.take() {
            self.begin_again_if_cut(&mut file)?;
            if !self.take(&mut file, &mut entries)? || self.is_current(&file)? {
                self.file = Some(file);
                return Ok(entries);
            }
            // Closed in between: what it got last, then whatever else was closed since.
            while !self.take(&mut file, &mut entries)? {}
            self.end_of_file(&mut entries);
            self.last_closed += 1;
        }
        let (file, last) = current(&self.dir)?;
        for (seq, path) in closed(&self.dir)? {
            if !(self.last_closed + 1..=last).contains(&seq) {
                continue;
            }
            self.last_closed = seq;
            match open_closed(&path) {
                Ok(mut part) => {
                    while !self.take(&mut part, &mut entries)? {}
                    self.end_of_file(&mut entries);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            // One at a time: several of them are more than should be in memory at once.
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
        self.last_closed = last.max(self.last_closed);
        if let Some(mut file) = file {
            self.take(&mut file, &mut entries)?;
            self.file = Some(file);
        }
        Ok(entries)
    }

    /// A file that is shorter than what was read of it was emptied meanwhile.
    fn begin_again_if_cut(&mut self, file: &mut File) -> io::Result<()> {
        if file.metadata()?.len() < file.stream_position()? {
            file.seek(SeekFrom::Start(0))?;
            self.partial.clear();
            self.joiner = Joiner::default();
        }
        Ok(())
    }

    fn is_current(&self, file: &File) -> io::Result<bool> {
        match fs::metadata(self.dir.join("current")) {
            Ok(now) => {
                let ours = file.metadata()?;
                Ok((now.dev(), now.ino()) == (ours.dev(), ours.ino()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads a part; whether that was all there is.
    fn take(&mut self, from: &mut impl Read, entries: &mut Vec<Entry>) -> io::Result<bool> {
        let mut block = vec![0; BLOCK];
        for _ in 0..BLOCKS {
            let length = match from.read(&mut block) {
                Ok(0) => return Ok(true),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            for piece in block[..length].split_inclusive(|byte| *byte == b'\n') {
                self.partial.extend_from_slice(piece);
                let whole = piece.ends_with(b"\n");
                if whole || self.partial.len() >= LONGEST {
                    self.partial.truncate(self.partial.len() - usize::from(whole));
                    let line = std::mem::take(&mut self.partial);
                    entries.extend(self.joiner.push(&line));
                }
            }
        }
        Ok(false)
    }

    fn end_of_file(&mut self, entries: &mut Vec<Entry>) {
        if !self.partial.is_empty() {
            let line = std::mem::take(&mut self.partial);
            entries.extend(self.joiner.push(&line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs::OpenOptions, io::Write};

    fn write(dir: &std::path::Path, text: &str) {
        let mut file =
            OpenOptions::new().append(true).create(true).open(dir.join("current")).expect("open");
        file.write_all(text.as_bytes()).expect("write");
    }

    fn read(follower: &mut Follower) -> Vec<String> {
        let mut entries = Vec::new();
        while let Some(more) = Some(follower.read().expect("readable")).filter(|it| !it.is_empty())
        {
            entries.extend(more);
        }
        entries.into_iter().map(|entry| String::from_utf8(entry.text).expect("text")).collect()
    }

    #[test]
    fn a_log_that_is_emptied_is_read_from_its_begin() {
        let dir = std::env::temp_dir().join(format!("mainstay-emptied-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("temp dir");
        fs::write(dir.join("00000001-20260101T000000Z"), "old\n").expect("file");
        write(&dir, "one\ntwo\n");
        let mut writer = OpenOptions::new().append(true).open(dir.join("current")).expect("open");
        let mut follower = Follower::from_beginning(dir.clone());
        assert_eq!(read(&mut follower), ["old", "one", "two"]);
        super::super::clear(&dir).expect("emptied");
        assert_eq!(read(&mut follower), [""; 0]);
        // Who had it open goes on in it.
        writer.write_all(b"three\n").expect("written");
        assert_eq!(read(&mut follower), ["three"]);
        let left: Vec<_> = fs::read_dir(&dir).expect("dir").collect();
        assert_eq!(left.len(), 1);
        fs::remove_dir_all(&dir).expect("clean up");
    }

    #[test]
    fn every_line_is_seen_once_however_often_files_are_closed_in_between() {
        let dir = std::env::temp_dir().join(format!("mainstay-follow-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("temp dir");
        let close = |seq: u64| {
            let name = dir.join(format!("{seq:08}-20260101T000000Z"));
            fs::rename(dir.join("current"), name).expect("rename");
        };
        let mut follower = Follower::from_beginning(dir.clone());
        assert_eq!(read(&mut follower), [""; 0]);
        write(&dir, "1\n2");
        assert_eq!(read(&mut follower), ["1"]);
        write(&dir, "!\n3\n");
        close(1);
        assert_eq!(read(&mut follower), ["2!", "3"]);
        write(&dir, "4\n");
        assert_eq!(read(&mut follower), ["4"]);
        write(&dir, "5\n");
        close(2);
        write(&dir, "6\n");
        close(3);
        write(&dir, "7\n");
        assert_eq!(read(&mut follower), ["5", "6", "7"]);
        assert_eq!(read(&mut follower), [""; 0]);
        fs::remove_dir_all(&dir).expect("clean up");
    }
}
