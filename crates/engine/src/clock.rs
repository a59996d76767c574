//! The wall clock and the dice of the real machine: the only ones that a run ever sees.

use std::time::{SystemTime, UNIX_EPOCH};

use raymond_core::ids::Nonce;
use raymond_core::time::Timestamp;

/// The time.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Sixteen random bytes, in hexadecimal.
pub fn nonce() -> Nonce {
    let mut bytes = [0_u8; 16];
    let flags = rustix::rand::GetRandomFlags::empty();
    // Before the kernel has gathered entropy this waits; it fails only without the system call.
    let filled = rustix::rand::getrandom(&mut bytes[..], flags).unwrap_or(0);
    if filled < bytes.len() {
        let seed = format!("{:?} {}", SystemTime::now(), std::process::id());
        bytes.copy_from_slice(&blake3::hash(seed.as_bytes()).as_bytes()[..16]);
    }
    Nonce::new(format!("{:032x}", u128::from_be_bytes(bytes)))
}
