//! What statements of the session are bound with: its search path, and how it reads constants.

use trunkline_format::Oid;
use trunkline_format::text_input::InputOptions;
use trunkline_sql::SqlError;
use trunkline_sql::bind::{BindOptions, Bound, bind};
use trunkline_sql::catalog::Namespace;
use trunkline_sql::syntax::SelectStatement;

use super::session::Session;

impl Session {
    /// Binds a query. Without types, it can't have parameters.
    pub(super) fn bind(
        &self,
        select: &SelectStatement,
        types: Option<&[Oid]>,
    ) -> Result<Bound, SqlError> {
        bind(select, self.bind_options(types))
    }

    /// What the statement is bound with.
    pub(super) fn bind_options<'s>(&'s self, types: Option<&'s [Oid]>) -> BindOptions<'s> {
        let names = Namespace::new(self.database().catalog(), &self.path);
        let (input, nesting) = (self.input_options(), self.nesting);
        BindOptions { names, input, parameters: types, nesting }
    }

    /// Calls a function with what the input of values depends on.
    pub(super) fn with_input_options<R>(&self, read: impl FnOnce(&InputOptions<'_>) -> R) -> R {
        read(&self.input_options())
    }

    fn input_options(&self) -> InputOptions<'_> {
        self.settings.input_options()
    }
}
