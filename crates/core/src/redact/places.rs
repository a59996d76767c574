//! Finds secrets by their context: in a header, in an address, between the lines of a private key,
//! or as the three parts of a web token.

use super::shapes::{is_credentials, is_token, is_word, mixed};
use crate::redact::finding::{FindingEnd, FindingTail, Look};

/// Bytes that are searched for the end of a web token's first part, or of an address. A stream
/// never holds back more text than this.
const FAR: usize = 4096;

/// Finds a secret at this place, after the byte `before`.
pub(super) fn place(before: Option<u8>, rest: &[u8], end: FindingEnd) -> Look {
    match rest[0] {
        b'-' => key(rest),
        b':' if before.is_some_and(is_word) => address(rest, end),
        b'B' | b'b' if !before.is_some_and(is_word) => bearer(rest),
        b'e' if !before.is_some_and(is_token) => web_token(rest),
        _ => Look::Nothing,
    }
}

/// Finds `Bearer <token>`. The word itself stays visible.
fn bearer(rest: &[u8]) -> Look {
    const WORD: &[u8] = b"bearer";
    const LEAST: usize = 12;
    // Digits or capitals, so that prose such as `bearer certificates` stays visible.
    const MIXED: usize = 2;
    let known = rest.len().min(WORD.len());
    if !rest[..known].eq_ignore_ascii_case(&WORD[..known]) {
        return Look::Nothing;
    }
    let spaces = rest[known..].iter().take_while(|byte| **byte == b' ').take(FAR).count();
    let start = known + spaces;
    if start == rest.len() {
        return Look::Undecided;
    }
    let behind = &rest[start..];
    let length = behind.iter().take(LEAST).take_while(|byte| is_credentials(**byte)).count();
    if spaces == 0 || length < LEAST.min(behind.len()) {
        Look::Nothing
    } else if length < LEAST {
        Look::Undecided
    } else if mixed(&behind[..length]) < MIXED {
        Look::Nothing
    } else {
        Look::Secret(start..start + length, FindingTail::Credentials)
    }
}

/// Finds a web token `eyJ….….…` by its first two parts.
fn web_token(rest: &[u8]) -> Look {
    // Base64 of `{"`, with which the JSON header of every web token begins.
    const START: &[u8] = b"eyJ";
    const LEAST: usize = 8;
    if !rest.starts_with(START) {
        return if START.starts_with(rest) { Look::Undecided } else { Look::Nothing };
    }
    let part = |bytes: &[u8], most: usize| {
        bytes.iter().take(most).take_while(|byte| is_token(**byte)).count()
    };
    let first = part(rest, FAR);
    match rest.get(first) {
        None => return Look::Undecided,
        Some(b'.') if first >= START.len() + LEAST => {}
        Some(_) => return Look::Nothing,
    }
    let behind = &rest[first + 1..];
    let second = part(behind, LEAST);
    if second == LEAST {
        // The bytes of credentials include all bytes of the three parts.
        Look::Secret(0..START.len(), FindingTail::Credentials)
    } else if second == behind.len() {
        Look::Undecided
    } else {
        Look::Nothing
    }
}

/// Finds the password in `://user:password@host`. User and host stay visible.
fn address(rest: &[u8], end: FindingEnd) -> Look {
    const START: &[u8] = b"://";
    if !rest.starts_with(START) {
        return if START.starts_with(rest) { Look::Undecided } else { Look::Nothing };
    }
    let behind = &rest[START.len()..];
    let ends = |byte: &u8| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\')
    };
    let near = &behind[..behind.len().min(FAR)];
    let authority = match (near.iter().position(ends), end) {
        (Some(length), _) => &near[..length],
        // No real address is this long, and a stream must not hold back more text.
        (None, _) if near.len() == FAR => return Look::Nothing,
        (None, FindingEnd::Later) => return Look::Undecided,
        (None, FindingEnd::Here) => near,
    };
    match password(authority) {
        Some((from, to)) => Look::Secret(START.len() + from..START.len() + to, FindingTail::None),
        None => Look::Nothing,
    }
}

/// Returns the range of the password.
fn password(authority: &[u8]) -> Option<(usize, usize)> {
    // The last `@` and the first `:`, because a password may contain both.
    let at = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority[..at].iter().position(|byte| *byte == b':')?;
    Some((colon + 1, at))
}

/// Finds the first or the last line of a private key.
fn key(rest: &[u8]) -> Look {
    const FIRST: &[u8] = b"-----BEGIN ";
    const LAST: &[u8] = b"-----END ";
    if let Some(behind) = rest.strip_prefix(FIRST) {
        label(behind, |length| Look::Secret(0..FIRST.len() + length, FindingTail::Key))
    } else if let Some(behind) = rest.strip_prefix(LAST) {
        label(behind, |length| Look::KeyEnds(LAST.len() + length))
    } else if FIRST.starts_with(rest) || LAST.starts_with(rest) {
        Look::Undecided
    } else {
        Look::Nothing
    }
}

/// Finds the label of a key, such as `RSA PRIVATE KEY-----`.
fn label(rest: &[u8], found: impl FnOnce(usize) -> Look) -> Look {
    // Bytes, far above labels such as `OPENSSH PRIVATE KEY`: it bounds what a stream holds back.
    const LONGEST: usize = 64;
    const DASHES: &[u8] = b"-----";
    let is_label =
        |byte: &&u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || **byte == b' ';
    let length = rest.iter().take(LONGEST).take_while(is_label).count();
    let (label, behind) = rest.split_at(length);
    if length == LONGEST {
        return Look::Nothing;
    }
    if behind.len() < DASHES.len() && DASHES.starts_with(behind) {
        return Look::Undecided;
    }
    // PGP adds `BLOCK`. Public keys and certificates have the same form and are not secret.
    let is_private = label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK");
    if is_private && behind.starts_with(DASHES) {
        found(length + DASHES.len())
    } else {
        Look::Nothing
    }
}
