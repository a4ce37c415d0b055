//! Literals that name objects: `'pg_class'::regclass`.
//!
//! The `reg*` types hold OIDs. A literal of such a type is looked up when the statement is bound, and
//! becomes a constant. A literal in digits is the OID itself.

use trunkline_engine::catalog::QualifiedName;
use trunkline_format::Oid;

use super::binder::Binder;
use crate::catalog::{ObjectName, oids};
use crate::error::{SqlError, SqlState};
use crate::syntax::{ExpressionKind, SelectBody, Statement, parse};

/// `regnamespace`.
const REGNAMESPACE: Oid = Oid(4089);

impl Binder<'_> {
    /// The object that a literal of a `reg*` type names. `None` if the type is another one, or if the
    /// literal isn't a name.
    pub(super) fn named_object(&self, text: &str, ty: Oid) -> Result<Option<Oid>, SqlError> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number || text == "-" {
            return Ok(None);
        }
        match ty {
            oids::REGCLASS => {
                let name = qualified(text)?;
                if let Some(found) = self.names.virtual_relation(shown(&name)) {
                    return Ok(Some(found.oid));
                }
                let found = self.names.relation_named(shown(&name))?;
                Ok(Some(found.oid))
            }
            oids::REGTYPE => self.named_type_text(text).map(Some),
            REGNAMESPACE => {
                let name = qualified(text)?;
                self.names.schema(&name.1).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// A type as SQL spells it.
    fn named_type_text(&self, text: &str) -> Result<Oid, SqlError> {
        let wrong = || {
            let message = format!("invalid type name \"{text}\"");
            SqlError::new(SqlState::SYNTAX_ERROR, message)
        };
        // The grammar of types is that of casts.
        let parsed = parse(&format!("select null::{text}")).map_err(|_| wrong())?;
        let [statement] = &*parsed else { return Err(wrong()) };
        let Statement::Select(select) = &statement.statement else { return Err(wrong()) };
        let SelectBody::Select(core) = &select.body else { return Err(wrong()) };
        match &*core.targets {
            [target] => match &target.expression.kind {
                ExpressionKind::TypeCast { type_name, .. } if target.name.is_none() => {
                    // The position would be one in the text made above.
                    self.named_type(type_name)
                        .map(|ty| ty.oid)
                        .map_err(|error| SqlError::new(error.code(), error.message()))
                }
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }
}

/// Schema and name.
type Parts = (Option<String>, String);

fn shown(parts: &Parts) -> ObjectName<'_> {
    ObjectName { schema: parts.0.as_deref(), name: &parts.1 }
}

/// Splits a name as the input functions do: folded to lower case unless quoted.
fn qualified(text: &str) -> Result<Parts, SqlError> {
    let wrong = || SqlError::new(SqlState::INVALID_NAME, "invalid name syntax");
    let name = QualifiedName::parse(text.as_bytes()).map_err(|_| wrong())?;
    let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| wrong());
    let schema = name.schema.as_deref().map(utf8).transpose()?;
    Ok((schema, utf8(&name.relation)?))
}
