//! **The catalogs that define what an expression means**: functions, operators, casts, aggregates,
//! operator families, collations.
//!
//! PostgreSQL has no built-in meaning for `a + b`: it looks for an operator of that name in
//! `pg_operator`, and for casts of the operands in `pg_cast`. Only SQL needs these catalogs, and they
//! are among the largest, so we load them on the first query, all together, and then keep them for as
//! long as the database is open.
//!
//! ```no_run
//! # use trunkline_engine::catalog::{CatalogError, Database};
//! # use trunkline_engine::pool::Backend;
//! fn count_functions(database: &Database, backend: &mut Backend) -> Result<usize, CatalogError> {
//!     Ok(database.expression_catalogs(backend)?.procedures().len())
//! }
//! ```

use trunkline_format::catalog::{
    AggregateRow, CastRow, CollationRow, FamilyFunctionRow, FamilyOperatorRow, LanguageRow,
    OperatorFamilyRow, OperatorRow,
};

use super::definition_catalogs::DefinitionCatalogs;
use super::procedure::Procedure;

/// The rows of these catalogs, in no particular order.
#[derive(Debug)]
pub struct ExpressionCatalogs {
    pub(super) procedures: Vec<Procedure>,
    pub(super) aggregates: Vec<AggregateRow>,
    pub(super) operators: Vec<OperatorRow>,
    pub(super) casts: Vec<CastRow>,
    pub(super) families: Vec<OperatorFamilyRow>,
    pub(super) family_operators: Vec<FamilyOperatorRow>,
    pub(super) family_functions: Vec<FamilyFunctionRow>,
    pub(super) collations: Vec<CollationRow>,
    pub(super) languages: Vec<LanguageRow>,
    pub(super) definitions: Result<DefinitionCatalogs, String>,
}

impl ExpressionCatalogs {
    /// `pg_proc`.
    pub fn procedures(&self) -> &[Procedure] {
        &self.procedures
    }

    /// `pg_aggregate`.
    pub fn aggregates(&self) -> &[AggregateRow] {
        &self.aggregates
    }

    /// `pg_operator`.
    pub fn operators(&self) -> &[OperatorRow] {
        &self.operators
    }

    /// `pg_cast`.
    pub fn casts(&self) -> &[CastRow] {
        &self.casts
    }

    /// `pg_opfamily`.
    pub fn families(&self) -> &[OperatorFamilyRow] {
        &self.families
    }

    /// `pg_amop`.
    pub fn family_operators(&self) -> &[FamilyOperatorRow] {
        &self.family_operators
    }

    /// `pg_amproc`.
    pub fn family_functions(&self) -> &[FamilyFunctionRow] {
        &self.family_functions
    }

    /// `pg_collation`.
    pub fn collations(&self) -> &[CollationRow] {
        &self.collations
    }

    /// `pg_language`.
    pub fn languages(&self) -> &[LanguageRow] {
        &self.languages
    }

    /// The catalogs that define and describe objects.
    ///
    /// # Errors
    /// Why they couldn't be loaded. Most queries don't need them, so damage in them doesn't matter
    /// before that.
    pub fn definitions(&self) -> Result<&DefinitionCatalogs, &str> {
        self.definitions.as_ref().map_err(String::as_str)
    }
}
