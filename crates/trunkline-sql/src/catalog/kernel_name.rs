//! The name under which we implement a function.
//!
//! A built-in function in C is known by the name of its C function, which is the same in all versions.
//! A built-in function in SQL has no such name, so it is known by its own name and its argument types:
//! `lpad(text,int4)`.

use std::borrow::Cow;

use trunkline_engine::catalog::Procedure;
use trunkline_format::Oid;

use super::oids;
use super::sql_catalog::SqlCatalog;

/// `INTERNALlanguageId`.
const INTERNAL: Oid = Oid(12);

/// `FirstNormalObjectId`: the server's own objects have OIDs below it.
const FIRST_OF_USERS: Oid = Oid(16_384);

/// `SQLlanguageId`.
const SQL: Oid = Oid(14);

impl SqlCatalog {
    /// The name under which a kernel for this function is registered. `None` if the function doesn't
    /// exist, or if it isn't built in, in which case we can't know what it computes.
    pub fn kernel_name(&self, function: Oid) -> Option<Cow<'_, str>> {
        let procedure = self.procedure(function)?;
        match procedure.language {
            INTERNAL => str::from_utf8(procedure.source()).ok().map(Cow::Borrowed),
            SQL if procedure.oid < FIRST_OF_USERS => Some(Cow::Owned(self.spelled(procedure))),
            _ => None,
        }
    }

    /// The names of an aggregate's transition and final functions. The second is empty if there is
    /// none.
    pub fn aggregate_functions(&self, aggregate: Oid) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
        let row = self.aggregate(aggregate)?;
        let last = match row.finish {
            oids::NONE => Cow::Borrowed(""),
            last => self.kernel_name(last)?,
        };
        Some((self.kernel_name(row.transition)?, last))
    }

    fn spelled(&self, procedure: &Procedure) -> String {
        let types = procedure.arguments.iter().map(|oid| {
            let row = self.data_type(*oid);
            row.map_or_else(|| oid.to_string(), |row| self.encoding().decode(&row.name))
        });
        let types: Vec<String> = types.collect();
        format!("{}({})", self.encoding().decode(&procedure.name), types.join(","))
    }
}
