//! Power cuts: whatever was not synced is gone.
//!
//! The files lie on a disk of their own, an image under a loop device. What the image holds at the
//! moment of the cut is what a disk without power would hold: a copy of it is mounted in its place.

use super::*;
use rustix::fs::{CWD, Mode, OFlags, openat, syncfs};
use std::process::Command;

/// Where a file system orders as little by itself as it may.
const OPTIONS: &str = "loop,commit=300,data=writeback,noauto_da_alloc";

struct Disk {
    dir: TestDir,
    /// How often the power was cut.
    cuts: u32,
}

impl Disk {
    /// `None` where it cannot be mounted: only root can, where there are loop devices.
    fn new() -> Option<Disk> {
        let can = rustix::process::geteuid().is_root() && Path::new("/dev/loop-control").exists();
        if !can {
            eprintln!("skipped: no disk can be mounted");
            return None;
        }
        let disk = Disk { dir: TestDir::new("power"), cuts: 0 };
        fs::create_dir(disk.root()).expect("a directory");
        let image = fs::File::create(disk.image()).expect("a file");
        image.set_len(16 << 20).expect("room");
        run("mkfs.ext4", &["-q", "-m0", &text(&disk.image())]);
        disk.mount();
        Some(disk)
    }

    fn image(&self) -> PathBuf {
        self.dir.path().join(format!("image{}", self.cuts))
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("disk")
    }

    fn mount(&self) {
        run("mount", &["-o", OPTIONS, &text(&self.image()), &text(&self.root())]);
    }

    /// With the version `one` in place, which nothing takes away.
    fn place(&self) -> Place {
        let mut place = Place::in_dir(TestDir::at(&self.root()));
        place.apply("one");
        let root = openat(CWD, self.root(), OFlags::RDONLY, Mode::empty()).expect("mounted");
        syncfs(root).expect("synced");
        place
    }

    /// The same place on a disk that has what it had when the power was cut.
    fn cut(&mut self, place: Place) -> Place {
        let before = self.image();
        self.cuts += 1;
        fs::copy(&before, self.image()).expect("copied");
        let expected = place.expected.clone();
        drop(place);
        // A program that another test starts may have our descriptors for an instant.
        run("umount", &["--lazy", &text(&self.root())]);
        fs::remove_file(before).expect("ours");
        self.mount();
        Place { expected, ..Place::found_in(TestDir::at(&self.root())) }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.root()).status();
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn run(program: &str, args: &[&str]) {
    let done = Command::new(program).args(args).output().expect(program);
    assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A reader finds one version, and so it does after the next cut.
fn holds(disk: &mut Disk, place: Place, word: &str, steps: usize) {
    assert_eq!(place.seen(), all(word), "after {steps} steps");
    assert_eq!(place.entries().len(), 4, "after {steps} steps: {:?}", place.entries());
    let place = disk.cut(place);
    assert_eq!(place.seen(), all(word), "after {steps} steps and one more cut");
}

#[test]
fn a_power_cut_at_any_step_of_an_update_leaves_all_old_or_all_new() {
    for steps in 0.. {
        let Some(mut disk) = Disk::new() else { return };
        let place = disk.place();
        let set = place.set("two");
        crash::until(steps);
        let staged = place.stage_set(&set);
        // The record is on the disk before anything of it is switched.
        let record = staged.ok().map(|set| set.changed);
        let switched = record.as_ref().is_some_and(|files| place.switch.switch(files).is_ok());
        let lived = crash::survive();
        let place = disk.cut(place);
        no_secret_is_readable(place.dir.path());
        if switched {
            assert_eq!(place.seen(), all("two"), "after {steps} steps: it was said to be switched");
        }
        resume(&place, record.as_deref(), false);
        let word = if record.is_some() { "two" } else { "one" };
        holds(&mut disk, place, word, steps);
        if lived && switched {
            assert!(steps >= 10, "{steps} steps");
            return;
        }
    }
}

#[test]
fn a_power_cut_at_any_step_of_a_way_back_leaves_all_old() {
    for steps in 0.. {
        let Some(mut disk) = Disk::new() else { return };
        let place = disk.place();
        let files = place.stage("two").expect("staged").changed;
        place.switch.switch(&files).expect("switched");
        crash::until(steps);
        let outcome = place.switch.restore(&files);
        let lived = crash::survive();
        let place = disk.cut(place);
        no_secret_is_readable(place.dir.path());
        let came_back = lived && outcome.failed.is_empty();
        if came_back {
            assert_eq!(place.seen(), all("one"), "after {steps} steps: it was said to be back");
        }
        resume(&place, Some(&files), true);
        holds(&mut disk, place, "one", steps);
        if came_back {
            assert!(steps >= 4, "{steps} steps");
            return;
        }
    }
}
