//! Reads the program headers of an executable, which show whether it is static.

use anyhow::{Context as _, Result, bail};

/// The header that names the program that loads shared libraries.
const PT_INTERP: u32 = 3;

/// The loader that an executable of 64 bits needs; a static one needs none.
pub(super) fn loader(bytes: &[u8]) -> Result<Option<String>> {
    // Magic, 64 bits, little endian.
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        bail!("not a 64-bit executable for Linux");
    }
    // The offsets of the 64-bit ELF header: `e_phoff`, `e_phentsize` and `e_phnum`.
    let table = number(bytes, 0x20, 8)?;
    let (size, count) = (number(bytes, 0x36, 2)?, number(bytes, 0x38, 2)?);
    for index in 0..count {
        let header = table + index * size;
        if number(bytes, header, 4)? == PT_INTERP as usize {
            // `p_offset` and `p_filesz` of the program header.
            let (start, length) = (number(bytes, header + 8, 8)?, number(bytes, header + 32, 8)?);
            let name = bytes
                .get(start..start + length)
                .context("the name of its loader is outside of the file")?;
            let name = String::from_utf8_lossy(name);
            return Ok(Some(name.trim_end_matches('\0').to_owned()));
        }
    }
    Ok(None)
}

/// The little-endian number of this many bytes.
fn number(bytes: &[u8], at: usize, width: usize) -> Result<usize> {
    let bytes = bytes.get(at..at + width).context("the executable is truncated")?;
    Ok(bytes.iter().rev().fold(0, |number, byte| (number << 8) | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An executable with one program header of this type, and a text behind it.
    fn executable(kind: u8, text: &str) -> Vec<u8> {
        let mut bytes = vec![0; 0x40 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[0x20], bytes[0x36], bytes[0x38]) = (0x40, 56, 1);
        (bytes[0x40], bytes[0x48]) = (kind, 0x40 + 56);
        bytes[0x60] = u8::try_from(text.len()).unwrap();
        bytes.extend(text.as_bytes());
        bytes
    }

    #[test]
    fn a_static_executable_names_no_loader() {
        let check = |bytes: &[u8], expected: Option<&str>| {
            assert_eq!(loader(bytes).unwrap().as_deref(), expected);
        };
        check(&executable(1, "/lib/ld.so\0"), None);
        check(&executable(3, "/lib/ld.so\0"), Some("/lib/ld.so"));
        loader(&executable(3, "/lib/ld.so\0")[..0x60]).unwrap_err();
        loader(b"#!/bin/sh").unwrap_err();
    }

    #[test]
    fn this_test_is_read_without_a_fault() {
        loader(&std::fs::read(std::env::current_exe().unwrap()).unwrap()).unwrap();
    }
}
