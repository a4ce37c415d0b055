//! Object identifier types (`regclass`, `regproc` and so on) and `aclitem`: OIDs printed as names.
//!
//! We omit the schema if the object would be found without it, assuming that the search path is the
//! default one (`pg_catalog` first, then `public`). If there is no catalog row with the given OID,
//! we print the OID as a number.
//!
//! Mirrors PostgreSQL's `utils/adt/regproc.c` and `aclitemout` of `utils/adt/acl.c`.

use super::catalog::{ObjectClass, TypeCatalog};
use super::error::ValueError;
use super::quote::{in_quotes, write_identifier};
use super::reader::Reader;
use super::{digits, options::TextOptions};
use crate::catalog::ObjectRow;
use crate::ids::Oid;

/// The schema `pg_catalog`.
const PG_CATALOG: Oid = Oid(11);

/// Which object identifier type a value has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegType {
    /// `regproc`: a function's name.
    Proc,
    /// `regprocedure`: a function's name and arguments.
    Procedure,
    /// `regoper`: an operator's name.
    Oper,
    /// `regoperator`: an operator's name and operands.
    Operator,
    /// `regtype`: a type name in SQL spelling.
    Type,
    /// Any other type: the name of an object of this class.
    Named(ObjectClass),
}

/// The objects visible under this unqualified name, in search path order.
fn found(class: ObjectClass, name: &[u8], catalog: &dyn TypeCatalog) -> Vec<ObjectRow> {
    let public = catalog.objects_named(ObjectClass::Schema, b"public").first().map(|row| row.oid);
    let path = [Some(PG_CATALOG), public];
    let place = |row: &ObjectRow| path.iter().position(|&schema| schema == Some(row.schema));
    let mut rows = catalog.objects_named(class, name);
    rows.retain(|row| place(row).is_some());
    rows.sort_by_key(place);
    // An object hides objects with the same arguments in schemas later in the path.
    let mut visible: Vec<ObjectRow> = Vec::new();
    for row in rows {
        let hides = |seen: &ObjectRow| seen.schema != row.schema && seen.arguments == row.arguments;
        if !visible.iter().any(hides) {
            visible.push(row);
        }
    }
    visible
}

fn is_visible(class: ObjectClass, row: &ObjectRow, catalog: &dyn TypeCatalog) -> bool {
    found(class, &row.name, catalog).iter().any(|seen| seen.oid == row.oid)
}

/// Whether the name alone, without arguments, identifies this object.
fn is_alone(class: ObjectClass, row: &ObjectRow, catalog: &dyn TypeCatalog) -> bool {
    matches!(found(class, &row.name, catalog).as_slice(), [only] if only.oid == row.oid)
}

/// The schema name, followed by a point.
fn schema(row: &ObjectRow, options: &TextOptions<'_>, out: &mut Vec<u8>) {
    if let Some(schema) = options.catalog.object(ObjectClass::Schema, row.schema) {
        write_identifier(&schema.name, options.major, out);
        out.push(b'.');
    }
}

/// Prints an OID as the given object identifier type.
pub(super) fn reg_type(kind: RegType, oid: Oid, options: &TextOptions<'_>, out: &mut Vec<u8>) {
    use ObjectClass::{Operator, Procedure};
    let class = match kind {
        RegType::Proc | RegType::Procedure => Procedure,
        RegType::Oper | RegType::Operator => Operator,
        RegType::Type => ObjectClass::Type,
        RegType::Named(class) => class,
    };
    if oid == Oid(0) {
        return out.push(if class == Operator { b'0' } else { b'-' });
    }
    let Some(row) = options.catalog.object(class, oid) else {
        return digits::unsigned(u64::from(oid.0), out);
    };
    match kind {
        RegType::Type => format_type(oid, options, out),
        RegType::Proc | RegType::Oper => {
            if !is_alone(class, &row, options.catalog) {
                schema(&row, options, out);
            }
        }
        RegType::Procedure | RegType::Operator | RegType::Named(_) => {
            if row.schema != Oid(0) && !is_visible(class, &row, options.catalog) {
                schema(&row, options, out);
            }
        }
    }
    match class {
        ObjectClass::Type => return,
        Operator => out.extend_from_slice(&row.name),
        _ => write_identifier(&row.name, options.major, out),
    }
    if matches!(kind, RegType::Procedure | RegType::Operator) {
        arguments(&row, class == Operator, options, out);
    }
}

/// `(integer,text)`.
fn arguments(row: &ObjectRow, operator: bool, options: &TextOptions<'_>, out: &mut Vec<u8>) {
    out.push(b'(');
    for (at, &argument) in row.arguments.iter().enumerate() {
        digits::separate(at, b",", out);
        if operator && argument == Oid(0) {
            out.extend_from_slice(b"NONE");
        } else {
            format_type(argument, options, out);
        }
    }
    out.push(b')');
}

/// A type name in SQL spelling, as `format_type` without a type modifier.
pub(crate) fn format_type(oid: Oid, options: &TextOptions<'_>, out: &mut Vec<u8>) {
    if oid == Oid(0) {
        return out.push(b'-');
    }
    let Some(row) = options.catalog.type_row(oid) else {
        return out.extend_from_slice(b"???");
    };
    if row.is_array() {
        // The element type of an array can't be an array type. If a damaged catalog claims that it
        // is, we must stop here, because otherwise the recursion might never end. (The element type
        // can be a domain over an array, but that is not itself an array type.)
        let element = options.catalog.type_row(row.element);
        if element.is_some_and(|element| !element.is_array()) {
            format_type(row.element, options, out);
            return out.extend_from_slice(b"[]");
        }
    }
    let sql = match oid.0 {
        16 => "boolean",
        20 => "bigint",
        21 => "smallint",
        23 => "integer",
        114 => "json",
        700 => "real",
        701 => "double precision",
        1042 => "character",
        1043 => "character varying",
        1083 => "time without time zone",
        1114 => "timestamp without time zone",
        1184 => "timestamp with time zone",
        1186 => "interval",
        1266 => "time with time zone",
        1560 => "bit",
        1562 => "bit varying",
        1700 => "numeric",
        _ => "",
    };
    if !sql.is_empty() {
        return out.extend_from_slice(sql.as_bytes());
    }
    let object = ObjectRow { oid, schema: row.schema, name: row.name, arguments: Vec::new() };
    if !is_visible(ObjectClass::Type, &object, options.catalog) {
        schema(&object, options, out);
    }
    write_identifier(&object.name, options.major, out);
}

/// The privilege letters, lowest bit first (`ACL_ALL_RIGHTS_STR`).
const PRIVILEGES: &[u8] = b"arwdDxtXUCTcsAm";

/// Prints an `aclitem` as `grantee=privileges/grantor`. The size of an aclitem is 12 bytes in
/// PostgreSQL 15, and 16 bytes since PostgreSQL 16.
pub(super) fn aclitem(
    value: &[u8],
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let mut reader = Reader::aligned("aclitem", value);
    let (grantee, grantor) = (Oid(reader.read::<u32>()?), Oid(reader.read::<u32>()?));
    let (rights, options_granted) = match value.len() {
        12 => {
            let word = reader.read::<u32>()?;
            (word & 0xFFFF, word >> 16)
        }
        _ => (reader.read::<u32>()?, reader.read::<u32>()?),
    };
    reader.end()?;
    if (rights | options_granted) >> PRIVILEGES.len() != 0 {
        return Err(reader.error("a privilege without a letter"));
    }
    if grantee != Oid(0) {
        role(grantee, options, out);
    }
    out.push(b'=');
    for (bit, &letter) in PRIVILEGES.iter().enumerate() {
        if rights >> bit & 1 == 1 {
            out.push(letter);
        }
        if options_granted >> bit & 1 == 1 {
            out.push(b'*');
        }
    }
    out.push(b'/');
    role(grantor, options, out);
    Ok(())
}

/// Prints a role name, which is quoted if it contains anything other than letters, digits and `_`.
fn role(oid: Oid, options: &TextOptions<'_>, out: &mut Vec<u8>) {
    match options.catalog.object(ObjectClass::Role, oid) {
        None => digits::unsigned(u64::from(oid.0), out),
        Some(row) if row.name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
            out.extend_from_slice(&row.name);
        }
        Some(row) => in_quotes(&row.name, out),
    }
}
