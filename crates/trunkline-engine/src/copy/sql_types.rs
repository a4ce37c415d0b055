//! Names and types in SQL. Names are bytes in the encoding of the database.

use trunkline_format::Oid;
use trunkline_format::catalog::type_with_modifier;

/// `PG_CATALOG_NAMESPACE`: the schema of the built-in types.
pub(super) const PG_CATALOG: Oid = Oid(11);

/// Appends a name in double quotes.
pub(super) fn identifier(name: &[u8], out: &mut Vec<u8>) {
    quote(name, b'"', out);
}

/// Appends a string constant, for `standard_conforming_strings`.
pub(super) fn literal(text: &[u8], out: &mut Vec<u8>) {
    quote(text, b'\'', out);
}

fn quote(text: &[u8], quote: u8, out: &mut Vec<u8>) {
    out.push(quote);
    for &byte in text {
        if byte == quote {
            out.push(quote);
        }
        out.push(byte);
    }
    out.push(quote);
}

/// Whether a server can read all values of a built-in type that it has printed, even if it has no
/// other objects.
pub(super) fn is_loadable(oid: Oid) -> bool {
    !matches!(
        oid.0,
        // Values that are names of objects: regproc, regprocedure, regoper, regoperator, regclass,
        // regtype, regrole, regnamespace, regconfig, regdictionary, regcollation, regdatabase,
        // aclitem.
        24 | 2202
            ..=2206 | 4096 | 4089 | 3734 | 3769 | 4191 | 8326 | 1033
        // Types without an input function: pg_node_tree, pg_ndistinct, pg_dependencies,
        // pg_mcv_list, pg_brin_bloom_summary, pg_brin_minmax_multi_summary, gtsvector.
        | 194 | 3361 | 3402 | 5017 | 4600 | 4601 | 3642
    )
}

/// A type in `pg_catalog` with its modifier, such as a length. Plain names are easier to read in a
/// script than qualified ones, and mean the same with its `search_path`.
pub(super) fn built_in_type(oid: Oid, name: &[u8], modifier: i32) -> Vec<u8> {
    match name {
        _ if let Some(name) = type_with_modifier(oid, modifier) => name.into_bytes(),
        // Without quotes, these two would mean a length of 1.
        b"char" | b"bit" => [b"\"", name, b"\""].concat(),
        _ => name.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_spelled_as_in_format_type() {
        for (oid, name, modifier, expected) in [
            (1043, "varchar", 24, "character varying(20)"),
            (1042, "bpchar", 5, "character(1)"),
            (1042, "bpchar", -1, "bpchar"),
            (18, "char", -1, "\"char\""),
            (1560, "bit", -1, "\"bit\""),
            (1560, "bit", 3, "bit(3)"),
            (1700, "numeric", (10 << 16 | 2) + 4, "numeric(10,2)"),
            (1700, "numeric", (3 << 16 | (-2 & 0x7FF)) + 4, "numeric(3,-2)"),
            (1186, "interval", 0x7FFF << 16 | 3, "interval(3)"),
            (1186, "interval", 0x1C00 << 16 | 2, "interval hour to second(2)"),
            (1186, "interval", 6 << 16 | 0xFFFF, "interval year to month"),
            (1184, "timestamptz", 0, "timestamp(0) with time zone"),
            (23, "int4", -1, "int4"),
        ] {
            let found = built_in_type(Oid(oid), name.as_bytes(), modifier);
            assert_eq!(String::from_utf8_lossy(&found), expected);
        }
    }

    #[test]
    fn quotes_within_names_are_doubled() {
        let mut out = Vec::new();
        identifier(b"a\"b", &mut out);
        literal(b"it's", &mut out);
        assert_eq!(out, b"\"a\"\"b\"'it''s'");
    }
}
