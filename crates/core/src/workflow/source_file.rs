//! A file of the scope, not parsed yet, and its written form.
//!
//! A run is pinned to the written form, so it must keep every byte and the executable flag. Finding
//! and reading the files is the job of `engine::scope`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A file of the scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenFile", into = "WrittenFile")]
pub struct SourceFile {
    /// The file name, without any folder.
    pub name: String,
    pub bytes: Arc<[u8]>,
    /// Whether the file is executable, so that its own interpreter can run it.
    pub executable: bool,
}

/// A file as JSON. The pinned definition of a run contains this form.
#[derive(Serialize, Deserialize)]
struct WrittenFile {
    name: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    executable: bool,
    #[serde(flatten)]
    content: Content,
}

/// The content of a file. Scripts may contain bytes that are not UTF-8, which JSON cannot store.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Content {
    Text(String),
    Hex(String),
}

impl From<SourceFile> for WrittenFile {
    fn from(SourceFile { name, bytes, executable }: SourceFile) -> Self {
        // A script must run with exactly the bytes that were pinned, so nothing is replaced.
        let content = match str::from_utf8(&bytes) {
            Ok(text) => Content::Text(text.to_owned()),
            Err(_) => Content::Hex(hex(&bytes)),
        };
        Self { name, executable, content }
    }
}

impl TryFrom<WrittenFile> for SourceFile {
    type Error = String;

    fn try_from(WrittenFile { name, executable, content }: WrittenFile) -> Result<Self, String> {
        let bytes = match content {
            Content::Text(text) => text.into_bytes(),
            Content::Hex(digits) => {
                unhex(&digits).ok_or_else(|| format!("{name} is not hexadecimal"))?
            }
        };
        Ok(Self { name, bytes: bytes.into(), executable })
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_their_bytes_as_json() {
        for (bytes, written) in [
            (&b"true"[..], r#"{"name":"A.sh","executable":true,"text":"true"}"#),
            (&[0xff, 0x0a], r#"{"name":"A.sh","executable":true,"hex":"ff0a"}"#),
        ] {
            let file =
                SourceFile { name: "A.sh".to_owned(), bytes: bytes.into(), executable: true };
            assert_eq!(serde_json::to_string(&file).unwrap(), written);
            assert_eq!(serde_json::from_str::<SourceFile>(written).unwrap(), file);
        }
        let broken = serde_json::from_str::<SourceFile>(r#"{"name":"A.sh","hex":"gg"}"#);
        assert_eq!(broken.unwrap_err().to_string(), "A.sh is not hexadecimal");
    }
}
