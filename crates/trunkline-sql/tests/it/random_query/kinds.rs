//! **Kinds**: the types that random expressions have, with literals of each. An example is
//! `Kind::Date.literals()`, which has a leap day and infinity.

/// A type that a random expression can have. All kinds can be compared with `=` and `<`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int2,
    Int4,
    Int8,
    Numeric,
    Float4,
    Float8,
    Text,
    Varchar,
    Char,
    Bytea,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Inet,
    Jsonb,
    IntArray,
    TextArray,
}

impl Kind {
    /// Every kind once.
    pub(super) const ALL: [Self; 21] = [
        Self::Bool,
        Self::Int2,
        Self::Int4,
        Self::Int8,
        Self::Numeric,
        Self::Float4,
        Self::Float8,
        Self::Text,
        Self::Varchar,
        Self::Char,
        Self::Bytea,
        Self::Date,
        Self::Time,
        Self::Timestamp,
        Self::Timestamptz,
        Self::Interval,
        Self::Uuid,
        Self::Inet,
        Self::Jsonb,
        Self::IntArray,
        Self::TextArray,
    ];

    /// The type's name, as `format_type` returns it without a modifier.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bool => "boolean",
            Self::Int2 => "smallint",
            Self::Int4 => "integer",
            Self::Int8 => "bigint",
            Self::Numeric => "numeric",
            Self::Float4 => "real",
            Self::Float8 => "double precision",
            Self::Text => "text",
            Self::Varchar => "character varying",
            Self::Char => "character",
            Self::Bytea => "bytea",
            Self::Date => "date",
            Self::Time => "time without time zone",
            Self::Timestamp => "timestamp without time zone",
            Self::Timestamptz => "timestamp with time zone",
            Self::Interval => "interval",
            Self::Uuid => "uuid",
            Self::Inet => "inet",
            Self::Jsonb => "jsonb",
            Self::IntArray => "integer[]",
            Self::TextArray => "text[]",
        }
    }

    /// The kind with this name, whatever its modifier is: `numeric(8,2)` is a numeric.
    pub(super) fn with_name(name: &str) -> Option<Self> {
        let plain = match (name.split_once('('), name.split_once(')')) {
            (Some((before, _)), Some((_, after))) => format!("{before}{after}"),
            _ => name.to_owned(),
        };
        Self::ALL.into_iter().find(|kind| kind.name() == plain)
    }

    /// The type to cast to. A bare `character` would be cut after one letter.
    pub(super) fn cast(self) -> &'static str {
        if self == Self::Char { "character(5)" } else { self.name() }
    }

    /// Do equal values also look equal? If not, as with 1.0 and 1.00 or 0 and -0, the result of a
    /// group, a DISTINCT or a minimum depends on the order of the rows.
    pub(super) fn is_exact(self) -> bool {
        use Kind::{Char, Float4, Float8, Interval, Jsonb, Numeric};
        !matches!(self, Numeric | Float4 | Float8 | Char | Interval | Jsonb)
    }

    pub(super) fn is_integer(self) -> bool {
        matches!(self, Self::Int2 | Self::Int4 | Self::Int8)
    }

    /// Do the types have `=` and `<` in common without a cast?
    pub(super) fn compares_with(self, other: Self) -> bool {
        let is_number = |kind: Self| kind.is_integer() || kind == Self::Numeric;
        let is_day = |kind| matches!(kind, Self::Date | Self::Timestamp | Self::Timestamptz);
        self == other
            || is_number(self) && is_number(other)
            || is_day(self) && is_day(other)
            || matches!((self, other), (Self::Text, Self::Varchar) | (Self::Varchar, Self::Text))
    }

    /// Texts of values. Each of them is valid for the type.
    pub(super) fn literals(self) -> &'static [&'static str] {
        match self {
            Self::Bool => &["true", "false", "t", "off"],
            Self::Int2 => &["0", "1", "-1", "7", "32767", "-32768", "100"],
            Self::Int4 => &["0", "1", "2", "-1", "3", "10", "42", "1000", "-77", "2147483647"],
            Self::Int8 => &["0", "1", "-5", "100", "5000000000", "-9223372036854775808"],
            Self::Numeric => {
                &["0", "1", "1.0", "-0.50", "2.345", "1e10", "99999999999999999999.5", "NaN"]
            }
            Self::Float4 => &["0", "1.5", "-2.25", "1e10", "NaN", "Infinity"],
            Self::Float8 => &["0", "0.1", "-2.5", "1e100", "1e-300", "NaN", "-Infinity"],
            Self::Text | Self::Varchar => {
                &["", "a", "abc", "Berlin", " x ", "ä", "100%", "a_b", "O''Neil", "zz", "日本"]
            }
            Self::Char => &["", "a", "abc", "x ", "é"],
            Self::Bytea => &["\\x", "\\x00ff", "\\x61", "abc"],
            Self::Date => &[
                "2024-02-29",
                "2000-01-01",
                "1969-12-31",
                "2023-06-15",
                "infinity",
                "0044-03-15 BC",
            ],
            Self::Time => &["00:00", "12:34:56.789", "24:00", "23:59:59.999999"],
            Self::Timestamp => {
                &["2024-02-29 12:34:56.5", "2023-01-01", "1970-01-01 00:00", "-infinity"]
            }
            Self::Timestamptz => &[
                "2024-03-31 02:30+01",
                "2020-01-01 00:00+00",
                "1999-12-31 23:59:59-08",
                "infinity",
            ],
            Self::Interval => {
                &["1 day", "1 mon", "-30 days", "00:00:00.000001", "1 year 2 mons", "0"]
            }
            Self::Uuid => {
                &["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]
            }
            Self::Inet => &["10.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32", "255.255.255.255"],
            Self::Jsonb => &["null", "1", "1.50", "\"x\"", "[1, null]", "{\"lang\": \"de\"}", "{}"],
            Self::IntArray => &["{}", "{1,2,3}", "{NULL}", "{{1,2},{3,4}}"],
            Self::TextArray => &["{}", "{a,b}", "{NULL,\"NULL\"}", "{loyal,b2b}"],
        }
    }
}
