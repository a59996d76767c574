//! Text that may be large: inline if it is small, otherwise a reference to a blob.
//!
//! Core never holds megabytes. The process that observes a text larger than [`INLINE_MAX`] stores
//! it first and passes the reference. A blob is durable before a record names it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Largest text inside events, in bytes, so that journal lines stay short.
pub const INLINE_MAX: usize = 16 * 1024;

/// A text, or a reference to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
// Unambiguous without a tag: one variant is a JSON string, the other an object.
#[serde(untagged)]
pub enum Value {
    /// The text itself, at most [`INLINE_MAX`] bytes.
    Inline(String),
    Blob(BlobRef),
}

/// A reference to a stored blob by its content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlobRef {
    /// BLAKE3 of the content, in hexadecimal.
    #[serde(rename = "blob")]
    pub hash: Hash,
    pub length: u64,
}

/// A BLAKE3 hash, printed as 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hash(String);

impl Hash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }

    /// Wraps a hash that was computed elsewhere.
    pub fn known(digits: String) -> Self {
        Self(digits)
    }

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
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(text) => text.len() as u64,
            Self::Blob(blob) => blob.length,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value for `text`. A text that is too large is stored through `store`.
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
        // Texts that clients and scripts wrote go through `keep`, which stores large ones.
        debug_assert!(text.len() <= INLINE_MAX);
        Self::Inline(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_prints_its_digits() {
        let digits = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        let hash = Hash::of(b"");
        assert_eq!((hash.as_str(), hash.to_string().as_str()), (digits, digits));
        assert_eq!(format!("{hash:?}"), "af1349b9");
        assert_eq!(Hash::known(digits.to_owned()), hash);
    }

    #[test]
    fn value_length_is_its_texts_length() {
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
