//! The content of a simulated file: what is read, what is durable, and every page in between.
//!
//! A page that was written since the last sync may survive a crash in any of its versions, whatever
//! became of the pages before it; the size may be any that the file had, or stop at a page. A page
//! that was lost inside the surviving size reads as zeros.

use std::collections::BTreeMap;

use super::Dice;

/// How many bytes are written to the disk together.
pub const PAGE: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Inode {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// The contents of each page since the last sync, oldest first.
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

    /// Everything up to now is durable.
    pub(super) fn sync(&mut self) {
        self.durable.resize(self.current.len(), 0);
        for page in self.dirty.keys() {
            let (start, end) = bounds(*page, self.current.len());
            self.durable[start..end].copy_from_slice(&self.current[start..end]);
        }
        self.settle();
    }

    /// A sync fails: what was dirty is durable or not, and clean in any case.
    pub(super) fn lose(&mut self, dice: &mut Dice) {
        self.durable = self.survivor(dice);
        self.settle();
    }

    /// The power is cut.
    pub(super) fn crash(&mut self, dice: &mut Dice) {
        self.lose(dice);
        self.current.clone_from(&self.durable);
    }

    fn settle(&mut self) {
        self.dirty.clear();
        self.sizes.clear();
    }

    fn touch(&mut self, from: usize, to: usize) {
        self.sizes.push(self.current.len());
        for page in from / PAGE..to.div_ceil(PAGE) {
            let (start, end) = bounds(page, self.current.len());
            let version = self.current[start..end].to_vec();
            self.dirty.entry(page).or_default().push(version);
        }
    }

    /// One of the contents that a power cut can leave.
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

/// The bytes of a page that a file of that size has.
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
    fn a_synced_write_survives_whatever_the_dice_say() {
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
    fn a_file_that_grew_may_end_at_each_page_in_between() {
        let mut inode = Inode::default();
        inode.write(0, &vec![7; PAGE + 904]);
        inode.sync();
        inode.write(PAGE + 904, &vec![7; 2 * PAGE]);
        let sizes = [PAGE + 904, 3 * PAGE + 904, 2 * PAGE, 3 * PAGE];
        assert_eq!(inode.possible_sizes(), sizes);
    }

    #[test]
    fn a_page_lost_by_a_failed_sync_is_still_read_and_never_written() {
        let mut inode = Inode::default();
        inode.write(0, b"one");
        inode.lose(&mut dice(&[1, 0]));
        assert_eq!(inode.content(), b"one");
        inode.sync();
        inode.crash(&mut dice(&[]));
        assert_eq!(inode.content(), b"\0\0\0");
    }
}
