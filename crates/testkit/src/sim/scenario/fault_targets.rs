//! Chooses where faults hit, so that rare events meet rare faults often enough.

use raymond_core::protocol::TagName;
use raymond_core::run::Run;
use raymond_core::run::outcome::Outcome;
use raymond_store::disk::memory::Operation;

use super::super::fault_plan::{MachineFault, Point, RunFile};
use super::super::host::Host;
use super::theme::Theme;
use super::{MAX_FAULTS, Scenario};

const WRITE: Point = Point::Disk(RunFile::Journal, Operation::Write);
const SYNC: Point = Point::Disk(RunFile::Journal, Operation::Sync);

/// The faults of a record.
const RECORD_FAULTS: [(Point, MachineFault); 8] = [
    (WRITE, MachineFault::PowerCut),
    (WRITE, MachineFault::ShortWrite),
    (WRITE, MachineFault::Full),
    (SYNC, MachineFault::PowerCut),
    // Twice, because only few power failures tear a line.
    (SYNC, MachineFault::PowerCut),
    (SYNC, MachineFault::Kill),
    (SYNC, MachineFault::LostSync),
    (Point::Release, MachineFault::PowerCut),
];

impl Scenario {
    /// Lets one of the next calls fail.
    pub(super) fn inject_anywhere(&mut self, host: &Host) {
        let fault = if self.spares_clients() {
            MachineFault::Kill
        } else {
            *self.dice.pick(&MachineFault::ALL)
        };
        // A record takes a few calls, so ten calls cover the next records and their effects.
        let call = self.dice.below(10);
        if self.may_arm() {
            host.faults.arm(call, fault);
        }
    }

    /// Lets the next record fail, in `chance` of 100 cases.
    pub(super) fn inject_into_record(&mut self, host: &Host, chance: u64) {
        if self.dice.percent(chance) {
            let (point, fault) = *self.dice.pick(&RECORD_FAULTS);
            self.arm(host, point, 0, fault);
        }
    }

    /// Lets a record of a boot fail. Opening or creating a journal writes and syncs once before the
    /// first record.
    pub(super) fn inject_into_boot(&mut self, host: &Host, chance: u64) {
        if self.dice.percent(chance) {
            let (point, fault) = *self.dice.pick(&RECORD_FAULTS);
            let before = u32::from(point != Point::Release);
            let passed = before + u32::from(self.dice.percent(30));
            self.arm(host, point, passed, fault);
        }
    }

    /// Lets the record of a rare outcome fail often.
    pub(super) fn inject_into_outcome(&mut self, host: &Host, outcome: &Outcome) {
        // A fork that waits for free places is the rarest of these outcomes, so it gets most
        // faults.
        let chance = if is_held(&host.world.borrow().last, outcome) {
            70
        } else if is_rare(outcome) {
            20
        } else {
            0
        };
        self.inject_into_record(host, chance);
    }

    /// Often lets the storing of a large text fail.
    pub(super) fn inject_into_blob(&mut self, host: &Host) {
        // Large texts are rare, but all three operations must meet every row that follows from a
        // text.
        if !host.next_is_large() || !self.dice.percent(55) {
            return;
        }
        let (operation, faults) = match self.dice.below(3) {
            // The last fault of the list, a lost sync, cannot happen to a write.
            0 => (Operation::Write, &MachineFault::ALL[..4]),
            1 => (
                Operation::Sync,
                &[MachineFault::PowerCut, MachineFault::Kill, MachineFault::LostSync][..],
            ),
            _ => (Operation::Rename, &[MachineFault::PowerCut, MachineFault::Kill][..]),
        };
        let fault = *self.dice.pick(faults);
        self.arm(host, Point::Disk(RunFile::Blobs, operation), 0, fault);
    }

    /// Lets the machine fail again during a recovery.
    pub(super) fn inject_into_recovery(&mut self, host: &Host) {
        // Only a record that was being written can be torn, and few are.
        let torn = host.world.borrow().unwritten.is_some() && self.dice.percent(75);
        if !torn && !self.dice.percent(50) {
            return self.inject_into_boot(host, 20);
        }
        let points = [
            Point::Disk(RunFile::Journal, Operation::Truncate),
            Point::Disk(RunFile::Journal, Operation::Open),
            Point::Disk(RunFile::Other, Operation::SyncDir),
            Point::Disk(RunFile::Lock, Operation::Lock),
            WRITE,
            SYNC,
        ];
        // A torn line is removed by a truncation, which no other recovery makes.
        let point = if torn { points[0] } else { *self.dice.pick(&points) };
        let cut = !self.spares_clients() && self.dice.percent(50);
        let fault = if cut { MachineFault::PowerCut } else { MachineFault::Kill };
        self.arm(host, point, 0, fault);
    }

    /// Returns whether the next fault spares the clients, and hits only the owner.
    pub(super) fn spares_clients(&mut self) -> bool {
        // Not always, so that the same run also meets power failures while clients are adopted.
        self.theme == Theme::Orphans && self.dice.percent(85)
    }

    fn arm(&mut self, host: &Host, point: Point, passed: u32, fault: MachineFault) {
        if self.may_arm() {
            host.faults.arm_at(point, passed, fault);
        }
    }

    /// Counts a fault, and returns whether the limit allows it.
    pub(super) fn may_arm(&mut self) -> bool {
        // Counted even if the fault never happens because its call does not come.
        self.faults += 1;
        self.faults <= MAX_FAULTS
    }
}

/// Returns whether an outcome asks for more workers than the limit allows.
fn is_held(run: &Run, outcome: &Outcome) -> bool {
    let Outcome::Finished(finished) = outcome else { return false };
    let forks =
        finished.reply.reading.tags.iter().filter(|tag| tag.name() == TagName::Fork).count();
    // The same condition as in core, but only for aiming: a wrong answer here costs coverage, not
    // correctness.
    forks > 0 && run.live_workers() as usize + forks > run.settings.max_agents as usize
}

/// Returns whether an outcome leads to a rare event.
fn is_rare(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Finished(finished) => {
            let reading = &finished.reply.reading;
            let lost = |cd: &str| !finished.reply.directories.contains_key(cd);
            reading.tags.is_empty()
                || reading.tags.iter().any(|tag| tag.name() == TagName::Fork)
                || !finished.denied.is_empty()
                || reading.tags.iter().any(|tag| tag.cd().is_some_and(lost))
                || reading
                    .tags
                    .iter()
                    .any(|tag| tag.target().is_some_and(|target| target == "NOWHERE"))
        }
        Outcome::Failed { .. } | Outcome::Capped { .. } => true,
        // Every stop and every crash makes interruptions, so they are not rare.
        Outcome::Interrupted { .. } => false,
    }
}
