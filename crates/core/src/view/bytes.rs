//! Sizes, as people read them.

/// `17 bytes`, `812 KiB`, `1.2 MiB`
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1024 {
        return super::counted(n, "byte");
    }
    let mut unit = 0;
    let mut tenths = n.saturating_mul(10) / 1024;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    match (tenths / 10, tenths % 10) {
        (whole @ 0..10, rest @ 1..) => format!("{whole}.{rest} {}", UNITS[unit]),
        (whole, _) => format!("{whole} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_keeps_them_short() {
        let check = |n, expected: &str| assert_eq!(bytes(n), expected);
        check(0, "0 bytes");
        check(1, "1 byte");
        check(1023, "1023 bytes");
        check(1024, "1 KiB");
        check(1536, "1.5 KiB");
        check(812 * 1024, "812 KiB");
        check(1024 * 1024 - 1, "1023 KiB");
        check(5 << 30, "5 GiB");
        check(3000 << 40, "3000 TiB");
        check(u64::MAX, "1677721 TiB");
    }
}
