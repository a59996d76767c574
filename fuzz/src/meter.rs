//! Measures how much memory a thread holds at most, with an allocator that counts.
//!
//! Memory that another thread frees is counted there, so a count may fall below zero. It is only
//! compared with its value at the start.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// The allocator of the system, with a count for each thread.
#[derive(Debug)]
pub struct Meter;

#[global_allocator]
static ALLOCATOR: Meter = Meter;

/// Runs `work`, and returns its result and the most bytes that this thread held meanwhile, beyond
/// those that it held before.
pub fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let made = work();
    (made, usize::try_from(MOST.get() - before).unwrap_or(0))
}

fn count(bytes: usize, sign: isize) {
    let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
    // While a thread ends, its counter no longer exists.
    HELD.try_with(|held| {
        held.set(held.get().wrapping_add(bytes.wrapping_mul(sign)));
        MOST.try_with(|most| most.set(most.get().max(held.get()))).ok();
    })
    .ok();
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call goes to the allocator of the system as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The new block before the old one, because both exist while the content is copied.
        count(size, 1);
        count(layout.size(), -1);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_use_is_measured() {
        let ((), most) = measured(|| {
            drop(vec![0_u8; 3 << 20]);
            drop(vec![0_u8; 5 << 20]);
        });
        assert!((5 << 20..6 << 20).contains(&most), "{most}");
    }
}
