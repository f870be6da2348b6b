//! Following a job's files across rotation: nothing twice, nothing left out.

use super::{
    entry::{Entry, Joiner},
    files::{closed, current, open_closed},
};
use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::PathBuf,
};

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

    /// What was written since the last time.
    pub(super) fn read(&mut self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        if let Some(mut file) = self.file.take() {
            self.take(&mut file, &mut entries)?;
            if self.is_current(&file)? {
                self.file = Some(file);
                return Ok(entries);
            }
            // Closed in between: what it got last, then whatever else was closed since.
            self.take(&mut file, &mut entries)?;
            self.end_of_file(&mut entries);
            self.last_closed += 1;
        }
        let (file, last) = current(&self.dir)?;
        let between = |seq: &u64| (self.last_closed + 1..=last).contains(seq);
        let missed: Vec<PathBuf> = closed(&self.dir)?
            .into_iter()
            .filter(|(seq, _)| between(seq))
            .map(|(_, path)| path)
            .collect();
        for path in missed {
            match open_closed(&path) {
                Ok(mut part) => {
                    self.take(&mut part, &mut entries)?;
                    self.end_of_file(&mut entries);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        self.last_closed = last.max(self.last_closed);
        if let Some(mut file) = file {
            self.take(&mut file, &mut entries)?;
            self.file = Some(file);
        }
        Ok(entries)
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

    fn take(&mut self, from: &mut impl Read, entries: &mut Vec<Entry>) -> io::Result<()> {
        let mut block = vec![0; 64 << 10];
        loop {
            let length = match from.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            for piece in block[..length].split_inclusive(|byte| *byte == b'\n') {
                self.partial.extend_from_slice(piece);
                if piece.ends_with(b"\n") {
                    self.partial.pop();
                    let line = std::mem::take(&mut self.partial);
                    entries.extend(self.joiner.push(&line));
                }
            }
        }
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
        let entries = follower.read().expect("readable");
        entries.into_iter().map(|entry| String::from_utf8(entry.text).expect("text")).collect()
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
