//! Rows made column by column from the layouts, then read, damaged and read again.
//!
//! Rows of real clusters are read by the engine's tests.

use super::*;
use crate::align::Align;
use crate::control::PgVersion;
use crate::heap_tuple::{HAS_NULL, HeapTuple};
use crate::ids::Oid;
use crate::test_data::XorShift;

/// Values of columns by name.
type Given = Vec<(&'static str, Vec<u8>)>;

/// A tuple whose columns are `values`; an empty one is null, and those that are not given are
/// missing.
fn tuple(layout: &CatalogLayout, values: &[Vec<u8>]) -> Vec<u8> {
    let nulls = values.iter().any(Vec::is_empty);
    let mut bytes = vec![0; 23];
    bytes[18..20].copy_from_slice(&(values.len() as u16).to_le_bytes());
    if nulls {
        bytes[20..22].copy_from_slice(&HAS_NULL.to_le_bytes());
        let mut bitmap = vec![0; values.len().div_ceil(8)];
        for (at, _) in values.iter().enumerate().filter(|(_, value)| !value.is_empty()) {
            bitmap[at / 8] |= 1 << (at % 8);
        }
        bytes.extend(bitmap);
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes[22] = bytes.len() as u8;
    for (value, column) in values.iter().zip(layout.columns()) {
        if !value.is_empty() {
            bytes.resize(column.align.up(bytes.len()), 0);
            bytes.extend(value);
        }
    }
    bytes
}

/// Values for the whole of a row: each column's number, or what `given` has for its name.
fn values(layout: &CatalogLayout, given: &[(&str, Vec<u8>)]) -> Vec<Vec<u8>> {
    let value = |(at, column): (usize, &CatalogColumn)| {
        if let Some((_, value)) = given.iter().find(|(name, _)| *name == column.name) {
            return value.clone();
        }
        match usize::try_from(column.len) {
            Ok(1) => vec![1],
            Ok(64) => {
                let mut name = column.name.as_bytes().to_vec();
                name.resize(64, 0);
                name
            }
            Ok(len) => {
                let mut value = (at as u64 + 1000).to_le_bytes().to_vec();
                value.truncate(len);
                value
            }
            // Null, as most are.
            Err(_) => Vec::new(),
        }
    };
    layout.columns().iter().enumerate().map(value).collect()
}

fn vector(element: u32, elements: &[u8], count: u32) -> Vec<u8> {
    let mut bytes = ((elements.len() as u32 + 24) << 2).to_le_bytes().to_vec();
    for number in [1, 0, element, count, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(elements);
    bytes
}

fn oids(oids: &[u32]) -> Vec<u8> {
    let bytes: Vec<u8> = oids.iter().flat_map(|oid| oid.to_le_bytes()).collect();
    vector(26, &bytes, oids.len() as u32)
}

fn shorts(shorts: &[i16]) -> Vec<u8> {
    let bytes: Vec<u8> = shorts.iter().flat_map(|number| number.to_le_bytes()).collect();
    vector(21, &bytes, shorts.len() as u32)
}

/// Those whose rows are read, with values that make sense where others would not.
fn tables() -> Vec<(&'static CatalogTable, Given)> {
    vec![
        (&PG_CLASS, vec![("relkind", b"r".to_vec()), ("relpersistence", b"p".to_vec())]),
        (
            &PG_ATTRIBUTE,
            vec![
                ("attalign", b"i".to_vec()),
                ("attgenerated", b"s".to_vec()),
                ("attmissingval", b"\x07ab".to_vec()),
            ],
        ),
        (&PG_DATABASE, vec![("datcollate", b"\x05C".to_vec())]),
        (&PG_TYPE, vec![("typalign", b"d".to_vec())]),
        (&PG_NAMESPACE, vec![]),
        (&PG_TABLESPACE, vec![]),
        (&PG_AM, vec![]),
        (&PG_INHERITS, vec![]),
        (
            &PG_INDEX,
            vec![
                ("indnatts", vec![2, 0]),
                ("indnkeyatts", vec![1, 0]),
                ("indkey", shorts(&[3, 0])),
                ("indcollation", oids(&[100])),
                ("indclass", oids(&[1978])),
                ("indoption", shorts(&[3])),
                ("indpred", b"\x05x".to_vec()),
            ],
        ),
        (&PG_ENUM, vec![]),
        (&PG_RANGE, vec![]),
        (&PG_SEQUENCE, vec![]),
        (&PG_AUTHID, vec![]),
        (&PG_DB_ROLE_SETTING, vec![("setconfig", b"\x07ab".to_vec())]),
        (&PG_OPCLASS, vec![]),
        (&PG_COLLATION, vec![]),
        (&PG_PROC, vec![("proargtypes", oids(&[23, 25]))]),
        (&PG_OPERATOR, vec![]),
        (&PG_TS_CONFIG, vec![]),
        (&PG_TS_DICT, vec![]),
    ]
}

/// Reads a row in every way that its catalog knows.
fn read(fields: &Fields<'_, '_>) -> Result<String, RowError> {
    let text = |row: &dyn std::fmt::Debug| format!("{row:?}");
    let mut fields = fields.clone();
    let fields = &mut fields;
    Ok(match fields.table().name {
        "pg_class" => text(&ClassRow::read(fields)?),
        "pg_attribute" => text(&AttributeRow::read(fields)?),
        "pg_database" => text(&DatabaseRow::read(fields)?),
        "pg_type" => text(&TypeRow::read(fields)?),
        "pg_namespace" => text(&NamespaceRow::read(fields)?),
        "pg_tablespace" => text(&TablespaceRow::read(fields)?),
        "pg_am" => text(&AccessMethodRow::read(fields)?),
        "pg_inherits" => text(&InheritsRow::read(fields)?),
        "pg_index" => text(&IndexRow::read(fields)?),
        "pg_enum" => text(&EnumRow::read(fields)?),
        "pg_range" => text(&RangeRow::read(fields)?),
        "pg_sequence" => text(&SequenceRow::read(fields)?),
        "pg_authid" => text(&RoleRow::read(fields)?),
        "pg_db_role_setting" => text(&RoleSettingRow::read(fields)?),
        "pg_opclass" => text(&OperatorClassRow::read(fields)?),
        "pg_collation" => text(&CollationRow::read(fields)?) + &text(&NamedRow::read(fields)?),
        _ => text(&NamedRow::read(fields)?),
    })
}

/// Every catalog of every version is read, and each row says what was put in.
#[test]
fn rows_of_every_version() {
    for version in PgVersion::ALL {
        for (table, given) in tables() {
            let layout = table.layout(version);
            let bytes = tuple(&layout, &values(&layout, &given));
            let tuple = HeapTuple::parse(1, &bytes).expect("a tuple");
            let fields = layout.fields(tuple).expect("fields");
            read(&fields).unwrap_or_else(|error| panic!("{version}: {error}"));
        }
    }
}

#[test]
fn columns_are_where_servers_have_them() {
    use PgVersion::{V15, V16, V17, V18, V19};
    let place = |table: &'static CatalogTable, version, name| {
        let layout = table.layout(version);
        let at = layout.columns().iter().position(|column| column.name == name).expect("there");
        layout.place(at)
    };
    for (version, kind, missing, spaces) in [
        (V15, 115, 98, 92),
        (V16, 115, 92, 92),
        (V17, 115, 92, 92),
        (V18, 119, 88, 92),
        (V19, 119, 88, 92),
    ] {
        assert_eq!(place(&PG_CLASS, version, "relkind"), Some(kind));
        assert_eq!(place(&PG_ATTRIBUTE, version, "atthasmissing"), Some(missing));
        assert_eq!(place(&PG_DATABASE, version, "dattablespace"), Some(spaces));
        assert_eq!(place(&PG_TYPE, version, "typcollation"), Some(144));
        assert_eq!(place(&PG_INDEX, version, "indkey"), None);
    }
    let counts = |table: &'static CatalogTable| {
        PgVersion::ALL.map(|version| table.layout(version).columns().len())
    };
    assert_eq!(counts(&PG_CLASS), [33, 33, 33, 34, 34]);
    assert_eq!(counts(&PG_ATTRIBUTE), [26, 26, 26, 25, 25]);
    assert_eq!(counts(&PG_DATABASE), [16, 17, 18, 18, 18]);
    assert_eq!(counts(&PG_TYPE), [32; 5]);
}

#[test]
fn an_index() {
    let layout = PG_INDEX.layout(PgVersion::V18);
    let (_, mut given) = tables().swap_remove(8);
    let check = |given: &[(&str, Vec<u8>)]| {
        let bytes = tuple(&layout, &values(&layout, given));
        let tuple = HeapTuple::parse(1, &bytes).expect("a tuple");
        IndexRow::read(&mut layout.fields(tuple)?)
    };
    let row = check(&given).expect("sound");
    assert_eq!((row.index, row.table), (Oid(1000), Oid(1001)));
    assert_eq!((row.key_count, row.unique, row.partial), (1, true, true));
    assert_eq!((row.columns, row.options), (vec![3, 0], vec![3]));
    assert_eq!((row.collations, row.classes), (vec![Oid(100)], vec![Oid(1978)]));
    given[2].1 = shorts(&[3]);
    let error = check(&given).expect_err("refused").to_string();
    assert_eq!(error, "a row of pg_index has 1 in its column indkey, which means nothing");
    given[1].1 = vec![3, 0];
    assert!(check(&given).is_err());
}

#[test]
fn what_is_missing_is_named() {
    let layout = PG_NAMESPACE.layout(PgVersion::V16);
    let whole = values(&layout, &[]);
    let check = |values: &[Vec<u8>], cut: usize, expected: &str| {
        let bytes = tuple(&layout, values);
        let tuple = HeapTuple::parse(1, &bytes[..bytes.len() - cut]).expect("a tuple");
        let read = layout.fields(tuple).and_then(|fields| read(&fields));
        assert_eq!(read.expect_err("refused").to_string(), expected);
    };
    check(&whole[..1], 0, "a row of pg_namespace ends before its column nspname");
    check(&whole, 9, "a row of pg_namespace ends before its column nspname");
    let mut null = whole.clone();
    null[1].clear();
    check(&null, 0, "a row of pg_namespace has a null in its column nspname, expected a value");
}

/// A cluster that describes its catalogs as we do is believed, any other is not.
#[test]
fn self_check() {
    for (table, _) in tables() {
        let layout = table.layout(PgVersion::V17);
        let mut rows: Vec<AttributeRow<'_>> = layout.columns().iter().zip(1..).map(row).collect();
        rows.push(AttributeRow { number: -1, ..rows[0] });
        rows.rotate_left(2);
        assert_eq!(layout.agrees(&rows), Ok(()));
        let last =
            rows.iter().position(|row| usize::try_from(row.number) == Ok(layout.columns().len()));
        let last = last.expect("a column");
        for changed in [
            AttributeRow { name: b"other", ..rows[last] },
            AttributeRow { len: 3, ..rows[last] },
            AttributeRow { align: Align::Short, len: 3, ..rows[last] },
            AttributeRow { dropped: true, ..rows[last] },
            AttributeRow { number: 77, ..rows[last] },
        ] {
            let before = std::mem::replace(&mut rows[last], changed);
            assert_eq!(layout.agrees(&rows).expect_err("differs").number, layout.columns().len());
            rows[last] = before;
        }
        let further = AttributeRow { number: rows[last].number + 1, ..rows[last] };
        rows.push(further);
        assert_eq!(layout.agrees(&rows).is_ok(), table.open);
        rows.clear();
        assert_eq!(layout.agrees(&rows).expect_err("differs").found, None);
    }
    let layout = PG_AM.layout(PgVersion::V17);
    let one = [row((&layout.columns()[0], 1))];
    let error = layout.agrees(&one).expect_err("differs").to_string();
    assert_eq!(error, "column 2 of pg_am is no column, expected amname (64, Char)");
}

fn row((column, number): (&CatalogColumn, i16)) -> AttributeRow<'static> {
    AttributeRow {
        relation: Oid(1),
        name: column.name.as_bytes(),
        type_oid: Oid(1),
        len: column.len,
        number,
        modifier: -1,
        align: column.align,
        storage: b'p',
        not_null: false,
        has_missing: false,
        generated: Generated::No,
        dropped: false,
        collation: Oid(0),
        missing: None,
    }
}

/// Whatever the bytes of a row, there is an answer.
#[test]
fn any_bytes() {
    let seed = 0xCA7A;
    let mut random = XorShift(seed);
    for version in PgVersion::ALL {
        for (table, given) in tables() {
            let layout = table.layout(version);
            let good = tuple(&layout, &values(&layout, &given));
            for _ in 0..2_000 {
                let mut bytes = good.clone();
                for _ in 0..=random.below(4) {
                    let at = random.below(bytes.len());
                    bytes[at] ^= 1 << random.below(8);
                }
                bytes.truncate(bytes.len() - random.below(3) * random.below(bytes.len()) / 2);
                if let Ok(tuple) = HeapTuple::parse(1, &bytes)
                    && let Ok(fields) = layout.fields(tuple)
                {
                    let _ = read(&fields);
                }
            }
        }
    }
}
