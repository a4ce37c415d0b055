//! Quoting of identifiers, and of the parts of arrays, composites and ranges.
//!
//! An identifier must be quoted if it contains upper-case letters or special characters, or if it
//! is a keyword. An element of an array, composite or range must be quoted if it contains a
//! delimiter, or if it would otherwise be read back as something else.

/// The keywords that must be quoted when they are used as identifiers, with the version that added
/// each of them. Keywords that were added before PostgreSQL 15 are listed under 15.
const KEYWORDS: [(u32, &str); 3] = [
    (
        15,
        "all analyse analyze and any array as asc asymmetric authorization between bigint binary \
          bit boolean both case cast char character check coalesce collate collation column \
          concurrently constraint create cross current_catalog current_date current_role \
          current_schema current_time current_timestamp current_user dec decimal default \
          deferrable desc distinct do else end except exists extract false fetch float for foreign \
          freeze from full grant greatest group grouping having ilike in initially inner inout int \
          integer intersect interval into is isnull join lateral leading least left like limit \
          localtime localtimestamp national natural nchar none normalize not notnull null nullif \
          numeric offset on only or order out outer overlaps overlay placing position precision \
          primary real references returning right row select session_user setof similar smallint \
          some substring symmetric table tablesample then time timestamp to trailing treat trim \
          true union unique user using values varchar variadic verbose when where window with \
          xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi \
          xmlroot xmlserialize xmltable",
    ),
    (16, "json_array json_arrayagg json_object json_objectagg system_user"),
    (
        17,
        "json json_exists json_query json_scalar json_serialize json_table json_value \
          merge_action",
    ),
];

fn is_keyword(name: &[u8], major: u32) -> bool {
    let known = KEYWORDS.iter().filter(|(since, _)| major >= *since);
    known.flat_map(|(_, words)| words.split(' ')).any(|word| word.as_bytes() == name)
}

/// Appends an identifier to `out`, quoted if version `major` requires it, as `quote_identifier` does.
///
/// ```
/// let mut out = Vec::new();
/// trunkline_format::text_output::write_identifier(b"Order", 18, &mut out);
/// assert_eq!(out, b"\"Order\"");
/// ```
pub fn write_identifier(name: &[u8], major: u32, out: &mut Vec<u8>) {
    let starts = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
    let plain = name.first().is_some_and(starts)
        && name.iter().all(|byte| starts(byte) || byte.is_ascii_digit());
    if plain && !is_keyword(name, major) {
        return out.extend_from_slice(name);
    }
    in_quotes(name, out);
}

/// A name in double quotes. Quotes within the name are doubled.
pub(super) fn in_quotes(name: &[u8], out: &mut Vec<u8>) {
    doubled(name, b'"', b"\"", out);
}

/// A text between two `quote`s, with the `special` bytes within it doubled.
pub(super) fn doubled(text: &[u8], quote: u8, special: &[u8], out: &mut Vec<u8>) {
    out.push(quote);
    for &byte in text {
        if special.contains(&byte) {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(quote);
}

/// White space, as the server's array and composite parsers define it.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}

/// The kind of value that contains the part. Each kind has its own quoting rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// An array with this delimiter.
    Array(u8),
    /// A composite.
    Composite,
    /// A range.
    Range,
}

impl Within {
    fn is_special(self, byte: u8) -> bool {
        let special = is_space(byte) || matches!(byte, b'"' | b'\\');
        special
            || match self {
                Self::Array(delimiter) => byte == delimiter || matches!(byte, b'{' | b'}'),
                Self::Composite => matches!(byte, b'(' | b')' | b','),
                Self::Range => matches!(byte, b'(' | b')' | b'[' | b']' | b','),
            }
    }

    /// Quotes the text written to `out` since `start`, if necessary.
    pub(super) fn quote(self, start: usize, out: &mut Vec<u8>) {
        let part = out.get(start..).unwrap_or_default();
        let is_null = matches!(self, Self::Array(_)) && part.eq_ignore_ascii_case(b"null");
        if !part.is_empty() && !is_null && !part.iter().any(|&byte| self.is_special(byte)) {
            return;
        }
        let part = out.split_off(start);
        out.reserve(part.len() + 2);
        out.push(b'"');
        for byte in part {
            match (byte, self) {
                (b'"' | b'\\', Self::Array(_)) => out.push(b'\\'),
                (b'"' | b'\\', _) => out.push(byte),
                _ => {}
            }
            out.push(byte);
        }
        out.push(b'"');
    }
}
