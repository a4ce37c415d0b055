//! Alignment of values in a tuple: the one-letter codes `attalign` and `typalign` in the catalogs.
//!
//! Alignment is relative to the start of the tuple's data, which is always MAXALIGNed (8 bytes).

/// `typalign`: the alignment of a value in a row, array, composite or range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Align {
    /// `c`: 1 byte.
    Char,
    /// `s`: 2 bytes.
    Short,
    /// `i`: 4 bytes.
    Int,
    /// `d`: 8 bytes.
    Double,
}

impl Align {
    /// Decodes the letter in `attalign` or `typalign`; `None` for any other byte.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            b'c' => Some(Self::Char),
            b's' => Some(Self::Short),
            b'i' => Some(Self::Int),
            b'd' => Some(Self::Double),
            _ => None,
        }
    }

    /// The alignment in bytes: 1, 2, 4 or 8.
    pub fn bytes(self) -> usize {
        match self {
            Self::Char => 1,
            Self::Short => 2,
            Self::Int => 4,
            Self::Double => 8,
        }
    }

    /// `att_align_nominal`: rounds `offset` up to this alignment. Saturates at the largest `usize`.
    pub fn up(self, offset: usize) -> usize {
        let mask = self.bytes() - 1;
        offset.saturating_add(mask) & !mask
    }
}

#[cfg(test)]
mod tests {
    use super::Align;

    #[test]
    fn offsets_are_rounded_up_and_unknown_codes_refused() {
        let up = |code| Align::from_code(code).map(|align| align.up(9));
        assert_eq!([b'c', b's', b'i', b'd'].map(up), [Some(9), Some(10), Some(12), Some(16)]);
        assert_eq!(Align::from_code(b'x'), None);
        assert_eq!(Align::Double.up(usize::MAX) % 8, 0);
    }
}
