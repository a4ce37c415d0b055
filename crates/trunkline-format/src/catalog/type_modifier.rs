//! Type modifiers, such as the length of a `varchar(20)`, as `format_type` prints them.
//!
//! A modifier is an `int4` whose meaning depends on the type: `atttypmod` is 24 for a `varchar(20)`,
//! because it includes the length of a varlena header.

use crate::ids::Oid;

/// `VARHDRSZ`, which several modifiers include.
const HEADER: i32 = 4;

/// Bits of an interval's modifier, as in `INTERVAL_MASK`, and the fields that they restrict it to.
const INTERVAL_FIELDS: [(i32, &str); 13] = [
    (1 << 2, " year"),
    (1 << 1, " month"),
    (1 << 3, " day"),
    (1 << 10, " hour"),
    (1 << 11, " minute"),
    (1 << 12, " second"),
    (1 << 2 | 1 << 1, " year to month"),
    (1 << 3 | 1 << 10, " day to hour"),
    (1 << 3 | 1 << 10 | 1 << 11, " day to minute"),
    (1 << 3 | 1 << 10 | 1 << 11 | 1 << 12, " day to second"),
    (1 << 10 | 1 << 11, " hour to minute"),
    (1 << 10 | 1 << 11 | 1 << 12, " hour to second"),
    (1 << 11 | 1 << 12, " minute to second"),
];

/// A built-in type with its modifier, as `format_type` spells it; `None` if it has no modifier.
pub fn type_with_modifier(oid: Oid, modifier: i32) -> Option<String> {
    if modifier < 0 {
        return None;
    }
    let length = modifier - HEADER;
    Some(match oid.0 {
        1042 => format!("character({length})"),
        1043 => format!("character varying({length})"),
        1083 => format!("time({modifier}) without time zone"),
        1114 => format!("timestamp({modifier}) without time zone"),
        1184 => format!("timestamp({modifier}) with time zone"),
        1186 => interval(modifier),
        1266 => format!("time({modifier}) with time zone"),
        1560 => format!("bit({modifier})"),
        1562 => format!("bit varying({modifier})"),
        1700 => {
            // The scale has 11 bits and a sign.
            let (precision, scale) = (length >> 16 & 0xFFFF, length & 0x7FF);
            format!("numeric({precision},{})", (scale ^ 1024) - 1024)
        }
        _ => return None,
    })
}

/// An interval's fields in the upper half of its modifier, and its precision in the lower half.
fn interval(modifier: i32) -> String {
    const FULL_PRECISION: i32 = 0xFFFF;
    let (fields, precision) = (modifier >> 16 & 0x7FFF, modifier & 0xFFFF);
    let fields = INTERVAL_FIELDS.iter().find(|(bits, _)| *bits == fields);
    let fields = fields.map_or("", |(_, fields)| fields);
    match precision {
        FULL_PRECISION => format!("interval{fields}"),
        _ => format!("interval{fields}({precision})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_spelled_as_in_format_type() {
        for (oid, modifier, expected) in [
            (1043, 24, Some("character varying(20)")),
            (1042, 5, Some("character(1)")),
            (1042, -1, None),
            (1560, 3, Some("bit(3)")),
            (1700, (10 << 16 | 2) + 4, Some("numeric(10,2)")),
            (1700, (3 << 16 | (-2 & 0x7FF)) + 4, Some("numeric(3,-2)")),
            (1186, 0x7FFF << 16 | 3, Some("interval(3)")),
            (1186, 0x1C00 << 16 | 2, Some("interval hour to second(2)")),
            (1186, 6 << 16 | 0xFFFF, Some("interval year to month")),
            (1184, 0, Some("timestamp(0) with time zone")),
            (23, 1, None),
        ] {
            assert_eq!(type_with_modifier(Oid(oid), modifier).as_deref(), expected);
        }
    }
}
