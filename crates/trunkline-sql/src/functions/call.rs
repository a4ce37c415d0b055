//! A function call on a batch of rows.
//!
//! Most kernels are written row by row: [`Argument::row`] hides whether an argument is a constant, and
//! [`Call::rows`] says how many results are wanted.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use trunkline_engine::time_zone;
use trunkline_format::Oid;
use trunkline_format::text_input::{DateOrder, InputNames, InputOptions};
use trunkline_format::text_output::{
    ByteaOutput, IntervalStyle, Record, RecordColumn, TextOptions, TimeZone, TypeCatalog,
};

use super::collation::{Collation, Collations};
use crate::catalog::SessionCatalog;
use crate::error::{SqlError, SqlState};

/// Computes the results of one call, one for each row.
///
/// A kernel of a strict function returns null for rows in which any argument is null, so the caller
/// doesn't check that.
pub type Kernel = fn(&Call<'_>) -> Result<ArrayRef, SqlError>;

/// The arguments of a call, and everything that its result depends on.
#[derive(Debug)]
pub struct Call<'a> {
    /// The arguments, in order. A variadic argument is one array value, as in PostgreSQL.
    pub arguments: &'a [Argument],
    /// The number of results.
    pub rows: usize,
    /// The types of the arguments after polymorphic types have been resolved.
    pub argument_types: &'a [Oid],
    /// The type of the result.
    pub result_type: Oid,
    /// The input collation; 0 if there is none.
    pub collation: Oid,
    /// The rows that a column definition list describes; `None` if there is none.
    pub row: Option<&'a DefinedRow>,
    /// The settings of the session.
    pub settings: &'a CallSettings,
}

/// The rows that a column definition list describes, as in `json_to_record(…) AS t(a int)`.
#[derive(Debug)]
pub struct DefinedRow {
    /// The types of the columns, with their modifiers.
    pub record: Arc<Record>,
    /// The columns as an anonymous record describes them.
    pub columns: Vec<RecordColumn>,
}

impl Call<'_> {
    /// What we know about the input collation. `what` needs it, such as `lower() function`.
    ///
    /// # Errors
    /// The expression has no collation, or a collation that doesn't exist.
    pub fn collation(&self, what: &str) -> Result<Collation, SqlError> {
        if let Some(collation) = self.settings.collations.get(&self.collation) {
            return Ok(*collation);
        }
        if self.collation == Oid(0) {
            let message = format!("could not determine which collation to use for {what}");
            return Err(SqlError::new(SqlState::INDETERMINATE_COLLATION, message)
                .with_hint("Use the COLLATE clause to set the collation explicitly."));
        }
        Err(SqlError::unsupported(format!(
            "collation {} is not supported by trunkline",
            self.collation
        )))
    }

    /// Checks that texts are equal only if their bytes are.
    ///
    /// # Errors
    /// The collation is nondeterministic. Otherwise, as for [`Call::collation`].
    pub fn check_equality(&self) -> Result<(), SqlError> {
        if self.collation("string comparison")?.is_deterministic() {
            return Ok(());
        }
        let what = "comparing texts in a nondeterministic collation is not supported by trunkline";
        Err(SqlError::unsupported(what).with_hint(COLLATE_HINT))
    }

    /// Checks that texts are ordered as their bytes are.
    ///
    /// # Errors
    /// The collation orders in another way. Otherwise, as for [`Call::collation`].
    pub fn check_order(&self) -> Result<(), SqlError> {
        if self.collation("string comparison")?.orders_by_bytes() {
            return Ok(());
        }
        let what = "ordering texts in this collation is not supported by trunkline";
        Err(SqlError::unsupported(what).with_hint(COLLATE_HINT))
    }
}

const COLLATE_HINT: &str = "Add COLLATE \"C\" to compare the bytes of the texts.";

/// One argument of a call: either a value for each row, or the same value for all rows.
#[derive(Debug, Clone)]
pub struct Argument {
    array: ArrayRef,
    is_constant: bool,
}

impl Argument {
    /// An argument with a value for each row.
    pub fn column(array: ArrayRef) -> Self {
        Self { array, is_constant: false }
    }

    /// An argument that is the same in all rows: an array of one value.
    ///
    /// # Panics
    /// If the array doesn't have exactly one value.
    pub fn constant(array: ArrayRef) -> Self {
        assert_eq!(array.len(), 1, "a constant is an array of one value");
        Self { array, is_constant: true }
    }

    /// The array. If the argument is a constant, it has one value.
    pub fn array(&self) -> &ArrayRef {
        &self.array
    }

    /// Whether the value is the same in all rows.
    pub fn is_constant(&self) -> bool {
        self.is_constant
    }

    /// Where in the array the value of row `row` is.
    #[inline]
    pub fn row(&self, row: usize) -> usize {
        if self.is_constant { 0 } else { row }
    }

    /// Whether the value of row `row` is null.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.array.is_null(self.row(row))
    }
}

/// Functions that see the server: its buffers, its I/O, its sessions. We do no I/O in this crate, so
/// the crate that executes statements implements them. A function is known by `pg_proc.prosrc`.
pub trait ServerFunctions: Send + Sync {
    /// All rows of one call of a set-returning function, with the arguments of row `row`: an array for
    /// each column.
    ///
    /// # Errors
    /// Those of the function; 0A000 if it isn't implemented.
    fn rows(
        &self,
        function: &str,
        arguments: &[Argument],
        row: usize,
    ) -> Result<Vec<ArrayRef>, SqlError>;

    /// The results of a function for `rows` rows.
    ///
    /// # Errors
    /// As for [`ServerFunctions::rows`].
    fn values(
        &self,
        function: &str,
        arguments: &[Argument],
        rows: usize,
    ) -> Result<ArrayRef, SqlError>;
}

/// The settings and catalogs that results depend on. They don't change during a statement.
#[derive(Clone)]
pub struct CallSettings {
    /// The server's major version, from 15 to 19.
    pub major: u32,
    /// The catalogs that names of types and objects are looked up in.
    pub catalog: Arc<dyn TypeCatalog>,
    /// The catalogs as the session sees them, for functions such as `pg_table_is_visible`. `None` if
    /// there is no database, as in tests of functions.
    pub session: Option<Arc<SessionCatalog>>,
    /// The collations of the database.
    pub collations: Arc<Collations>,
    /// `TimeZone`.
    pub zone: Arc<dyn TimeZone>,
    /// `extra_float_digits`.
    pub extra_float_digits: i8,
    /// `bytea_output`.
    pub bytea_output: ByteaOutput,
    /// The order of the fields in `DateStyle`.
    pub date_order: DateOrder,
    /// `IntervalStyle`.
    pub interval_style: IntervalStyle,
    /// `now()`: when the transaction started, in microseconds since 2000.
    pub transaction_start: i64,
    /// `statement_timestamp()`, in microseconds since 2000.
    pub statement_start: i64,
    /// What functions can see of the server; `None` where there is none.
    pub server: Option<Arc<dyn ServerFunctions>>,
}

impl std::fmt::Debug for CallSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallSettings").field("major", &self.major).finish_non_exhaustive()
    }
}

impl CallSettings {
    /// The options for reading values.
    pub fn input_options(&self) -> InputOptions<'_> {
        InputOptions {
            major: self.major,
            catalog: &*self.catalog,
            names: match &self.session {
                Some(session) => &**session,
                None => &Zones,
            },
            zone: &*self.zone,
            date_order: self.date_order,
            interval_style: self.interval_style,
            now_us: self.transaction_start,
        }
    }

    /// The catalogs as the session sees them.
    ///
    /// # Errors
    /// XX000: there is no database.
    pub fn session(&self) -> Result<&SessionCatalog, SqlError> {
        self.session.as_deref().ok_or_else(|| SqlError::internal("a call outside of a database"))
    }

    /// The options for printing values.
    pub fn text_options(&self) -> TextOptions<'_> {
        TextOptions {
            major: self.major,
            catalog: &*self.catalog,
            zone: &*self.zone,
            extra_float_digits: self.extra_float_digits,
            bytea_output: self.bytea_output,
            interval_style: self.interval_style,
        }
    }
}

/// Finds time zones by name, but no objects.
pub(crate) struct Zones;

impl InputNames for Zones {
    fn time_zone(&self, name: &str) -> Option<Arc<dyn TimeZone>> {
        time_zone::zone(name)
    }
}
