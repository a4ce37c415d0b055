//! All objects that a name can stand for, whatever their arguments: what the input functions of
//! `regproc`, `regoper` and the other `reg*` types look up.
//!
//! An object hides those with the same arguments whose schema is searched later.

use trunkline_engine::catalog::Procedure;
use trunkline_format::Oid;
use trunkline_format::catalog::OperatorRow;

use super::namespace::{Namespace, ObjectName};
use super::search_path::schema_named;

impl<'c> Namespace<'c> {
    /// The functions, procedures, aggregates and window functions with this name
    /// (`FuncnameGetCandidates` for any number of arguments). None if its schema doesn't exist.
    pub fn functions_named(&self, name: ObjectName<'_>) -> Vec<&'c Procedure> {
        let Some(stored) = self.catalog().encoding().encode(name.name) else { return Vec::new() };
        let rows = self.catalog().procedures_named(&stored);
        self.not_hidden(name, rows, |row| row.schema, |row| row.arguments.clone())
    }

    /// The operators with this name (`OpernameGetCandidates` for any kind).
    pub fn operators_named(&self, name: ObjectName<'_>) -> Vec<&'c OperatorRow> {
        let rows = self.catalog().operators_named(name.name.as_bytes());
        self.not_hidden(name, rows, |row| row.schema, |row| (row.left, row.right))
    }

    /// The object with this name among `all`, which are given as OID, schema and stored name.
    pub fn object_named<'r>(
        &self,
        name: ObjectName<'_>,
        all: impl Iterator<Item = (Oid, Oid, &'r [u8])>,
    ) -> Option<Oid> {
        let stored = self.catalog().encoding().encode(name.name)?;
        let named = all.filter(|(_, _, other)| **other == *stored);
        let found = self.not_hidden(name, named, |(_, schema, _)| *schema, |_| ());
        found.first().map(|(oid, ..)| *oid)
    }

    /// Those of `rows` that the name can stand for, without hidden ones.
    fn not_hidden<R, A: PartialEq>(
        &self,
        name: ObjectName<'_>,
        rows: impl Iterator<Item = R>,
        schema: impl Fn(&R) -> Oid,
        arguments: impl Fn(&R) -> A,
    ) -> Vec<R> {
        let given = match name.schema {
            Some(schema) => match schema_named(self.catalog(), schema) {
                Some(found) => Some(found),
                None => return Vec::new(),
            },
            None => None,
        };
        let mut placed: Vec<(usize, R)> =
            (rows).filter_map(|row| Some((self.place(given, schema(&row))?, row))).collect();
        placed.sort_by_key(|(place, _)| *place);
        let mut found: Vec<R> = Vec::new();
        for (_, row) in placed {
            if !found.iter().any(|other| arguments(other) == arguments(&row)) {
                found.push(row);
            }
        }
        found
    }
}
