//! Finds out which code an input reached, in a build that counts it.
//!
//! With the feature `coverage` and the compiler options of `fuzz/counting`, the compiler puts a
//! counter of one byte into every branch and hands all counters over before `main`. The options are
//! stable; no other toolchain and no library is needed. Any other build has no counters, so no
//! input is ever new.

/// The places of the code that were reached so far.
#[derive(Debug, Default)]
pub struct Seen(Vec<u8>);

impl Seen {
    /// Forgets what the last input has reached.
    pub fn begin(&self) {
        counters(&mut |_, counter| *counter = 0);
    }

    /// Whether the input since [`Seen::begin`] reached code that none before it did, or one of them
    /// clearly more often.
    pub fn grew(&mut self) -> bool {
        let mut grew = false;
        counters(&mut |index, counter| {
            if *counter == 0 {
                return;
            }
            if self.0.len() <= index {
                self.0.resize(index + 1, 0);
            }
            // Powers of two: once, twice, four times…
            let often = 1 << counter.ilog2();
            grew |= self.0[index] & often == 0;
            self.0[index] |= often;
        });
        grew
    }

    /// How many places have been reached.
    pub fn places(&self) -> usize {
        self.0.iter().filter(|often| **often != 0).count()
    }
}

#[cfg(not(feature = "coverage"))]
fn counters(_: &mut dyn FnMut(usize, &mut u8)) {}

#[cfg(feature = "coverage")]
use instrumented::counters;

#[cfg(feature = "coverage")]
#[expect(unsafe_code, reason = "the counters belong to the compiler, which hands over their place")]
mod instrumented {
    use std::sync::Mutex;

    /// The place and number of the counters of each part of the program.
    static PARTS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

    /// Called by every part of the program before `main`.
    // SAFETY: this is the name that the compiler calls, with this signature.
    #[unsafe(no_mangle)]
    extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, end: *mut u8) {
        if let Ok(mut parts) = PARTS.lock() {
            parts.push((start as usize, end as usize - start as usize));
        }
    }

    pub(super) fn counters(look: &mut dyn FnMut(usize, &mut u8)) {
        let parts = PARTS.lock().expect("nobody panics while counting").clone();
        let mut index = 0;
        for (start, length) in parts {
            for offset in 0..length {
                let counter = (start + offset) as *mut u8;
                // SAFETY: the counters of a program stay where they are, and only this thread runs
                // instrumented code that matters; a count that another thread changes is inexact.
                let mut count = unsafe { counter.read_volatile() };
                look(index, &mut count);
                // SAFETY: as above.
                unsafe { counter.write_volatile(count) };
                index += 1;
            }
        }
    }
}
