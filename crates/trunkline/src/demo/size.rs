//! Sizes as people write them on a command line: `512MB`, `1GB`, with PostgreSQL's units, whose
//! thousand is 1024.

use std::str::FromStr;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(u64);

impl Size {
    pub(crate) fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let shift = match unit.trim() {
            "" | "B" => 0,
            "kB" => 10,
            "MB" => 20,
            "GB" => 30,
            "TB" => 40,
            _ => return Err("valid units are B, kB, MB, GB and TB".into()),
        };
        let number: u64 = number.parse().map_err(|_| "not a whole number with a unit")?;
        number.checked_mul(1 << shift).map(Size).ok_or_else(|| "too large".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("1GB", Some(1 << 30)),
            ("512 MB", Some(512 << 20)),
            ("0", Some(0)),
            ("1 gb", None),
            ("-1GB", None),
            ("GB", None),
            ("99999999999999TB", None),
        ] {
            assert_eq!(text.parse::<Size>().ok().map(Size::bytes), expected, "{text}");
        }
    }
}
