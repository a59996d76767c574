//! Builds archives whose fields may be false, but agree with each other.

use raymond_testkit::dice::Dice;

/// An archive, and what is in it.
pub(super) struct Built {
    pub(super) bytes: Vec<u8>,
    pub(super) entries: Vec<(String, Vec<u8>)>,
}

const NAMES: [&str; 22] = [
    "START.md",
    "1_START.sh",
    "start.MD",
    "A.md",
    "README.md",
    "notes.txt",
    "flow/START.md",
    "flow/A.md",
    "flow/",
    "flow/a/B.md",
    "../START.md",
    "/etc/START.md",
    "C:/START.md",
    "a\\b.md",
    "./START.md",
    "flow//A.md",
    "..",
    "",
    "nul\0.md",
    "tab\t.md",
    "\u{212a}.md",
    "k.md",
];

/// The fields of an entry that both of its headers contain.
struct Entry {
    name: String,
    content: Vec<u8>,
    flags: u16,
    method: u16,
    sum: u32,
    size: u32,
    mode: u32,
}

pub(super) fn archive(dice: &mut Dice) -> Built {
    // Rarely around the limit of 10,000 entries, because such an archive takes long to build.
    let number = if dice.below(500) == 0 { dice.below(12_000) } else { dice.below(4) };
    let entries: Vec<Entry> = (0..number).map(|index| entry(dice, index)).collect();
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for entry in &entries {
        let offset = length(&bytes);
        bytes.extend(b"PK\x03\x04\x14\0");
        entry.describe(&mut bytes);
        bytes.extend(0_u16.to_le_bytes());
        bytes.extend(entry.name.as_bytes());
        bytes.extend(&entry.content);
        // Made by Unix, version 2.0; needed version 2.0.
        directory.extend(b"PK\x01\x02\x14\x03\x14\0");
        entry.describe(&mut directory);
        directory.extend([0; 8]);
        directory.extend((entry.mode << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(entry.name.as_bytes());
    }
    let start = length(&bytes);
    bytes.extend(&directory);
    let count = u16::try_from(entries.len()).unwrap_or(u16::MAX).to_le_bytes();
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count, count].concat());
    bytes.extend([length(&directory), start].map(u32::to_le_bytes).concat());
    bytes.extend([0, 0]);
    let entries = entries.into_iter().map(|entry| (entry.name, entry.content)).collect();
    Built { bytes, entries }
}

fn entry(dice: &mut Dice, index: u64) -> Entry {
    let name = match dice.below(8) {
        0 | 1 => (*dice.pick(&NAMES)).to_owned(),
        2 => format!("flow/{index}.md"),
        3 if dice.percent(10) => "n".repeat(300) + ".md",
        _ => format!("STATE{index}.md"),
    };
    let content =
        if dice.percent(50) { name.clone().into_bytes() } else { vec![b'x'; dice.index(40)] };
    // Mostly honest: one false field makes the reader refuse the whole archive.
    let honest = !dice.percent(3);
    Entry {
        sum: if honest { sum(&content) } else { 1 },
        size: if dice.percent(3) { u32::MAX - 1 } else { length(&content) },
        // 0x800 marks names in UTF-8, 1 an encrypted entry, 8 sizes that follow the content.
        flags: *dice.pick(&[0, 0, 0, 0, 0, 0, 0, 0x800, 1, 8]),
        // 0 is stored, 8 deflated, 12 bzip2, 99 encrypted. The content here is always stored, so
        // any other method is false.
        method: *dice.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 8, 12, 99]),
        // Files, but also a link, a directory and a pipe.
        mode: *dice.pick(&[0o100_644, 0o100_755, 0o100_644, 0, 0o120_777, 0o040_755, 0o010_644]),
        name,
        content,
    }
}

impl Entry {
    /// Appends the fields that both headers have in the same order: from the flags to the length
    /// of the name, without an extra field.
    fn describe(&self, bytes: &mut Vec<u8>) {
        // 0 and 0x21 are midnight of 1980-01-01, the first date that the format has.
        bytes.extend([self.flags, self.method, 0, 0x21].map(u16::to_le_bytes).concat());
        bytes.extend([self.sum, length(&self.content), self.size].map(u32::to_le_bytes).concat());
        let name = u16::try_from(self.name.len()).unwrap_or(u16::MAX);
        bytes.extend(name.to_le_bytes());
    }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// CRC-32, as zip wants it.
fn sum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 }
        })
    })
}
