//! The statements that `--explain` executes: `EXPLAIN` of each query.
//!
//! `set work_mem = '1MB'; select 1` becomes `set work_mem = '1MB'; EXPLAIN select 1`. Other statements
//! stay, because queries may depend on them. Messages show the text with `EXPLAIN`.

use std::borrow::Cow;

use trunkline_sql::SqlError;
use trunkline_sql::syntax::{RawStatement, Statement, parse};

use super::arguments::Explain;

/// The text with `EXPLAIN` in front of its queries, and its statements.
///
/// # Errors
/// The text can't be parsed.
pub(super) fn explained(
    text: &str,
    kind: Explain,
) -> Result<(Cow<'_, str>, Vec<RawStatement>), SqlError> {
    let statements = parse(text)?;
    let queries = statements.iter().filter(|one| matches!(one.statement, Statement::Select(_)));
    let starts = queries.filter_map(|one| usize::try_from(one.span.start).ok());
    let prefix = match kind {
        Explain::Plan => "EXPLAIN ",
        Explain::Analyze => "EXPLAIN (ANALYZE, BUFFERS, IO) ",
    };
    let mut changed = String::with_capacity(text.len() + prefix.len());
    let mut copied = 0;
    for start in starts {
        changed += text.get(copied..start).unwrap_or_default();
        changed += prefix;
        copied = start;
    }
    changed += text.get(copied..).unwrap_or_default();
    let statements = parse(&changed)?;
    Ok((Cow::Owned(changed), statements))
}
