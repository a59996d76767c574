//! Coverage of the simulation: every transition, fault and failure, combined with every point at
//! which the machine can fail.

mod row;
mod situation;

use std::collections::BTreeMap;
use std::fmt;

use raymond_core::run::{Event, Record, RecordStep};
use raymond_store::disk::memory::Operation;

use super::fault_plan::{MachineFault, Point, RunFile};
use row::{ROWS, Row, row};

pub use situation::Situation;

/// How often each row was met in each column, and how often each situation.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    cells: BTreeMap<(&'static str, Column), u64>,
    met: BTreeMap<Situation, u64>,
    /// The number of durable records; each one was audited.
    pub records: u64,
    /// The number of events in the records.
    pub events: u64,
    /// The injected faults, by kind.
    pub faults: BTreeMap<MachineFault, u64>,
}

/// The columns of the table: the point at which the machine failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// No fault: the row was met at all.
    Seen,
    /// The power failed during the write of its record.
    PowerAtWrite,
    /// The power failed during the sync of its record.
    PowerAtSync,
    /// The process was killed during the sync of its record.
    KillAtSync,
    /// The machine failed while its effects were released.
    DownAtRelease,
    /// The write of its record was short.
    Short,
    /// The disk was full during the write of its record.
    Full,
    /// The sync of its record failed.
    LostSync,
    /// A fault during the write of its text as a blob.
    BlobWrite,
    /// A fault during the sync of its blob.
    BlobSync,
    /// The machine failed before its blob was renamed.
    BlobRename,
    /// It was the last record, and a recovery failed before it had read the journal.
    RecoveryOpen,
    /// A recovery failed while it truncated a torn line.
    RecoveryCut,
    /// A recovery failed during a write.
    RecoveryWrite,
    /// A recovery failed during a sync.
    RecoverySync,
}

impl Column {
    /// All columns in the order of the table.
    pub const ALL: [Self; 15] = [
        Self::Seen,
        Self::PowerAtWrite,
        Self::PowerAtSync,
        Self::KillAtSync,
        Self::DownAtRelease,
        Self::Short,
        Self::Full,
        Self::LostSync,
        Self::BlobWrite,
        Self::BlobSync,
        Self::BlobRename,
        Self::RecoveryOpen,
        Self::RecoveryCut,
        Self::RecoveryWrite,
        Self::RecoverySync,
    ];

    /// Returns the column of a fault that happens to a record.
    pub fn of(fault: MachineFault, point: Point) -> Option<Self> {
        let operation = match point {
            Point::Release => return Some(Self::DownAtRelease),
            Point::Disk(RunFile::Journal, operation) => operation,
            Point::Disk(RunFile::Blobs | RunFile::Lock | RunFile::Other, _) => return None,
        };
        match (fault, operation) {
            (MachineFault::PowerCut, Operation::Write) => Some(Self::PowerAtWrite),
            (MachineFault::PowerCut, Operation::Sync) => Some(Self::PowerAtSync),
            (MachineFault::Kill, Operation::Sync) => Some(Self::KillAtSync),
            (MachineFault::ShortWrite, _) => Some(Self::Short),
            (MachineFault::Full, _) => Some(Self::Full),
            (MachineFault::LostSync, _) => Some(Self::LostSync),
            (MachineFault::PowerCut | MachineFault::Kill, _) => None,
        }
    }

    /// Returns the column of a fault that happens to a blob.
    pub const fn for_blob(point: Point) -> Option<Self> {
        match point {
            Point::Disk(RunFile::Blobs, Operation::Write) => Some(Self::BlobWrite),
            Point::Disk(RunFile::Blobs, Operation::Sync) => Some(Self::BlobSync),
            Point::Disk(RunFile::Blobs, Operation::Rename) => Some(Self::BlobRename),
            Point::Disk(..) | Point::Release => None,
        }
    }

    /// Returns the column of a fault that happens to a recovery.
    pub const fn for_recovery(point: Point) -> Option<Self> {
        match point {
            Point::Release => None,
            Point::Disk(RunFile::Journal, Operation::Truncate) => Some(Self::RecoveryCut),
            Point::Disk(RunFile::Journal, Operation::Write) => Some(Self::RecoveryWrite),
            Point::Disk(RunFile::Journal, Operation::Sync) => Some(Self::RecoverySync),
            Point::Disk(..) => Some(Self::RecoveryOpen),
        }
    }

    /// Returns whether a row can be met in this column. Only rows that follow from a text can have
    /// a blob.
    const fn is_possible(self, row: &Row) -> bool {
        match self {
            Self::BlobWrite | Self::BlobSync | Self::BlobRename => row.follows_text,
            Self::DownAtRelease => row.has_effects,
            _ => true,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::PowerAtWrite => "cut@write",
            Self::PowerAtSync => "cut@sync",
            Self::KillAtSync => "kill@sync",
            Self::DownAtRelease => "@release",
            Self::Short => "short",
            Self::Full => "full",
            Self::LostSync => "lost sync",
            Self::BlobWrite => "blob@write",
            Self::BlobSync => "blob@sync",
            Self::BlobRename => "blob@name",
            Self::RecoveryOpen => "rec@open",
            Self::RecoveryCut => "rec@cut",
            Self::RecoveryWrite => "rec@write",
            Self::RecoverySync => "rec@sync",
        }
    }
}

impl Coverage {
    pub fn note(&mut self, record: &Record, column: Column) {
        if column == Column::Seen {
            self.records += 1;
            self.events += record.steps.iter().map(|step| step.events.len() as u64).sum::<u64>();
        }
        for step in &record.steps {
            self.note_step(step, column);
        }
    }

    pub fn note_step(&mut self, step: &RecordStep, column: Column) {
        let spawned = step.events.iter().filter(|e| matches!(e, Event::AgentSpawned { .. }));
        let many = (spawned.count() > 1).then_some("many forks");
        for row in step.events.iter().filter_map(row).chain(many) {
            *self.cells.entry((row, column)).or_default() += 1;
        }
    }

    pub fn note_situation(&mut self, situation: Situation) {
        *self.met.entry(situation).or_default() += 1;
    }

    pub fn add(&mut self, other: &Self) {
        for (cell, count) in &other.cells {
            *self.cells.entry(*cell).or_default() += count;
        }
        for (situation, count) in &other.met {
            *self.met.entry(*situation).or_default() += count;
        }
        for (fault, count) in &other.faults {
            *self.faults.entry(*fault).or_default() += count;
        }
        self.records += other.records;
        self.events += other.events;
    }

    /// Returns the possible cells and situations that were never met.
    pub fn missing(&self) -> Vec<String> {
        let cells = possible().filter(|cell| !self.cells.contains_key(cell));
        let cells = cells.map(|(row, column)| format!("{row} × {}", column.title()));
        let situations = Situation::ALL.iter().filter(|one| !self.met.contains_key(one));
        cells.chain(situations.map(ToString::to_string)).collect()
    }

    /// Returns the rarest cell or situation, and its count.
    pub fn rarest(&self) -> Option<(String, u64)> {
        let cells = possible().map(|cell| {
            let count = self.cells.get(&cell).copied().unwrap_or(0);
            (format!("{} × {}", cell.0, cell.1.title()), count)
        });
        let situations = Situation::ALL
            .iter()
            .map(|one| (one.to_string(), self.met.get(one).copied().unwrap_or(0)));
        cells.chain(situations).min_by_key(|(_, count)| *count)
    }
}

/// Returns every possible cell.
fn possible() -> impl Iterator<Item = (&'static str, Column)> {
    ROWS.iter().flat_map(|row| {
        let columns = Column::ALL.into_iter().filter(|column| column.is_possible(row));
        columns.map(|column| (row.name, column))
    })
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<20}", "")?;
        for column in Column::ALL {
            write!(f, "{:>11}", column.title())?;
        }
        for row in ROWS.iter() {
            write!(f, "\n{:<20}", row.name)?;
            for column in Column::ALL {
                if column.is_possible(row) {
                    write!(f, "{:>11}", self.cells.get(&(row.name, column)).copied().unwrap_or(0))?;
                } else {
                    write!(f, "{:>11}", "-")?;
                }
            }
        }
        for (place, situation) in Situation::ALL.iter().enumerate() {
            let count = self.met.get(situation).copied().unwrap_or(0);
            let gap = if place % 5 == 0 { "\n" } else { "   " };
            write!(f, "{gap}{:<26}{count:>8}", situation.to_string())?;
        }
        Ok(())
    }
}
