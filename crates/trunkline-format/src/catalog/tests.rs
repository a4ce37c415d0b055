//! Builds rows from the layouts, then decodes them both undamaged and damaged.
//!
//! The engine's tests decode the catalogs of real clusters.

use super::*;
use crate::align::Align;
use crate::control::PgVersion;
use crate::deform::Attribute;
use crate::heap_tuple::{HAS_NULL, HeapTuple};
use crate::ids::Oid;
use crate::test_data::XorShift;

/// Column values by name.
type Given = Vec<(&'static str, Vec<u8>)>;

/// Builds a tuple with the given column values. An empty value represents a null. If the catalog
/// has more columns than that, the tuple doesn't contain them.
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
    for (value, attribute) in values.iter().zip(layout.attributes()) {
        if !value.is_empty() {
            bytes.resize(attribute.align.up(bytes.len()), 0);
            bytes.extend(value);
        }
    }
    bytes
}

/// Returns values for all columns of a row. Each column is set to a number, unless `given` contains
/// a value for it.
fn values(layout: &CatalogLayout, given: &[(&str, Vec<u8>)]) -> Vec<Vec<u8>> {
    let value = |(at, column): (usize, &CatalogColumn)| {
        if let Some((_, value)) = given.iter().find(|(name, _)| *name == column.name) {
            return value.clone();
        }
        match usize::try_from(layout.attributes()[at].len) {
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
            // Most variable-length columns are null.
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

/// All catalogs, with values for the columns that don't accept arbitrary values.
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
        (
            &PG_PROC,
            vec![
                ("pronargs", vec![2, 0]),
                ("pronargdefaults", vec![1, 0]),
                ("proargtypes", oids(&[23, 25])),
                ("prosrc", b"\x05x".to_vec()),
            ],
        ),
        (&PG_OPERATOR, vec![]),
        (&PG_TS_CONFIG, vec![]),
        (&PG_TS_DICT, vec![]),
        (&PG_AGGREGATE, vec![]),
        (&PG_CAST, vec![]),
        (&PG_LANGUAGE, vec![]),
        (&PG_OPFAMILY, vec![]),
        (&PG_AMOP, vec![]),
        (&PG_AMPROC, vec![]),
        (&PG_REWRITE, vec![]),
        (&PG_CONSTRAINT, vec![]),
        (
            &PG_PARTITIONED_TABLE,
            vec![
                ("partattrs", shorts(&[1])),
                ("partclass", oids(&[1978])),
                ("partcollation", oids(&[0])),
            ],
        ),
        (&PG_STATISTIC_EXT, vec![("stxkeys", shorts(&[1, 2]))]),
        (&PG_STATISTIC, vec![("stakind2", vec![2, 0])]),
        (&PG_ATTRDEF, vec![]),
        (&PG_DESCRIPTION, vec![]),
        (&PG_SHDESCRIPTION, vec![]),
        (&PG_CONVERSION, vec![]),
        (&PG_TS_PARSER, vec![]),
        (&PG_TS_TEMPLATE, vec![]),
        (&PG_EXTENSION, vec![("extversion", b"\x07ab".to_vec())]),
        (&PG_FOREIGN_DATA_WRAPPER, vec![]),
        (&PG_FOREIGN_SERVER, vec![]),
    ]
}

/// Decodes a row as its catalog's row type, or as a named object.
fn read(tuple: &CatalogTuple<'_, '_>) -> Result<String, RowError> {
    fn text<R: CatalogRow + std::fmt::Debug>(
        tuple: &mut CatalogTuple<'_, '_>,
    ) -> Result<String, RowError> {
        R::decode(tuple).map(|row| format!("{row:?}"))
    }
    let tuple = &mut tuple.clone();
    match tuple.table().name {
        "pg_class" => text::<ClassRow>(tuple),
        "pg_attribute" => text::<AttributeRow>(tuple),
        "pg_database" => text::<DatabaseRow>(tuple),
        "pg_type" => text::<TypeRow>(tuple),
        "pg_namespace" => text::<NamespaceRow>(tuple),
        "pg_tablespace" => text::<TablespaceRow>(tuple),
        "pg_am" => text::<AccessMethodRow>(tuple),
        "pg_inherits" => text::<InheritsRow>(tuple),
        "pg_index" => text::<IndexRow>(tuple),
        "pg_enum" => text::<EnumRow>(tuple),
        "pg_range" => text::<RangeRow>(tuple),
        "pg_db_role_setting" => text::<RoleSettingRow>(tuple),
        "pg_opclass" => text::<OperatorClassRow>(tuple),
        "pg_sequence" => text::<SequenceRow>(tuple),
        "pg_collation" => text::<CollationRow>(tuple),
        "pg_proc" => text::<ProcedureRow>(tuple),
        "pg_aggregate" => text::<AggregateRow>(tuple),
        "pg_cast" => text::<CastRow>(tuple),
        "pg_language" => text::<LanguageRow>(tuple),
        "pg_operator" => text::<OperatorRow>(tuple),
        "pg_opfamily" => text::<OperatorFamilyRow>(tuple),
        "pg_amop" => text::<FamilyOperatorRow>(tuple),
        "pg_amproc" => text::<FamilyFunctionRow>(tuple),
        "pg_rewrite" => text::<RewriteRow>(tuple),
        "pg_constraint" => text::<ConstraintRow>(tuple),
        "pg_partitioned_table" => text::<PartitionedTableRow>(tuple),
        "pg_statistic_ext" => text::<StatisticsRow>(tuple),
        "pg_statistic" => text::<ColumnStatisticsRow>(tuple),
        "pg_attrdef" => text::<ColumnDefaultRow>(tuple),
        "pg_description" => text::<DescriptionRow>(tuple),
        "pg_shdescription" => text::<SharedDescriptionRow>(tuple),
        "pg_conversion" => text::<ConversionRow>(tuple),
        "pg_ts_parser" => text::<TextSearchParserRow>(tuple),
        "pg_ts_template" => text::<TextSearchTemplateRow>(tuple),
        "pg_ts_config" => text::<TextSearchConfigRow>(tuple),
        "pg_ts_dict" => text::<TextSearchDictionaryRow>(tuple),
        "pg_authid" => text::<RoleRow>(tuple),
        "pg_extension" => text::<ExtensionRow>(tuple),
        "pg_foreign_data_wrapper" => text::<ForeignDataWrapperRow>(tuple),
        "pg_foreign_server" => text::<ForeignServerRow>(tuple),
        _ => ObjectRow::decode(tuple).map(|row| format!("{row:?}")),
    }
}

#[test]
fn every_catalog_of_every_version_is_decoded() {
    for version in PgVersion::ALL {
        for (table, given) in tables() {
            let layout = table.layout(version);
            let bytes = tuple(&layout, &values(&layout, &given));
            let tuple = HeapTuple::parse(1, &bytes).expect("a tuple");
            let row = layout.tuple(tuple).expect("a row");
            read(&row).unwrap_or_else(|error| panic!("{version}: {error}"));
        }
    }
}

#[test]
fn columns_are_at_the_offsets_of_the_c_structs() {
    use PgVersion::{V15, V16, V17, V18, V19};
    let place = |table: &'static CatalogTable, version, name| {
        let layout = table.layout(version);
        let at = layout.columns().iter().position(|column| column.name == name).expect("there");
        layout.offset(at)
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
fn index_vectors_are_as_long_as_the_row_says() {
    let layout = PG_INDEX.layout(PgVersion::V18);
    let (_, mut given) = tables().swap_remove(8);
    let check = |given: &[(&str, Vec<u8>)]| {
        let bytes = tuple(&layout, &values(&layout, given));
        let tuple = HeapTuple::parse(1, &bytes).expect("a tuple");
        IndexRow::decode(&mut layout.tuple(tuple)?)
    };
    let row = check(&given).expect("sound");
    assert_eq!((row.index, row.table), (Oid(1000), Oid(1001)));
    assert_eq!((row.key_count, row.unique, row.partial), (1, true, true));
    assert_eq!((row.columns, row.options), (vec![3, 0], vec![3]));
    assert_eq!((row.collations, row.classes), (vec![Oid(100)], vec![Oid(1978)]));
    given[2].1 = shorts(&[3]);
    let error = check(&given).expect_err("refused").to_string();
    assert_eq!(error, "a row of pg_index has the unknown value 1 in column indkey");
    given[1].1 = vec![3, 0];
    assert!(check(&given).is_err());
}

/// Callers index a function's arguments by its counts.
#[test]
fn a_function_has_as_many_arguments_as_its_row_says() {
    let layout = PG_PROC.layout(PgVersion::V18);
    let check = |count: u8, defaults: u8| {
        let given = [
            ("pronargs", vec![count, 0]),
            ("pronargdefaults", vec![defaults, 0]),
            ("proargtypes", oids(&[23, 25])),
        ];
        let bytes = tuple(&layout, &values(&layout, &given));
        let tuple = HeapTuple::parse(1, &bytes).expect("a tuple");
        let row = ProcedureRow::decode(&mut layout.tuple(tuple)?)?;
        Ok((row.arguments.len(), row.all_arguments))
    };
    let error = |error: RowError| error.to_string();
    assert_eq!(check(2, 2).map_err(error), Ok((2, None)));
    let wrong = "a row of pg_proc has the unknown value 3 in column pronargs";
    assert_eq!(check(3, 2).map_err(error), Err(wrong.to_owned()));
    let wrong = "a row of pg_proc has the unknown value 3 in column pronargdefaults";
    assert_eq!(check(2, 3).map_err(error), Err(wrong.to_owned()));
}

/// PostgreSQL 17 renamed a column of `pg_collation`, and both names mean the same.
#[test]
fn the_locale_of_a_collation_is_found_in_every_version() {
    for version in PgVersion::ALL {
        let layout = PG_COLLATION.layout(version);
        let column = if version < PgVersion::V17 { "colliculocale" } else { "colllocale" };
        let bytes = tuple(&layout, &values(&layout, &[(column, b"\x0Bde-x".to_vec())]));
        let tuple = HeapTuple::parse(1, &bytes).expect("a tuple");
        let row = CollationRow::decode(&mut layout.tuple(tuple).expect("a row")).expect("sound");
        assert_eq!((row.locale.as_deref(), row.lc_collate), (Some(&b"de-x"[..]), None));
    }
}

#[test]
fn errors_name_the_missing_column() {
    let layout = PG_NAMESPACE.layout(PgVersion::V16);
    let whole = values(&layout, &[]);
    let check = |values: &[Vec<u8>], cut: usize, expected: &str| {
        let bytes = tuple(&layout, values);
        let tuple = HeapTuple::parse(1, &bytes[..bytes.len() - cut]).expect("a tuple");
        let read = layout.tuple(tuple).and_then(|row| read(&row));
        assert_eq!(read.expect_err("refused").to_string(), expected);
    };
    check(&whole[..1], 0, "a row of pg_namespace ends before its column nspname");
    check(&whole, 9, "a row of pg_namespace ends before its column nspname");
    let mut null = whole.clone();
    null[1].clear();
    check(&null, 0, "a row of pg_namespace has a null in its column nspname, expected a value");
}

/// A cluster must be accepted if its catalogs match our declarations, and rejected otherwise.
#[test]
fn a_cluster_with_other_columns_is_refused() {
    for (table, _) in tables() {
        let layout = table.layout(PgVersion::V17);
        let mut rows: Vec<Described<'_>> =
            (0..layout.columns().len()).map(|at| described(&layout, at)).collect();
        rows.push(Described { number: -1, ..rows[0] });
        rows.rotate_left(2);
        assert_eq!(layout.agrees(rows.iter().copied()), Ok(()));
        let last =
            rows.iter().position(|row| usize::try_from(row.number) == Ok(layout.columns().len()));
        let last = last.expect("a column");
        for changed in [
            Described { name: b"other", ..rows[last] },
            Described { attribute: Attribute { len: 3, ..rows[last].attribute }, ..rows[last] },
            Described { attribute: Attribute { len: 3, align: Align::Short }, ..rows[last] },
            Described { dropped: true, ..rows[last] },
            Described { number: 77, ..rows[last] },
        ] {
            let before = std::mem::replace(&mut rows[last], changed);
            assert_eq!(
                layout.agrees(rows.iter().copied()).expect_err("differs").number,
                layout.columns().len()
            );
            rows[last] = before;
        }
        let further = Described { number: rows[last].number + 1, ..rows[last] };
        rows.push(further);
        assert_eq!(layout.agrees(rows.iter().copied()).is_ok(), table.open);
        rows.clear();
        assert_eq!(layout.agrees(rows.iter().copied()).expect_err("differs").found, None);
    }
    let layout = PG_AM.layout(PgVersion::V17);
    let one = [described(&layout, 0)];
    let error = layout.agrees(one).expect_err("differs").to_string();
    assert_eq!(error, "column 2 of pg_am is no column, expected amname (64, Char)");
}

/// Column `at`, as a matching cluster describes it.
fn described(layout: &CatalogLayout, at: usize) -> Described<'static> {
    Described {
        name: layout.columns()[at].name.as_bytes(),
        number: at as i16 + 1,
        attribute: layout.attributes()[at],
        dropped: false,
    }
}

#[test]
fn random_damage_never_panics() {
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
                    && let Ok(row) = layout.tuple(tuple)
                {
                    let _ = read(&row);
                }
            }
        }
    }
}
