//! The catalogs of real servers, which `testdata/catalog-*.txt` contains for the tests of this crate.
//!
//! Each line is a row of a catalog, with its columns separated by `|`: for example,
//! `type|16|bool|11|1|c|b|,|0|0|1243|0`.

use crate::align::Align;
use crate::catalog::{ObjectRow, TypeRow};
use crate::deform::Attribute;
use crate::ids::Oid;
use crate::text_output::{ColumnRow, ObjectClass, TypeCatalog};
use std::collections::BTreeMap;

/// One server's catalogs.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) types: BTreeMap<u32, TypeRow>,
    pub(crate) columns: BTreeMap<u32, Vec<ColumnRow>>,
    pub(crate) labels: BTreeMap<u32, Vec<(Oid, Vec<u8>)>>,
    /// Range, subtype, multirange.
    pub(crate) ranges: Vec<[Oid; 3]>,
    pub(crate) objects: Vec<(ObjectClass, ObjectRow)>,
    pub(crate) printed_as: BTreeMap<u32, Oid>,
}

impl TypeCatalog for Catalog {
    fn type_row(&self, oid: Oid) -> Option<TypeRow> {
        self.types.get(&oid.0).cloned()
    }

    fn columns(&self, relation: Oid) -> Option<Vec<ColumnRow>> {
        self.columns.get(&relation.0).cloned()
    }

    fn enum_labels(&self, enum_type: Oid) -> Vec<(Oid, Vec<u8>)> {
        self.labels.get(&enum_type.0).cloned().unwrap_or_default()
    }

    fn range_subtype(&self, range: Oid) -> Option<Oid> {
        self.ranges.iter().find(|row| row[0] == range).map(|row| row[1])
    }

    fn multirange_range(&self, multirange: Oid) -> Option<Oid> {
        self.ranges.iter().find(|row| row[2] == multirange).map(|row| row[0])
    }

    fn printed_as(&self, base_type: Oid) -> Option<Oid> {
        self.printed_as.get(&base_type.0).copied()
    }

    fn object(&self, class: ObjectClass, oid: Oid) -> Option<ObjectRow> {
        if class == ObjectClass::Type {
            let row = self.types.get(&oid.0)?;
            let (schema, name) = (row.schema, row.name.clone());
            return Some(ObjectRow { oid, schema, name, arguments: vec![] });
        }
        let mut objects = self.objects.iter();
        objects.find(|(of, row)| *of == class && row.oid == oid).map(|(_, row)| row.clone())
    }

    fn objects_named(&self, class: ObjectClass, name: &[u8]) -> Vec<ObjectRow> {
        if class == ObjectClass::Type {
            let named = self.types.values().filter(|row| *row.name == *name);
            return named.filter_map(|row| self.object(class, row.oid)).collect();
        }
        let objects = self.objects.iter().filter(|(of, row)| *of == class && *row.name == *name);
        objects.map(|(_, row)| row.clone()).collect()
    }
}

fn class(name: &str) -> ObjectClass {
    match name {
        "schema" => ObjectClass::Schema,
        "role" => ObjectClass::Role,
        "database" => ObjectClass::Database,
        "relation" => ObjectClass::Relation,
        "procedure" => ObjectClass::Procedure,
        "operator" => ObjectClass::Operator,
        "collation" => ObjectClass::Collation,
        "config" => ObjectClass::TextSearchConfig,
        "dictionary" => ObjectClass::TextSearchDictionary,
        _ => panic!("{name}"),
    }
}

impl Catalog {
    /// Adds the rows of a file.
    pub(crate) fn parse(text: &str) -> Self {
        let mut catalog = Self::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split('|').collect();
            let oid = |at: usize| Oid(fields[at].parse().unwrap());
            let byte = |at: usize| fields[at].as_bytes()[0];
            let bytes = |at: usize| fields[at].as_bytes().to_vec();
            match fields[0] {
                "type" => drop(catalog.types.insert(
                    oid(1).0,
                    TypeRow {
                        oid: oid(1),
                        name: bytes(2).into(),
                        schema: oid(3),
                        len: fields[4].parse().unwrap(),
                        by_value: false,
                        kind: byte(6),
                        category: b'U',
                        preferred: false,
                        defined: true,
                        delimiter: byte(7),
                        relation: oid(8),
                        subscript: Oid(0),
                        element: oid(9),
                        array: Oid(0),
                        input: Oid(0),
                        output: oid(10),
                        receive: Oid(0),
                        send: Oid(0),
                        modifier_in: Oid(0),
                        modifier_out: Oid(0),
                        align: Align::from_code(byte(5)).unwrap(),
                        not_null: false,
                        base: oid(11),
                        base_modifier: -1,
                        dimensions: 0,
                        collation: Oid(0),
                    },
                )),
                "column" => catalog.columns.entry(oid(1).0).or_default().push(ColumnRow {
                    type_oid: oid(3),
                    modifier: -1,
                    attribute: Attribute {
                        len: fields[4].parse().unwrap(),
                        align: Align::from_code(byte(5)).unwrap(),
                    },
                    dropped: byte(6) == b't',
                }),
                "label" => catalog.labels.entry(oid(1).0).or_default().push((oid(2), bytes(3))),
                "range" => catalog.ranges.push([oid(1), oid(2), oid(3)]),
                other => {
                    let arguments = fields[4].split_whitespace();
                    let arguments = arguments.map(|argument| Oid(argument.parse().unwrap()));
                    let (oid, schema, name) = (oid(1), oid(2), bytes(3).into());
                    let row = ObjectRow { oid, schema, name, arguments: arguments.collect() };
                    catalog.objects.push((class(other), row));
                }
            }
        }
        catalog
    }
}

/// The bytes of hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().as_chunks::<2>().0;
    digits.iter().map(|d| u8::from_str_radix(str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

/// Removes the escapes of `COPY`.
pub(crate) fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next().unwrap() {
                b'b' => 8,
                b't' => 9,
                b'n' => 10,
                b'v' => 11,
                b'f' => 12,
                b'r' => 13,
                other => other,
            },
            other => other,
        });
    }
    out
}
