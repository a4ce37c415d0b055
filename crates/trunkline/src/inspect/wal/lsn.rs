//! Parses positions in the log as PostgreSQL prints them: `0/1A3F0C8`.

use trunkline_format::Lsn;

/// Parses an LSN.
pub(super) fn parse_lsn(text: &str) -> Result<Lsn, &'static str> {
    let half = |digits: &str| {
        let is_valid =
            (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_valid.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
    };
    let parts = text.split_once('/').and_then(|(high, low)| Some((half(high)?, half(low)?)));
    let (high, low) = parts.ok_or("expected two hexadecimal numbers, such as 0/1A3F0C8")?;
    Ok(Lsn(high << 32 | low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_parsed_as_the_server_prints_them() {
        assert_eq!(parse_lsn("0/1A3F0C8"), Ok(Lsn(0x01A3_F0C8)));
        assert_eq!(parse_lsn("16/B374D848"), Ok(Lsn(0x16_B374_D848)));
        assert_eq!(parse_lsn("ffffffff/00000000"), Ok(Lsn(0xFFFF_FFFF_0000_0000)));
        for text in ["", "0", "/", "0/", "/1", "0/123456789", "0/-1", "0/+1", "g/0", "0/1/2"] {
            assert!(parse_lsn(text).is_err(), "{text}");
        }
    }
}
