//! Literals that name objects: `'pg_class'::regclass`.
//!
//! The `reg*` types hold OIDs. A literal of such a type is looked up when the statement is bound, and
//! becomes a constant. A literal in digits is the OID itself.

use trunkline_format::Oid;
use trunkline_format::text_output::{Base, RegType};

use super::binder::Binder;
use crate::error::SqlError;
use crate::resolve::named_object;

impl Binder<'_> {
    /// The object that a literal of a `reg*` type names. `None` if the type is another one, or if the
    /// literal isn't a name.
    pub(super) fn named_object(&self, text: &str, ty: Oid) -> Result<Option<Oid>, SqlError> {
        let Some(Base::RegType(kind)) = Base::from_oid(ty) else { return Ok(None) };
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_operator = matches!(kind, RegType::Oper | RegType::Operator);
        if is_number || (text == "-" && !is_operator) {
            return Ok(None);
        }
        named_object(self.names, kind, text).map(Some)
    }
}
