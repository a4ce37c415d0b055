//! Fields of stored nodes, and the errors of printing them.

use trunkline_format::Oid;
use trunkline_format::node_tree::Node;

use crate::error::{SqlError, SqlState};

/// Refuses what can't be printed.
pub(super) fn unsupported(what: &str) -> SqlError {
    SqlError::unsupported(format!("printing {what} is not supported by trunkline"))
}

/// A node tree that isn't what it must be.
pub(super) fn damaged(what: &str) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, format!("invalid node tree: {what}"))
}

/// A field that is an OID.
pub(super) fn oid(node: &Node, field: &str) -> Result<Oid, SqlError> {
    let number = node.number(field).and_then(|number| u32::try_from(number).ok());
    number.map(Oid).ok_or_else(|| damaged(field))
}

/// A field that is a node.
pub(super) fn child<'n>(node: &'n Node, field: &str) -> Result<&'n Node, SqlError> {
    node.child(field).ok_or_else(|| damaged(field))
}

/// The type of an expression; `None` for kinds whose type is not stored.
pub(super) fn type_of(node: &Node) -> Option<Oid> {
    let field = match node.kind() {
        "VAR" => "vartype",
        "CONST" => "consttype",
        "FUNCEXPR" => "funcresulttype",
        "OPEXPR" | "NULLIFEXPR" | "DISTINCTEXPR" => "opresulttype",
        "AGGREF" => "aggtype",
        "WINDOWFUNC" => "wintype",
        "SUBSCRIPTINGREF" => "refrestype",
        "ROW" | "ROWEXPR" => "row_typeid",
        "CASE" | "CASEEXPR" => "casetype",
        "COALESCE" | "COALESCEEXPR" => "coalescetype",
        "MINMAX" | "MINMAXEXPR" => "minmaxtype",
        "ARRAY" | "ARRAYEXPR" => "array_typeid",
        "PARAM" => "paramtype",
        "SQLVALUEFUNCTION" => "type",
        _ => "resulttype",
    };
    oid(node, field).ok()
}
