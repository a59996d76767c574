//! Where troubles of a random run are aimed: rare things at rare points must meet, too.

use raymond_core::protocol::TagName;
use raymond_core::run::Run;
use raymond_core::run::input::Outcome;
use raymond_store::disk::memory::Operation;

use super::super::host::Host;
use super::super::plan::{Part, Point, Trouble};
use super::theme::Theme;
use super::{MOST_TROUBLES, Scenario};

const WRITE: Point = Point::Disk(Part::Journal, Operation::Write);
const SYNC: Point = Point::Disk(Part::Journal, Operation::Sync);

/// What can happen to a record.
const RECORD: [(Point, Trouble); 8] = [
    (WRITE, Trouble::PowerCut),
    (WRITE, Trouble::ShortWrite),
    (WRITE, Trouble::Full),
    (SYNC, Trouble::PowerCut),
    // Twice: it takes a lucky cut to tear a line.
    (SYNC, Trouble::PowerCut),
    (SYNC, Trouble::Kill),
    (SYNC, Trouble::LostSync),
    (Point::Release, Trouble::PowerCut),
];

impl Scenario {
    /// One of the next calls goes wrong.
    pub(super) fn any_trouble(&mut self, host: &Host) {
        let trouble =
            if self.spares_clients() { Trouble::Kill } else { *self.dice.pick(&Trouble::ALL) };
        let call = self.dice.below(10);
        if self.may_arm() {
            host.plan.arm(call, trouble);
        }
    }

    /// The next record meets trouble, this many times out of a hundred.
    pub(super) fn trouble_for_a_record(&mut self, host: &Host, chance: u64) {
        if self.dice.percent(chance) {
            let (point, trouble) = *self.dice.pick(&RECORD);
            self.arm(host, (point, 0), trouble);
        }
    }

    /// A record of a boot meets trouble: opening or creating a journal writes and syncs once before
    /// the first record.
    pub(super) fn trouble_for_a_boot(&mut self, host: &Host, chance: u64) {
        if self.dice.percent(chance) {
            let (point, trouble) = *self.dice.pick(&RECORD);
            let before = u32::from(point != Point::Release);
            let passed = before + u32::from(self.dice.percent(30));
            self.arm(host, (point, passed), trouble);
        }
    }

    /// What seldom happens meets trouble often.
    pub(super) fn trouble_for_an_outcome(&mut self, host: &Host, outcome: &Outcome) {
        let chance = if is_held(&host.reality.borrow().last, outcome) {
            70
        } else if is_rare(outcome) {
            20
        } else {
            0
        };
        self.trouble_for_a_record(host, chance);
    }

    /// A text that is about to be stored meets trouble often.
    pub(super) fn trouble_for_a_blob(&mut self, host: &Host) {
        if !host.next_is_large() || !self.dice.percent(55) {
            return;
        }
        let (operation, troubles) = match self.dice.below(3) {
            0 => (Operation::Write, &Trouble::ALL[..4]),
            1 => (Operation::Sync, &[Trouble::PowerCut, Trouble::Kill, Trouble::LostSync][..]),
            _ => (Operation::Rename, &[Trouble::PowerCut, Trouble::Kill][..]),
        };
        let trouble = *self.dice.pick(troubles);
        self.arm(host, (Point::Disk(Part::Blobs, operation), 0), trouble);
    }

    /// The machine goes down again while it recovers.
    pub(super) fn trouble_for_a_recovery(&mut self, host: &Host) {
        // Only a record that was being written can be torn, and few are.
        let torn = host.reality.borrow().unwritten.is_some() && self.dice.percent(75);
        if !torn && !self.dice.percent(50) {
            return self.trouble_for_a_boot(host, 20);
        }
        let points = [
            Point::Disk(Part::Journal, Operation::Truncate),
            Point::Disk(Part::Journal, Operation::Open),
            Point::Disk(Part::Other, Operation::SyncDir),
            Point::Disk(Part::Lock, Operation::Lock),
            WRITE,
            SYNC,
        ];
        let point = if torn { points[0] } else { *self.dice.pick(&points) };
        let cut = !self.spares_clients() && self.dice.percent(50);
        let trouble = if cut { Trouble::PowerCut } else { Trouble::Kill };
        self.arm(host, (point, 0), trouble);
    }

    /// Whether the next trouble takes the owner alone.
    pub(super) fn spares_clients(&mut self) -> bool {
        self.theme == Theme::Orphans && self.dice.percent(85)
    }

    fn arm(&mut self, host: &Host, (point, passed): (Point, u32), trouble: Trouble) {
        if self.may_arm() {
            host.plan.arm_at(point, passed, trouble);
        }
    }

    /// Whether there was not too much trouble already.
    pub(super) fn may_arm(&mut self) -> bool {
        self.troubles += 1;
        self.troubles <= MOST_TROUBLES
    }
}

/// Whether an outcome asks for more workers than there is room for.
fn is_held(run: &Run, outcome: &Outcome) -> bool {
    let Outcome::Finished(finished) = outcome else { return false };
    let forks = finished.reading.tags.iter().filter(|tag| tag.name() == TagName::Fork).count();
    forks > 0 && run.live_workers() as usize + forks > run.settings.max_agents as usize
}

/// Whether an outcome leads to what a run seldom meets.
fn is_rare(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Finished(finished) => {
            let reading = &finished.reading;
            let lost = |cd: &str| !finished.directories.contains_key(cd);
            reading.tags.is_empty()
                || reading.tags.iter().any(|tag| tag.name() == TagName::Fork)
                || !finished.denied.is_empty()
                || reading.tags.iter().any(|tag| tag.cd().is_some_and(lost))
                || reading.tags.iter().any(|tag| tag.target() == Some("NOWHERE"))
        }
        Outcome::Failed { .. } | Outcome::Capped { .. } => true,
        Outcome::Interrupted { .. } => false,
    }
}
