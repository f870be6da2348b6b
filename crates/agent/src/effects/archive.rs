//! Compressing log files that the keeper has closed: one at a time, away from the loop.

use flate2::{Compression, write::GzEncoder};
use mainstay_pool::LOGS;
use mainstay_sys::{
    nonblocking::open_file,
    state_dir::{Durability, StateDir},
};
use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::{Semaphore, mpsc};

/// Files in line to be compressed. The line is as long as the number of archives that are kept.
#[derive(Debug, Clone)]
pub(crate) struct Archive(mpsc::UnboundedSender<PathBuf>);

impl Archive {
    /// Must be called inside the runtime.
    pub(crate) fn start() -> Archive {
        let (sender, mut files) = mpsc::unbounded_channel::<PathBuf>();
        let one = Arc::new(Semaphore::new(1));
        tokio::spawn(async move {
            while let Some(file) = files.recv().await {
                // As long as it takes, one at a time: the next waits for the permit.
                let Ok(permit) = one.clone().acquire_owned().await else { return };
                let path = file.clone();
                let begun = LOGS.begin(move || {
                    let _permit = permit;
                    told(&path, compress(&path));
                });
                if let Err(unserved) = begun {
                    told(&file, Err(unserved.into()));
                }
            }
        });
        Archive(sender)
    }

    pub(crate) fn compress(&self, file: PathBuf) {
        // The task ends with the runtime only.
        let _ = self.0.send(file);
    }

    /// Lines up what an earlier agent has not got to, and removes what it has left half done.
    pub(crate) fn catch_up(&self, job_logs: &Path) {
        let Ok(entries) = fs::read_dir(job_logs) else { return };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            match (name.as_bytes()[0], name.contains(".gz")) {
                (b'0'..=b'9', false) => self.compress(path),
                // The original may have been removed since: nobody else would.
                (b'.', true) => drop(fs::remove_file(path)),
                _ => {}
            }
        }
    }
}

fn told(file: &Path, compressed: io::Result<()>) {
    match compressed {
        Ok(()) => {}
        // Removed by the keeper meanwhile: nothing is lost that it wanted to keep.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::warn!("cannot compress {}: {error}; it stays as it is", file.display());
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

fn compress(path: &Path) -> io::Result<()> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let dir = StateDir::open(dir, Durability::Machine)?;
    let mut source = File::from(open_file(path)?);
    // Under a name that nobody takes for one of the log until it is whole.
    let mut archive = dir.begin(with_suffix(Path::new(name), ".gz"), 0o640)?;
    let mut encoder = GzEncoder::new(archive.file(), Compression::default());
    io::copy(&mut source, &mut encoder)?;
    encoder.finish()?;
    archive.commit()?;
    dir.remove(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_compressed_archive_takes_the_place_of_the_original() {
        let dir = std::env::temp_dir().join(format!("mainstay-archive-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("temp dir");
        let file = dir.join("00000001-20260101T000000Z");
        fs::write(&file, "line\n".repeat(1000)).expect("write");
        compress(&file).expect("compress");
        let mut text = String::new();
        let packed = File::open(with_suffix(&file, ".gz")).expect("archive");
        flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("gzip");
        assert_eq!(text, "line\n".repeat(1000));
        assert_eq!(fs::read_dir(&dir).expect("dir").count(), 1);
        fs::remove_dir_all(&dir).expect("clean up");
    }
}
