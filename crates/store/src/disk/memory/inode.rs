//! The content of a simulated file: the bytes that are read, the durable bytes, and all versions of
//! pages in between.
//!
//! A page that was written since the last sync may survive a crash in any of its versions,
//! independently of all other pages. The size may be any size that the file had, or end at a page.
//! A lost page inside the surviving size reads as zeros.

use std::collections::BTreeMap;

use super::Dice;

/// The bytes that are written to the disk together, as on common Linux machines.
pub const PAGE: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Inode {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// The versions of each page since the last sync, oldest first.
    dirty: BTreeMap<usize, Vec<Vec<u8>>>,
    /// The sizes of the file since the last sync.
    sizes: Vec<usize>,
}

impl Inode {
    pub(super) fn content(&self) -> &[u8] {
        &self.current
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len();
        // A write behind the end also changes the gap before it, which reads as zeros.
        let from = offset.min(self.current.len());
        self.current.resize(end.max(self.current.len()), 0);
        self.current[offset..end].copy_from_slice(bytes);
        self.touch(from, end);
    }

    pub(super) fn truncate(&mut self, size: usize) {
        let longest = size.max(self.current.len());
        self.current.resize(size, 0);
        self.touch(size, longest);
    }

    /// Makes everything durable.
    pub(super) fn sync(&mut self) {
        self.durable.resize(self.current.len(), 0);
        for page in self.dirty.keys() {
            let (start, end) = bounds(*page, self.current.len());
            self.durable[start..end].copy_from_slice(&self.current[start..end]);
        }
        self.settle();
    }

    /// Fails a sync: each dirty page becomes durable or not, and all of them are marked as clean.
    pub(super) fn lose(&mut self, dice: &mut Dice) {
        self.durable = self.survivor(dice);
        self.settle();
    }

    /// Cuts the power.
    pub(super) fn crash(&mut self, dice: &mut Dice) {
        self.lose(dice);
        // After a failed sync the page cache still has the lost pages. After a crash it is empty.
        self.current.clone_from(&self.durable);
    }

    fn settle(&mut self) {
        self.dirty.clear();
        self.sizes.clear();
    }

    fn touch(&mut self, from: usize, to: usize) {
        // Every size in between is remembered: a power cut may leave the file at any of them.
        self.sizes.push(self.current.len());
        for page in from / PAGE..to.div_ceil(PAGE) {
            let (start, end) = bounds(page, self.current.len());
            let version = self.current[start..end].to_vec();
            self.dirty.entry(page).or_default().push(version);
        }
    }

    /// Returns one of the contents that a power cut can leave.
    fn survivor(&self, dice: &mut Dice) -> Vec<u8> {
        let mut roll = |sides: usize| usize::try_from(dice(sides as u64)).map_or(0, |n| n % sides);
        let sizes = self.possible_sizes();
        let size = sizes[roll(sizes.len())];
        let mut image = self.durable.clone();
        image.resize(size, 0);
        for (page, versions) in &self.dirty {
            let survived = roll(versions.len() + 1);
            let (start, end) = bounds(*page, size);
            if let Some(version) = survived.checked_sub(1).map(|n| &versions[n]) {
                let count = version.len().min(end - start);
                image[start..start + count].copy_from_slice(&version[..count]);
                image[start + count..end].fill(0);
            }
        }
        image
    }

    fn possible_sizes(&self) -> Vec<usize> {
        let mut sizes = vec![self.durable.len()];
        sizes.extend(&self.sizes);
        let (low, high) = sizes
            .iter()
            .fold((usize::MAX, 0), |(low, high), size| (low.min(*size), high.max(*size)));
        sizes.extend((low / PAGE + 1..=high / PAGE).map(|page| page * PAGE));
        sizes
    }
}

/// Returns the bounds of a page in a file of this size.
fn bounds(page: usize, size: usize) -> (usize, usize) {
    ((page * PAGE).min(size), ((page + 1) * PAGE).min(size))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn dice(rolls: &[u64]) -> Dice {
        let mut rolls = VecDeque::from(rolls.to_vec());
        Box::new(move |_| rolls.pop_front().unwrap_or(0))
    }

    #[test]
    fn synced_write_always_survives() {
        let mut inode = Inode::default();
        inode.write(0, b"one");
        inode.sync();
        inode.crash(&mut dice(&[1, 1, 1]));
        assert_eq!(inode.content(), b"one");
    }

    #[test]
    fn an_unsynced_write_is_lost_or_kept() {
        let check = |rolls: &[u64], expected: &[u8]| {
            let mut inode = Inode::default();
            inode.write(0, b"one");
            inode.sync();
            inode.write(3, b"two");
            inode.crash(&mut dice(rolls));
            assert_eq!(inode.content(), expected, "{rolls:?}");
        };
        check(&[0, 0], b"one");
        check(&[0, 1], b"one");
        check(&[1, 0], b"one\0\0\0");
        check(&[1, 1], b"onetwo");
    }

    #[test]
    fn a_page_can_be_lost_in_the_middle() {
        let mut inode = Inode::default();
        inode.write(0, &vec![7; 3 * PAGE]);
        inode.crash(&mut dice(&[1, 1, 0, 1]));
        let expected = [vec![7; PAGE], vec![0; PAGE], vec![7; PAGE]].concat();
        assert_eq!(inode.content(), expected);
    }

    #[test]
    fn grown_file_may_end_at_any_page() {
        let mut inode = Inode::default();
        inode.write(0, &vec![7; PAGE + 904]);
        inode.sync();
        inode.write(PAGE + 904, &vec![7; 2 * PAGE]);
        let sizes = [PAGE + 904, 3 * PAGE + 904, 2 * PAGE, 3 * PAGE];
        assert_eq!(inode.possible_sizes(), sizes);
    }

    #[test]
    fn page_lost_by_a_failed_sync_stays_readable() {
        let mut inode = Inode::default();
        inode.write(0, b"one");
        inode.lose(&mut dice(&[1, 0]));
        assert_eq!(inode.content(), b"one");
        inode.sync();
        inode.crash(&mut dice(&[]));
        assert_eq!(inode.content(), b"\0\0\0");
    }
}
