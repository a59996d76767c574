//! Owners that change or are suspended while a run is asked to end.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use raymond_store::disk::{Disk, Handle, Memory, Metadata, OpenMode};
use raymond_store::host::{Host as _, ProcessIdentity};
use raymond_store::lock::Claim;

use super::*;

/// A disk on which another process takes the lock of a run just before this process does, a given
/// number of times, and releases it before this process reads the owner.
#[derive(Debug)]
struct Contended {
    memory: Memory,
    lock: PathBuf,
    times: Mutex<u32>,
    held: Mutex<Option<Lock>>,
}

impl Contended {
    fn take(&self) {
        let mut times = self.times.lock().unwrap();
        if *times > 0 {
            *times -= 1;
            let claim = Claim { since: 0, version: "1", takeover: Takeover::Never };
            let taken = Lock::take(&self.memory, &ThisHost, &self.lock, claim).unwrap();
            *self.held.lock().unwrap() = Some(taken);
        }
    }
}

impl Disk for Contended {
    fn open(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn Handle>> {
        match how {
            OpenMode::Create if path == self.lock => self.take(),
            OpenMode::Read if path == self.lock => *self.held.lock().unwrap() = None,
            _ => {}
        }
        self.memory.open(path, how)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.memory.metadata(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.memory.list(directory)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.memory.create_dir(path)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.memory.sync_dir(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.memory.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.memory.remove(path)
    }
}

#[tokio::test(start_paused = true)]
async fn stop_tries_two_seconds_to_become_owner() {
    for (times, is_stopped) in [(0, true), (1, true), (40, true), (41, false)] {
        let mut setup = TestRun::in_memory();
        drop(setup.begun(STATE));
        let (memory, lock) = (setup.memory.clone(), setup.project.paths(&TestRun::run()).lock);
        let (counted, held) = (Mutex::new(times), Mutex::default());
        setup.project.disk = Arc::new(Contended { memory, lock, times: counted, held });
        let began = tokio::time::Instant::now();
        let known = |_: &Settings| answered_by(&Client::new(AttachedClient::Finished, ""));
        let asked = stop(&setup.project, &TestRun::run(), StopMode::Now, &known).await;
        assert_eq!(asked.is_ok(), is_stopped, "{times}: {asked:?}");
        assert_eq!(began.elapsed(), POLL_INTERVAL * times.min(40), "{times}");
    }
}

/// The lock as a process leaves it that holds it.
fn held_by(setup: &TestRun, process: ProcessIdentity) {
    let owner = Owner { process, since: 0, version: "1".to_owned() };
    let path = setup.project.paths(&TestRun::run()).lock;
    let mut file = setup.project.disk.open(&path, OpenMode::Create).unwrap();
    file.write_at(0, &serde_json::to_vec(&owner).unwrap()).unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn wait_ignores_suspended_owner_of_ended_run() {
    let setup = TestRun::in_memory();
    drop(setup.begun(STATE));
    asked(&setup, StopMode::Now).await;
    #[expect(clippy::disallowed_methods, reason = "a process to suspend")]
    let mut child = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let started = stat.rsplit(") ").next().unwrap().split(' ').nth(19).unwrap().parse().unwrap();
    let process = ProcessIdentity { pid: child.id(), started, ..ThisHost.me() };
    kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    while ThisHost.life(&process) != Life::Suspended {
        std::thread::yield_now();
    }
    held_by(&setup, process);
    let began = tokio::time::Instant::now();
    let ended = wait(&setup.project, &TestRun::run(), &mut |_| {}).await.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ended, Some(Phase::Ended(Ending::Stopped)));
    assert_eq!(began.elapsed(), Duration::ZERO);
}
