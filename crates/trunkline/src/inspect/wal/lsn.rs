//! Parses positions in the log as PostgreSQL prints them: `0/1A3F0C8`.

use trunkline_format::Lsn;

/// Parses an LSN.
pub(super) fn parse_lsn(text: &str) -> Result<Lsn, &'static str> {
    Lsn::parse(text).ok_or("expected two hexadecimal numbers, such as 0/1A3F0C8")
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
