//! Access lists: `acldefault` and `aclexplode`, with which the information schema shows privileges.
//!
//! An `aclitem` is stored as the role that has privileges, the role that granted them, and a word with
//! a bit for each privilege in its lower half, and a bit for each grant option in its upper half. The
//! word has 32 bits in version 15, and 64 bits since.

use std::fmt;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array};
use trunkline_format::Oid;

use crate::error::{SqlError, SqlState};
use crate::functions::array::{ArrayBuilder, ArrayView, attribute_of};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row};
use crate::functions::set_rows::{NoRows, SetFunction, SetRows};

/// `aclitem`.
const ACLITEM: Oid = Oid(1033);

/// The names of the privileges, by bit (`ACL_INSERT` and so on).
const NAMES: [&str; 15] = [
    "INSERT",
    "SELECT",
    "UPDATE",
    "DELETE",
    "TRUNCATE",
    "REFERENCES",
    "TRIGGER",
    "EXECUTE",
    "USAGE",
    "CREATE",
    "TEMPORARY",
    "CONNECT",
    "SET",
    "ALTER SYSTEM",
    "MAINTAIN",
];

const EXECUTE: u64 = 1 << 7;
const USAGE: u64 = 1 << 8;
const CREATE: u64 = 1 << 9;
const TEMPORARY: u64 = 1 << 10;
const CONNECT: u64 = 1 << 11;

/// The kernels of this module.
pub(in crate::functions) const ACCESS_LISTS: &[(&str, Kernel)] = &[("acldefault_sql", |call| {
    let classes = Reader::<u8>::new(call, 0)?;
    let owners = Reader::<u32>::new(call, 1)?;
    each_row(call.rows, |row| match (classes.get(row), owners.get(row)) {
        (Some(class), Some(owner)) => default_list(call, class, owner).map(Some),
        _ => Ok(None),
    })
})];

/// The set-returning functions of this module.
pub(in crate::functions) const ACCESS_SETS: &[(&str, SetFunction)] = &[("aclexplode", explode)];

/// The list of an object that has none of its own: the privileges of PUBLIC, and of the owner.
fn default_list(call: &Call<'_>, class: u8, owner: u32) -> Result<Vec<u8>, SqlError> {
    let maintain = if call.settings.major >= 17 { 1 << 14 } else { 0 };
    let (public, own) = match class {
        b'c' => (0, 0),
        b'r' => (0, 0x7F | maintain),
        b's' => (0, USAGE | 0b110),
        b'd' => (TEMPORARY | CONNECT, CREATE | TEMPORARY | CONNECT),
        b'f' => (EXECUTE, EXECUTE),
        b'l' | b'T' => (USAGE, USAGE),
        b'L' => (0, 0b110),
        b'n' => (0, USAGE | CREATE),
        b't' => (0, CREATE),
        b'F' | b'S' => (0, USAGE),
        b'p' => (0, (1 << 12) | (1 << 13)),
        _ => {
            let letter = char::from(class);
            let message = format!("unrecognized object type abbreviation: {letter}");
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, message));
        }
    };
    let attribute = attribute_of(ACLITEM, &*call.settings.catalog)?;
    let mut array = ArrayBuilder::new(ACLITEM, attribute);
    for (grantee, privileges) in [(0, public), (owner, own)] {
        if privileges != 0 {
            let mut item = [grantee.to_le_bytes(), owner.to_le_bytes()].concat();
            match call.settings.major {
                15 => item.extend((privileges as u32).to_le_bytes()),
                _ => item.extend(privileges.to_le_bytes()),
            }
            array.push(Some(&item))?;
        }
    }
    array.finish_list()
}

/// A row for each privilege of each role.
fn explode(call: &Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError> {
    let Some(list) = Reader::<&[u8]>::new(call, 0)?.get(row) else { return Ok(Box::new(NoRows)) };
    let attribute = attribute_of(ACLITEM, &*call.settings.catalog)?;
    let (mut grantors, mut grantees) = (Vec::new(), Vec::new());
    let (mut names, mut options) = (StringViewBuilder::new(), Vec::new());
    for item in ArrayView::parse(list)?.elements(attribute)? {
        let Some(item) = item else {
            let message = "ACL arrays must not contain null values";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        let damaged = || SqlError::new(SqlState::DATA_CORRUPTED, "invalid aclitem");
        let word = |at: usize| {
            let bytes = item.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
            bytes.map(|bytes| u32::from_le_bytes(*bytes)).ok_or_else(damaged)
        };
        let (grantee, grantor) = (word(0)?, word(4)?);
        let (privileges, granted) = match item.len() {
            12 => (word(8)? & 0xFFFF, word(8)? >> 16),
            _ => (word(8)?, word(12)?),
        };
        for (bit, name) in NAMES.iter().enumerate() {
            if privileges >> bit & 1 == 1 {
                grantors.push(grantor);
                grantees.push(grantee);
                names.append_value(name);
                options.push(granted >> bit & 1 == 1);
            }
        }
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt32Array::from(grantors)),
        Arc::new(UInt32Array::from(grantees)),
        Arc::new(names.finish()),
        Arc::new(BooleanArray::from(options)),
    ];
    Ok(Box::new(Privileges(Some(columns))))
}

/// The rows, which are few.
struct Privileges(Option<Vec<ArrayRef>>);

impl fmt::Debug for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Privileges")
    }
}

impl SetRows for Privileges {
    fn next_rows(&mut self, rows_max: usize) -> Result<Option<Vec<ArrayRef>>, SqlError> {
        let Some(columns) = self.0.take() else { return Ok(None) };
        let length = columns.first().map_or(0, |column| column.len());
        let count = rows_max.min(length);
        if count == 0 {
            return Ok(None);
        }
        if count < length {
            let rest = columns.iter().map(|column| column.slice(count, length - count));
            self.0 = Some(rest.collect());
        }
        Ok(Some(columns.iter().map(|column| column.slice(0, count)).collect()))
    }
}
