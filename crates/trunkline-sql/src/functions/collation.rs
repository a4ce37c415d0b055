//! Collations: which of them we can compare and change letters with.
//!
//! ```
//! use trunkline_sql::functions::{Collation, Provider};
//! let c = Collation::new(Provider::Libc, "C", "C", true);
//! assert!(c.orders_by_bytes());
//! let german = Collation::new(Provider::Libc, "de_DE.UTF-8", "de_DE.UTF-8", true);
//! assert!(!german.orders_by_bytes());
//! ```
//!
//! PostgreSQL takes orders and letters from a provider: the C library, ICU, or its own tables. We
//! have neither of the first two, and their orders change between versions. So we only order by the
//! collations that order by bytes. Equality is always bytewise, unless the collation is
//! nondeterministic. ASCII letters are the same in all locales but Turkish and Azerbaijani ones, so
//! functions such as `lower` work under other collations as long as a text is ASCII.

use std::collections::BTreeMap;

use trunkline_format::Oid;

/// `pg_collation.collprovider`, and `pg_database.datlocprovider`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// `b`: PostgreSQL itself.
    Builtin,
    /// `c`: the C library.
    Libc,
    /// `i`: ICU.
    Icu,
}

impl Provider {
    /// Decodes the letter in a catalog; `None` for `d`, which means the database's own provider, and
    /// for any other byte.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            b'b' => Some(Self::Builtin),
            b'c' => Some(Self::Libc),
            b'i' => Some(Self::Icu),
            _ => None,
        }
    }
}

/// Which characters are letters, and which letter is the upper case of which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// Only ASCII letters, as in the locale C.
    Ascii,
    /// Unicode's simple case mapping, which maps a character to a character.
    Simple,
    /// Unicode's simple case mapping, in an unknown version.
    LibcKnown,
    /// ASCII letters as in C. We don't know about others.
    AsciiKnown,
    /// We don't even know about ASCII letters: the upper case of `i` may have a dot.
    Unknown,
}

/// What we know about a collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collation {
    orders_by_bytes: bool,
    is_deterministic: bool,
    letters: Letters,
}

impl Collation {
    /// The collation `C`.
    pub const C: Self =
        Self { orders_by_bytes: true, is_deterministic: true, letters: Letters::Ascii };

    /// Classifies a row of `pg_collation` or `pg_database`. For the C library, `collate` and `ctype`
    /// are the columns with these names. For other providers, both are the locale.
    pub fn new(provider: Provider, collate: &str, ctype: &str, is_deterministic: bool) -> Self {
        // The C library's C.UTF-8 orders by code point, which is the order of UTF-8's bytes.
        let is_c = |name: &str| matches!(name, "C" | "POSIX");
        let is_c_utf8 = |name: &str| matches!(name, "C.UTF-8" | "C.utf8");
        let orders_by_bytes = match provider {
            Provider::Builtin => true,
            Provider::Libc => is_c(collate) || is_c_utf8(collate),
            Provider::Icu => false,
        };
        let letters = match provider {
            Provider::Builtin | Provider::Libc if is_c(ctype) => Letters::Ascii,
            Provider::Builtin if is_c_utf8(ctype) => Letters::Simple,
            _ => match ctype.get(..2) {
                Some("tr" | "az" | "lt") => Letters::Unknown,
                _ if provider == Provider::Libc => Letters::LibcKnown,
                _ => Letters::AsciiKnown,
            },
        };
        Self { orders_by_bytes, is_deterministic, letters }
    }

    /// The same collation in a database with an encoding in which the order of bytes is not that of
    /// UTF-8, which our texts have.
    #[must_use]
    pub fn in_other_order(self) -> Self {
        Self { orders_by_bytes: false, ..self }
    }

    /// Whether texts are ordered as their bytes are.
    pub fn orders_by_bytes(self) -> bool {
        self.orders_by_bytes
    }

    /// Whether texts are equal only if their bytes are.
    pub fn is_deterministic(self) -> bool {
        self.is_deterministic
    }

    /// Which characters are letters.
    pub fn letters(self) -> Letters {
        self.letters
    }
}

/// The collations of a database by their OIDs. That of `default` (100) describes the database's own
/// locale.
pub type Collations = BTreeMap<Oid, Collation>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collations_are_classified_by_provider_and_locale() {
        let cases = [
            (Provider::Libc, "POSIX", true, Letters::Ascii),
            (Provider::Libc, "C.utf8", true, Letters::LibcKnown),
            (Provider::Libc, "en_US.UTF-8", false, Letters::LibcKnown),
            (Provider::Libc, "tr_TR.UTF-8", false, Letters::Unknown),
            (Provider::Icu, "und", false, Letters::AsciiKnown),
            (Provider::Icu, "tr-TR", false, Letters::Unknown),
            (Provider::Builtin, "C", true, Letters::Ascii),
            (Provider::Builtin, "C.UTF-8", true, Letters::Simple),
            (Provider::Builtin, "PG_UNICODE_FAST", true, Letters::AsciiKnown),
        ];
        for (provider, locale, by_bytes, letters) in cases {
            let found = Collation::new(provider, locale, locale, true);
            let expected = (by_bytes, letters);
            assert_eq!((found.orders_by_bytes(), found.letters()), expected, "{locale}");
        }
    }
}
