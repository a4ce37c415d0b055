//! Default arguments of functions.
//!
//! The catalog has them as node trees. As the query of a view, a default is printed as SQL, and that text
//! is bound. For example, `make_interval(days => 1)` gets six zeros.

use trunkline_format::Oid;
use trunkline_format::text_output::TextOptions;

use super::binder::{Binder, Context, Place};
use super::level::Level;
use super::scope::Scope;
use crate::bound::Expr;
use crate::error::SqlError;
use crate::functions::Deparser;
use crate::syntax::{Expression, RawStatement, SelectBody, Statement, parse};

impl Binder<'_> {
    /// The arguments that a call leaves out: for each parameter, given by its place and its type, its
    /// default.
    pub(super) fn default_arguments(
        &mut self,
        function: Oid,
        omitted: &[(usize, Oid)],
    ) -> Result<Vec<(usize, Expr)>, SqlError> {
        if omitted.is_empty() {
            return Ok(Vec::new());
        }
        let catalog = self.catalog();
        let missing = || SqlError::internal("a default of an argument is missing");
        let procedure = catalog.procedure(function).ok_or_else(missing)?;
        let options = TextOptions::new(self.input.major, self.input.catalog);
        let stored = procedure.defaults().ok_or_else(missing)?;
        let texts = Deparser::for_binding(options, catalog).elements(stored)?;
        // They are those of the last parameters.
        let first = procedure.arguments.len().saturating_sub(texts.len());
        let mut defaults = Vec::with_capacity(omitted.len());
        for &(place, oid) in omitted {
            let text = place.checked_sub(first).and_then(|at| texts.get(at));
            let value = self.printed_expression(text.ok_or_else(missing)?)?;
            defaults.push((place, self.coerce_implicit(value, self.type_of(oid))?));
        }
        Ok(defaults)
    }

    /// Binds an expression without columns that was printed for this.
    fn printed_expression(&mut self, text: &str) -> Result<Expr, SqlError> {
        let parsed = parse(&format!("SELECT {text}"))?;
        let node = only_target(&parsed)?;
        let (scope, mut level) = (Scope::default(), Level::default());
        let mut context = Context::new(&scope, Place::From, &mut level);
        let bound = self.with_catalog_names(|binder| binder.expression(node, &mut context));
        bound.map_err(SqlError::without_position)
    }
}

/// The only expression of a `SELECT`.
fn only_target(parsed: &[RawStatement]) -> Result<&Expression, SqlError> {
    if let [RawStatement { statement: Statement::Select(select), .. }] = parsed
        && let SelectBody::Select(core) = &select.body
        && let [target] = &*core.targets
    {
        return Ok(&target.expression);
    }
    Err(SqlError::internal("a default argument is one expression"))
}
