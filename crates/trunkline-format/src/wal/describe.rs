//! **Descriptions of records**: what `pg_waldump` prints behind `desc:`.
//!
//! ```text
//!   HOT_UPDATE   old_xmax: 745, old_off: 3, old_infobits: [], flags: 0x20, new_xmax: 0, new_off: 17
//!   ╰ operation ╯ ╰ text ─────────────────────────────────────────────────────────────────────────╯
//! ```
//! The wording is that of PostgreSQL 19, for all versions, so that scripts which know one format
//! can read every log. Managers whose fields we don't decode get the lengths of their data. If a
//! record is shorter than its operation needs, the text ends early and says so.
//!
//! A description is the only place where a record names relations outside of its block references,
//! such as those that a commit drops. The caller may know their names ([`RelationNames`]).

mod btree;
mod files;
mod heap;
mod list;
mod lock_status;
mod log;
mod text;
mod time;
mod transaction;

use crate::control::PgVersion;

use super::record::Record;
use super::resource_manager::{number, operation_name};
pub use text::RelationNames;
use text::Text;

/// What a record does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// The operation. It is `UNKNOWN (70)` if this version has no operation of that number.
    pub operation: String,
    /// The fields of the operation.
    pub text: String,
}

/// Describes a record.
pub fn describe(
    record: &Record<'_>,
    version: PgVersion,
    names: &mut dyn RelationNames,
) -> Description {
    let header = record.header();
    let Some(operation) = operation_name(header, version) else {
        let operation = format!("UNKNOWN ({:X})", header.operation());
        return Description { operation, text: lengths(record) };
    };
    let mut text = Text::new(version, names);
    let described = match header.manager {
        number::XLOG => log::describe(record, version, &mut text),
        number::TRANSACTION => transaction::describe(record, version, &mut text),
        number::STORAGE => files::storage(record, &mut text),
        number::CLOG => files::commit_log(record, version, &mut text),
        number::DATABASE => files::database(record, &mut text),
        number::TABLESPACE => files::tablespace(record, &mut text),
        number::MULTIXACT => lock_status::multixact(record, version, &mut text),
        number::RELMAP => files::relation_map(record, &mut text),
        number::STANDBY => lock_status::standby(record, &mut text),
        number::HEAP2 => heap::heap2(record, version, &mut text),
        number::HEAP => heap::heap(record, version, &mut text),
        number::BTREE => btree::describe(record, version, &mut text),
        number::SEQUENCE => files::sequence(record, &mut text),
        _ => {
            text.push(&lengths(record));
            Some(())
        }
    };
    if described.is_none() {
        text.part(format_args!("the record is too short"));
    }
    Description { operation: operation.to_owned(), text: text.finish() }
}

/// The lengths of a record's data.
fn lengths(record: &Record<'_>) -> String {
    let mut text = format!("{} bytes", record.main_data().len());
    for block in record.blocks() {
        if let Some(data) = block.data {
            text.push_str(&format!(", {} bytes for block {}", data.len(), block.id));
        }
    }
    text
}
