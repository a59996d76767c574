//! Text that may be large: inline when small, otherwise a reference to a blob.
//!
//! Core never holds megabytes. An edge that observes a text stores it first when it is larger than
//! [`INLINE_MAX`], and hands over the reference; a blob is durable before a record names it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The largest text that travels inside events.
pub const INLINE_MAX: usize = 16 * 1024;

/// A piece of text, or where to find it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// The text itself, at most [`INLINE_MAX`] bytes.
    Inline(String),
    /// A stored text.
    Blob(BlobRef),
}

/// Names a stored blob by its content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlobRef {
    /// BLAKE3 of the content, in hexadecimal.
    #[serde(rename = "blob")]
    pub hash: Hash,
    /// How many bytes it has.
    pub length: u64,
}

/// BLAKE3 of some bytes; prints as 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hash(String);

impl Hash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }

    /// A hash that was worked out elsewhere.
    pub fn known(digits: String) -> Self {
        Self(digits)
    }

    /// The hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0[..self.0.len().min(8)])
    }
}

impl Value {
    /// How many bytes the text has.
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(text) => text.len() as u64,
            Self::Blob(blob) => blob.length,
        }
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value for `text`, which is stored through `store` when it is too large to travel.
    pub fn keep<E>(text: &str, store: &mut dyn FnMut(&[u8]) -> Result<Hash, E>) -> Result<Self, E> {
        if text.len() <= INLINE_MAX {
            return Ok(Self::Inline(text.to_owned()));
        }
        let hash = store(text.as_bytes())?;
        Ok(Self::Blob(BlobRef { hash, length: text.len() as u64 }))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        debug_assert!(text.len() <= INLINE_MAX);
        Self::Inline(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_digits_that_others_find_and_is_short_in_debug_texts() {
        let digits = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        let hash = Hash::of(b"");
        assert_eq!((hash.as_str(), hash.to_string().as_str()), (digits, digits));
        assert_eq!(format!("{hash:?}"), "af1349b9");
        assert_eq!(Hash::known(digits.to_owned()), hash);
    }

    #[test]
    fn a_value_is_as_long_as_its_text_wherever_that_is() {
        assert_eq!(INLINE_MAX, 16_384, "journals of all releases share it");
        let check = |text: &str| {
            let blob = BlobRef { hash: Hash::of(text.as_bytes()), length: text.len() as u64 };
            for value in [Value::from(text), Value::Blob(blob)] {
                assert_eq!((value.len(), value.is_empty()), (text.len() as u64, text.is_empty()));
            }
        };
        check("");
        check("ä");
    }
}
