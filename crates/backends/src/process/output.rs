//! The output of a process: stdout as text up to a limit, and the end of stderr.
//!
//! Both are bounded in memory, and both accept bytes that are not UTF-8.

use super::STDERR_KEPT;

/// Text that arrives in pieces. Bytes that are not UTF-8 become U+FFFD, exactly as if all bytes had
/// arrived at once.
#[derive(Debug, Default)]
pub(super) struct ProcessOutput {
    text: String,
    /// The start of a character whose rest has not arrived: at most 3 bytes.
    unfinished: Vec<u8>,
    invalid: bool,
}

/// The output exceeds the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLarge;

impl ProcessOutput {
    /// Returns the text, and whether it contained invalid UTF-8.
    pub(super) fn finish(mut self) -> (String, bool) {
        if !self.unfinished.is_empty() {
            self.replace();
        }
        (self.text, self.invalid)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.unfinished.is_empty()
    }

    /// Adds a piece if the text stays within `limit` bytes.
    pub(super) fn push(&mut self, piece: &[u8], limit: usize) -> Result<(), TooLarge> {
        let joined;
        let mut rest = if self.unfinished.is_empty() {
            piece
        } else {
            joined = [&std::mem::take(&mut self.unfinished), piece].concat();
            &joined
        };
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.text.push_str(text);
                    return self.check(limit);
                }
                Err(error) => error,
            };
            let (valid, bad) = rest.split_at(error.valid_up_to());
            self.text.push_str(&String::from_utf8_lossy(valid));
            let Some(length) = error.error_len() else {
                // No error length means that the bytes may be the start of a character: wait for
                // the next piece.
                self.unfinished = bad.to_vec();
                return self.check(limit);
            };
            self.replace();
            self.check(limit)?;
            rest = &bad[length..];
        }
    }

    fn check(&self, limit: usize) -> Result<(), TooLarge> {
        if self.text.len() + self.unfinished.len() > limit {
            return Err(TooLarge);
        }
        Ok(())
    }

    fn replace(&mut self) {
        self.text.push(char::REPLACEMENT_CHARACTER);
        self.invalid = true;
    }
}

/// The last bytes of a stream.
#[derive(Debug)]
pub(super) struct OutputTail {
    bytes: Vec<u8>,
    length: usize,
}

impl Default for OutputTail {
    fn default() -> Self {
        Self::of(STDERR_KEPT)
    }
}

impl OutputTail {
    /// Keeps this many bytes.
    pub(super) fn of(length: usize) -> Self {
        Self { bytes: Vec::new(), length }
    }

    /// Returns how many bytes are kept.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        let piece = &piece[piece.len().saturating_sub(self.length)..];
        let surplus = (self.bytes.len() + piece.len()).saturating_sub(self.length);
        self.bytes.drain(..surplus);
        self.bytes.extend_from_slice(piece);
    }

    /// Returns the kept bytes as text without the white space at their end.
    pub(super) fn text(&self) -> String {
        self.whole_text().trim_end().to_owned()
    }

    /// Returns the kept bytes as text, from the first complete character on. A leading `…` marks
    /// that text is missing; the redaction of secrets relies on this mark.
    pub(super) fn whole_text(&self) -> String {
        let is_inner = |byte: &&u8| (**byte & 0b1100_0000) == 0b1000_0000;
        // A full buffer counts as cut, because the number of bytes before it is not kept. One mark
        // too many is harmless; without a needed mark, half a secret would not be recognised.
        if self.bytes.len() < self.length {
            return String::from_utf8_lossy(&self.bytes).into_owned();
        }
        // At most three continuation bytes can follow from a character that was cut.
        let torn = self.bytes.iter().take(3).take_while(is_inner).count();
        format!("…{}", String::from_utf8_lossy(&self.bytes[torn..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_pieces(bytes: &[u8], cuts: &[usize]) -> (String, bool) {
        let mut output = ProcessOutput::default();
        let mut from = 0;
        for cut in cuts.iter().copied().chain([bytes.len()]) {
            output.push(&bytes[from..cut], usize::MAX).unwrap();
            from = cut;
        }
        output.finish()
    }

    #[test]
    fn any_cut_gives_the_text_of_the_whole() {
        let samples: &[&[u8]] = &[
            b"",
            b"plain",
            "a\u{e9}\u{20ac}\u{1f600}z".as_bytes(),
            b"half \xe2\x82",
            b"\xff\xfe\x00binary\x80\x80",
            b"\xf0\x9f\x98then more",
            b"\xed\xa0\x80surrogate \xc0\xaf overlong",
            b"\xe2\xe2\x82\xac",
        ];
        for bytes in samples {
            let expected = String::from_utf8_lossy(bytes).into_owned();
            let invalid = std::str::from_utf8(bytes).is_err();
            for first in 0..=bytes.len() {
                for second in first..=bytes.len() {
                    let found = in_pieces(bytes, &[first, second]);
                    assert_eq!(found, (expected.clone(), invalid), "{bytes:?} {first} {second}");
                }
            }
            let every: Vec<_> = (0..bytes.len()).collect();
            assert_eq!(in_pieces(bytes, &every), (expected, invalid));
        }
    }

    #[test]
    fn limit_counts_the_kept_text() {
        let check = |pieces: &[&[u8]], limit, expected: &[Result<(), TooLarge>]| {
            let mut output = ProcessOutput::default();
            let found: Vec<_> = pieces.iter().map(|p| output.push(p, limit)).collect();
            assert_eq!(found, expected);
        };
        check(&[b"1234", b"5678"], 8, &[Ok(()), Ok(())]);
        check(&[b"1234", b"56789"], 8, &[Ok(()), Err(TooLarge)]);
        check(&[b"\xff\xff"], 5, &[Err(TooLarge)]);
    }

    #[test]
    fn the_tail_is_the_end_in_whole_characters() {
        let check = |pieces: &[&str], expected: &str| {
            let mut tail = OutputTail::default();
            for piece in pieces {
                tail.push(piece.as_bytes());
            }
            assert_eq!(tail.text(), expected);
        };
        check(&[], "");
        check(&["one\n", "two\n"], "one\ntwo");
        check(&[&"x".repeat(5000), "end"], &format!("…{}end", "x".repeat(2045)));
        check(&[&"\u{20ac}".repeat(1000)], &format!("…{}", "\u{20ac}".repeat(682)));
    }
}
