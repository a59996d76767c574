//! The process tree of a turn: its group, all processes with its marker, and their descendants.
//!
//! A snapshot of the process table can miss a fork that is just happening. Therefore the group is
//! signalled as a whole where that is safe, and every step takes snapshots until nothing is found.
//! A process that was seen once stays known, even if it has changed its parent, group and
//! environment since.

use std::collections::BTreeSet;
use std::time::Duration;

use raymond_core::ids::Nonce;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::{Instant, sleep_until};

use super::child::may_have_adopted;
use super::table::{self, Entry, Identity};
use super::{Grace, Marker};

/// A process tree to end.
#[derive(Debug)]
pub(super) struct Tree {
    group: Option<Group>,
    markers: BTreeSet<Marker>,
    known: BTreeSet<Identity>,
    /// All descendants of this process belong to the tree.
    below: Option<i32>,
    /// The runs of the tree. Processes that were detached from these runs do not belong to it.
    runs: BTreeSet<Nonce>,
}

/// The group that a process of this tree leads.
#[derive(Debug, Clone, Copy)]
struct Group {
    id: i32,
    /// `None` means the session of this process.
    session: Option<i32>,
    leader: Leader,
}

/// Whether the leader was reaped. Until then its pid cannot be reused, and the group can be
/// signalled as a whole. Afterwards the group is also identified by its session, and its members
/// are signalled one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leader {
    Unreaped,
    Reaped,
}

impl Tree {
    /// Creates the tree of a child that leads the group `group`.
    pub(super) fn for_group(group: i32, marker: Marker) -> Self {
        let group = Group { id: group, session: None, leader: Leader::Unreaped };
        let found = Self::for_leftovers(BTreeSet::new(), BTreeSet::from([marker]));
        Self { group: Some(group), ..found }
    }

    /// Creates the tree of a group leader that is not a child of this process, so its pid may be
    /// reused at any time.
    pub(super) fn for_adopted(leader: Entry, marker: Marker) -> Self {
        let Entry { identity, group, session, .. } = leader;
        let group = Group { id: group, session: Some(session), leader: Leader::Reaped };
        let found = Self::for_leftovers(BTreeSet::from([identity]), BTreeSet::from([marker]));
        Self { group: Some(group), ..found }
    }

    /// Creates the tree of leftover processes.
    pub(super) fn for_leftovers(known: BTreeSet<Identity>, markers: BTreeSet<Marker>) -> Self {
        let runs = markers.iter().map(Marker::run).collect();
        Self { group: None, markers, known, below: None, runs }
    }

    /// Adds all descendants of this process, which drives the run.
    pub(super) fn with_descendants_of(mut self, pid: i32, run: &Nonce) -> Self {
        self.runs.insert(run.clone());
        Self { below: Some(pid), ..self }
    }

    /// Notes that the pid of the leader may now be reused.
    pub(super) fn note_leader_reaped(&mut self) {
        if let Some(group) = &mut self.group {
            group.leader = Leader::Reaped;
        }
    }

    /// Sends SIGINT, SIGTERM and SIGKILL, each with its waiting time, until all processes are dead.
    /// Returns those that are not.
    pub(super) async fn end(&mut self, grace: &Grace) -> Vec<Identity> {
        let steps = [
            (Signal::INT, grace.interrupt),
            (Signal::TERM, grace.terminate),
            (Signal::KILL, grace.kill),
        ];
        let mut living = Vec::new();
        for (signal, patience) in steps {
            living = self.signal_and_wait(signal, patience).await;
            if living.is_empty() {
                break;
            }
        }
        living.iter().map(|entry| entry.identity).collect()
    }

    /// Waits until no process is left, at most until the deadline, and returns whether that is so.
    /// The root of the tree has ended, so usually nothing is left; the check for children avoids a
    /// snapshot, which costs more than running a small process.
    pub(super) async fn wait_until_empty(&mut self, deadline: Instant) -> bool {
        let mut pause = Duration::from_millis(2);
        while may_have_adopted() && !self.living().is_empty() {
            if Instant::now() >= deadline {
                return false;
            }
            sleep_until(deadline.min(Instant::now() + pause)).await;
            // Most processes end within milliseconds, and a snapshot of the table is expensive.
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        true
    }

    /// Sends SIGKILL to all processes where no task can wait for their end. Blocks for at most
    /// about 100 ms.
    pub(super) fn kill_now(&mut self) {
        const LOOKS: u32 = 100;
        for _ in 0..LOOKS {
            let living = self.confirmed_living();
            if living.is_empty() {
                return;
            }
            self.signal(&living, Signal::KILL);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    async fn signal_and_wait(&mut self, signal: Signal, patience: Duration) -> Vec<Entry> {
        let deadline = Instant::now() + patience;
        let mut pause = Duration::from_millis(2);
        let mut living = self.confirmed_living();
        self.signal(&living, signal);
        while !living.is_empty() && Instant::now() < deadline {
            sleep_until(deadline.min(Instant::now() + pause)).await;
            pause = (pause * 2).min(Duration::from_millis(50));
            living = self.confirmed_living();
            // A signal handler may start processes that clean up, so SIGINT and SIGTERM are sent
            // only once.
            if signal == Signal::KILL {
                self.signal(&living, signal);
            }
        }
        living
    }

    fn signal(&self, living: &[Entry], signal: Signal) {
        let whole = self.group.filter(|group| group.leader == Leader::Unreaped);
        let whole = whole.and_then(|group| Pid::from_raw(group.id));
        if let Some(group) = whole {
            let _nobody_is_left_in_it = kill_process_group(group, signal);
        }
        for entry in living {
            // A process may have left the group since the snapshot. A second SIGKILL does no harm.
            let is_signalled = whole.is_some() && whole == Pid::from_raw(entry.group);
            if !is_signalled || signal == Signal::KILL {
                table::signal(entry.identity, signal);
            }
        }
    }

    /// Returns the living processes.
    fn confirmed_living(&mut self) -> Vec<Entry> {
        // A snapshot reads one process after the other and can miss a process that keeps forking,
        // so only several empty snapshots in a row count.
        const LOOKS: u32 = 4;
        (0..LOOKS).map(|_| self.living()).find(|living| !living.is_empty()).unwrap_or_default()
    }

    fn living(&mut self) -> Vec<Entry> {
        let table = table::snapshot(self.group.map(|group| group.id));
        let group =
            self.group.map(|group| (group.id, group.session.unwrap_or_else(table::session)));
        let living = with_descendants(&table, &self.runs, |entry| {
            group == Some((entry.group, entry.session)) || self.contains(entry)
        });
        self.known.extend(living.iter().map(|entry| entry.identity));
        living
    }

    fn contains(&self, entry: &Entry) -> bool {
        self.known.contains(&entry.identity)
            || self.below == Some(entry.parent)
            || table::marks(entry.identity).list().any(|marker| self.markers.contains(&marker))
    }
}

/// Returns these processes of the table and their descendants, without processes that were detached
/// from these runs.
pub(super) fn with_descendants(
    table: &[Entry],
    runs: &BTreeSet<Nonce>,
    is_root: impl Fn(&Entry) -> bool,
) -> Vec<Entry> {
    let added = |belongs: &dyn Fn(&Entry) -> bool| -> Vec<i32> {
        let found = table.iter().filter(|entry| belongs(entry));
        let found = found.filter(|entry| !table::marks(entry.identity).are_detached_from(runs));
        found.map(|entry| entry.identity.pid).collect()
    };
    let mut members: BTreeSet<i32> = added(&is_root).into_iter().collect();
    // Children may come before their parents in the table, so the search repeats until nothing is
    // added.
    let mut before = 0;
    while before < members.len() {
        before = members.len();
        members.extend(added(&|entry| {
            members.contains(&entry.parent) && !members.contains(&entry.identity.pid)
        }));
    }
    let is_member = |entry: &&Entry| members.contains(&entry.identity.pid);
    table.iter().filter(is_member).copied().collect()
}
