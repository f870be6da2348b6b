//! `mainstay-test-writer DIR JOB PAUSE_MS steady|crashes`: see `mainstay_tests::writer`.

use mainstay_tests::writer::{BURST, Notes, code, lines};
use std::{
    fmt::Write as _,
    fs::{self, File},
    os::unix::fs::FileExt,
    path::Path,
    thread,
    time::Duration,
};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, job, pause, kind] = &args[..] else { panic!("DIR JOB PAUSE_MS KIND") };
    let pause = Duration::from_millis(pause.parse().expect("a number"));
    let notes = Notes::new(Path::new(dir), job);
    let lock = File::create(notes.lock()).expect("the directory can be written");
    if lock.try_lock().is_err() {
        fs::write(notes.alarm(), "").expect("the directory can be written");
        std::process::exit(99);
    }
    let run = notes.runs() + 1;
    fs::write(notes.runs_file(), run.to_string()).expect("the directory can be written");
    let written_file = File::create(notes.written_file(run)).expect("the directory can be written");
    let end = if kind == "crashes" { lines(job, run) } else { u64::MAX };
    let mut written = 0;
    while written < end {
        let mut burst = String::new();
        for number in written + 1..=written + BURST {
            writeln!(burst, "{run} {number}").expect("memory");
        }
        // In two pieces, so that half a line is on its way at any time.
        let (first, second) = burst.as_bytes().split_at(burst.len() * 2 / 3);
        write(first);
        thread::sleep(pause / 2);
        write(second);
        written += BURST;
        written_file.write_all_at(written.to_string().as_bytes(), 0).expect("a file of ours");
        thread::sleep(pause / 2);
    }
    std::process::exit(code(job, run));
}

fn write(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let count = rustix::io::write(rustix::stdio::stdout(), bytes).expect("somebody reads");
        bytes = &bytes[count..];
    }
}
