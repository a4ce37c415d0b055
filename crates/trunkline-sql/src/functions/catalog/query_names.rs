//! Names of the tables and columns of a stored query.
//!
//! A stored query refers to columns by numbers: `VAR` has the place of a table in the query's list and
//! the place of the column in that table. To print it, each table gets a name that no other table in
//! sight has (`set_rtable_names`): `t`, and the second one `t_1`.

use trunkline_format::node_tree::{Node, NodeValue};

use super::node_fields::damaged;
use crate::error::SqlError;

/// The longest name in bytes: `NAMEDATALEN` without the zero at the end.
const NAME_MAX: usize = 63;

/// What an entry of the list of tables is (`RTEKind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableKind {
    Relation,
    Subquery,
    Join,
    Function,
    XmlTable,
    Values,
    Cte,
    /// The columns of `GROUP BY`, since version 18.
    Group,
    Other,
}

/// A table of a query.
pub(super) struct TableNames<'a> {
    pub(super) entry: &'a Node,
    pub(super) kind: TableKind,
    /// A join without an alias has none.
    pub(super) name: Option<String>,
    /// By number. A dropped column has no name.
    pub(super) columns: Vec<Option<String>>,
    /// Whether the names of the columns are printed after that of the table.
    pub(super) lists_columns: bool,
}

/// The names of one query, and those of the queries around it.
pub(super) struct QueryNames<'a> {
    pub(super) outer: Option<&'a QueryNames<'a>>,
    pub(super) query: &'a Node,
    pub(super) tables: Vec<TableNames<'a>>,
}

impl<'a> QueryNames<'a> {
    /// Whether columns are printed with the names of their tables: not if there is only one table.
    pub(super) fn has_prefixes(&self) -> bool {
        let tables = self.tables.iter().filter(|table| table.kind != TableKind::Group);
        self.outer.is_some() || tables.count() != 1
    }

    /// A name that no table of this query or of one around it has.
    pub(super) fn unique(&self, name: Option<String>) -> Option<String> {
        let name = name?;
        let is_taken = |name: &str| {
            let mut levels = std::iter::successors(Some(self), |level| level.outer);
            levels.any(|level| level.tables.iter().any(|table| table.name.as_deref() == Some(name)))
        };
        if !is_taken(&name) {
            return Some(name);
        }
        (1..).map(|number| numbered(&name, number)).find(|name| !is_taken(name))
    }

    /// The query that is this number of levels around this one.
    pub(super) fn level(&self, levels: i64) -> Result<&QueryNames<'a>, SqlError> {
        let mut found = self;
        for _ in 0..levels {
            found = found.outer.ok_or_else(|| damaged("level of a query"))?;
        }
        Ok(found)
    }

    /// The table with this number, from 1.
    pub(super) fn table(&self, number: i64) -> Result<&TableNames<'a>, SqlError> {
        let at = usize::try_from(number - 1).ok();
        at.and_then(|at| self.tables.get(at)).ok_or_else(|| damaged("varno"))
    }
}

/// The kind of an entry.
pub(super) fn kind_of(entry: &Node) -> TableKind {
    match entry.number("rtekind") {
        Some(0) => TableKind::Relation,
        Some(1) => TableKind::Subquery,
        Some(2) => TableKind::Join,
        Some(3) => TableKind::Function,
        Some(4) => TableKind::XmlTable,
        Some(5) => TableKind::Values,
        Some(6) => TableKind::Cte,
        Some(9) => TableKind::Group,
        _ => TableKind::Other,
    }
}

/// The strings of a list, without their quotes.
pub(super) fn strings(values: &[NodeValue]) -> impl Iterator<Item = &[u8]> {
    values.iter().map(|value| match value {
        NodeValue::Token(token) => {
            let inner = token.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
            inner.unwrap_or(token)
        }
        _ => &[],
    })
}

/// A name with a number, which is no longer than names can be: the parser would cut off the number.
fn numbered(name: &str, number: usize) -> String {
    let suffix = format!("_{number}");
    let length = name.floor_char_boundary(NAME_MAX - suffix.len());
    format!("{}{suffix}", name.get(..length).unwrap_or_default())
}
