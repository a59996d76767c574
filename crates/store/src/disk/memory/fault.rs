//! The faults of the simulated disk, and the log of its calls.

use std::io;
use std::path::PathBuf;

/// A fault of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskFault {
    /// The power is cut before the call does anything. Any call.
    Crash,
    /// This many bytes are written (always fewer than requested), then the write fails.
    Short(usize),
    /// From this call on the disk has no free byte, until something is removed or truncated.
    Full,
    /// The sync fails. Each dirty page of the file is written or lost. The page cache still
    /// contains all of them, and no later sync writes them: Linux behaves like this.
    LostSync,
    /// The call fails with this kind and does nothing. Any call.
    Fail(io::ErrorKind),
}

impl DiskFault {
    /// Returns whether the fault can happen to `operation`.
    pub fn applies_to(self, operation: Operation) -> bool {
        match self {
            Self::Crash | Self::Fail(_) => true,
            Self::Short(_) | Self::Full => operation == Operation::Write,
            Self::LostSync => matches!(operation, Operation::Sync | Operation::SyncDir),
        }
    }
}

/// One call of the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskCall {
    /// The number of the call, from 0.
    pub number: u64,
    pub operation: Operation,
    pub path: PathBuf,
    /// The planned fault, if there was one.
    pub fault: Option<DiskFault>,
}

/// The operations of the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// [`Disk::open`](crate::disk::Disk::open)
    Open,
    /// [`Disk::metadata`](crate::disk::Disk::metadata)
    Metadata,
    /// [`Disk::list`](crate::disk::Disk::list)
    List,
    /// [`Disk::create_dir`](crate::disk::Disk::create_dir)
    CreateDir,
    /// [`Disk::sync_dir`](crate::disk::Disk::sync_dir)
    SyncDir,
    /// [`Disk::rename`](crate::disk::Disk::rename)
    Rename,
    /// [`Disk::remove`](crate::disk::Disk::remove)
    Remove,
    /// [`Handle::read_at`](crate::disk::Handle::read_at)
    Read,
    /// [`Handle::write_at`](crate::disk::Handle::write_at)
    Write,
    /// [`Handle::size`](crate::disk::Handle::size)
    Size,
    /// [`Handle::truncate`](crate::disk::Handle::truncate)
    Truncate,
    /// [`Handle::sync`](crate::disk::Handle::sync)
    Sync,
    /// [`Handle::is_at`](crate::disk::Handle::is_at)
    IsAt,
    /// [`Handle::try_lock`](crate::disk::Handle::try_lock)
    Lock,
}

/// Returns the next number of the sequence `SplitMix64`, and advances `state`.
pub fn splitmix(state: &mut u64) -> u64 {
    // The constants of SplitMix64 (Steele, Lea and Flood, 2014): a seed gives the same faults on
    // every machine.
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_happen_only_where_possible() {
        let check = |fault: DiskFault, write, sync, other| {
            let applies = [Operation::Write, Operation::Sync, Operation::SyncDir, Operation::Read]
                .map(|operation| fault.applies_to(operation));
            assert_eq!(applies, [write, sync, sync, other], "{fault:?}");
        };
        check(DiskFault::Crash, true, true, true);
        check(DiskFault::Fail(io::ErrorKind::Other), true, true, true);
        check(DiskFault::Short(1), true, false, false);
        check(DiskFault::Full, true, false, false);
        check(DiskFault::LostSync, false, true, false);
    }

    #[test]
    fn splitmix_matches_the_published_sequence() {
        let mut state = 1_234_567;
        let numbers = [(); 3].map(|()| splitmix(&mut state));
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
