//! Comparisons that Arrow computes as PostgreSQL does.
//!
//! The planner can only use a comparison for hash joins, for filters in scans and so on if it is an
//! ordinary comparison of columns, not a call of a function that the planner knows nothing about. So
//! we list the functions whose meaning is exactly that of comparing the arrays of their carriers. Text
//! is among them for `=` and `<>`, because equal text has equal bytes in every deterministic
//! collation, and for the others if the collation is bytewise.
//!
//! Not among them are floats (Arrow distinguishes -0 from 0), numeric, interval, timetz, bpchar and all types
//! with components.

use datafusion::logical_expr::Operator;

/// How a comparison compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NativeComparison {
    /// `Eq`, `NotEq`, `Lt`, `LtEq`, `Gt` or `GtEq`.
    pub(crate) operator: Operator,
    /// The operands have different integer types, of which the wider one can hold both.
    pub(crate) widens: bool,
    /// The operands have a collation, which must be deterministic.
    pub(crate) is_text: bool,
}

/// For each type, its functions for `=`, `<>`, `<`, `<=`, `>` and `>=` by their names in C. A type that
/// can't be sorted has only the first two.
const FAMILIES: &[&[&str]] = &[
    &["booleq", "boolne", "boollt", "boolle", "boolgt", "boolge"],
    &["int2eq", "int2ne", "int2lt", "int2le", "int2gt", "int2ge"],
    &["int4eq", "int4ne", "int4lt", "int4le", "int4gt", "int4ge"],
    &["int8eq", "int8ne", "int8lt", "int8le", "int8gt", "int8ge"],
    &["oideq", "oidne", "oidlt", "oidle", "oidgt", "oidge"],
    &["chareq", "charne", "charlt", "charle", "chargt", "charge"],
    &["date_eq", "date_ne", "date_lt", "date_le", "date_gt", "date_ge"],
    &["time_eq", "time_ne", "time_lt", "time_le", "time_gt", "time_ge"],
    &[
        "timestamp_eq",
        "timestamp_ne",
        "timestamp_lt",
        "timestamp_le",
        "timestamp_gt",
        "timestamp_ge",
    ],
    &["cash_eq", "cash_ne", "cash_lt", "cash_le", "cash_gt", "cash_ge"],
    &["uuid_eq", "uuid_ne", "uuid_lt", "uuid_le", "uuid_gt", "uuid_ge"],
    &["byteaeq", "byteane", "bytealt", "byteale", "byteagt", "byteage"],
    &["macaddr_eq", "macaddr_ne", "macaddr_lt", "macaddr_le", "macaddr_gt", "macaddr_ge"],
    &["tideq", "tidne", "tidlt", "tidle", "tidgt", "tidge"],
    &["pg_lsn_eq", "pg_lsn_ne", "pg_lsn_lt", "pg_lsn_le", "pg_lsn_gt", "pg_lsn_ge"],
    &["xid8eq", "xid8ne", "xid8lt", "xid8le", "xid8gt", "xid8ge"],
    &["xideq", "xidneq"],
    &["cideq"],
    &["enum_eq", "enum_ne"],
];

/// The same for integers of different sizes.
const WIDENING: &[&[&str]] = &[
    &["int24eq", "int24ne", "int24lt", "int24le", "int24gt", "int24ge"],
    &["int42eq", "int42ne", "int42lt", "int42le", "int42gt", "int42ge"],
    &["int28eq", "int28ne", "int28lt", "int28le", "int28gt", "int28ge"],
    &["int82eq", "int82ne", "int82lt", "int82le", "int82gt", "int82ge"],
    &["int48eq", "int48ne", "int48lt", "int48le", "int48gt", "int48ge"],
    &["int84eq", "int84ne", "int84lt", "int84le", "int84gt", "int84ge"],
];

/// The same for strings, where only `=` and `<>` are independent of the collation.
const STRINGS: &[&[&str]] = &[
    &["texteq", "textne", "text_lt", "text_le", "text_gt", "text_ge"],
    &["nameeq", "namene", "namelt", "namele", "namegt", "namege"],
    &["nameeqtext", "namenetext", "namelttext", "nameletext", "namegttext", "namegetext"],
    &["texteqname", "textnename", "textltname", "textlename", "textgtname", "textgename"],
];

const OPERATORS: [Operator; 6] =
    [Operator::Eq, Operator::NotEq, Operator::Lt, Operator::LtEq, Operator::Gt, Operator::GtEq];

/// The comparison that a function computes, if Arrow can do it. `bytewise` says whether the function's
/// collation compares bytes.
pub(crate) fn native_comparison(source: &str, bytewise: bool) -> Option<NativeComparison> {
    let find = |families: &[&[&str]]| {
        let mut places = families.iter().filter_map(|family| {
            let at = family.iter().position(|name| *name == source)?;
            OPERATORS.get(at).copied()
        });
        places.next()
    };
    if let Some(operator) = find(FAMILIES) {
        Some(NativeComparison { operator, widens: false, is_text: false })
    } else if let Some(operator) = find(WIDENING) {
        Some(NativeComparison { operator, widens: true, is_text: false })
    } else {
        let operator = find(STRINGS)?;
        let found = NativeComparison { operator, widens: false, is_text: true };
        (bytewise || matches!(operator, Operator::Eq | Operator::NotEq)).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_native_only_where_bytes_decide() {
        let operator = |source, bytewise| {
            native_comparison(source, bytewise).map(|found| (found.operator, found.widens))
        };
        assert_eq!(operator("texteq", false), Some((Operator::Eq, false)));
        assert_eq!(operator("text_lt", false), None);
        assert_eq!(operator("text_lt", true), Some((Operator::Lt, false)));
        assert_eq!(operator("int84ge", false), Some((Operator::GtEq, true)));
        assert_eq!(operator("xidneq", true), Some((Operator::NotEq, false)));
        for source in ["float8eq", "numeric_lt", "bpchareq", "interval_eq", "int4pl"] {
            assert_eq!(operator(source, true), None, "{source}");
        }
    }
}
