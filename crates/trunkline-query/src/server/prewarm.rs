//! `pg_prewarm(relation, mode, fork, first_block, last_block)`, with the checks and messages of the
//! extension.

use std::ops::RangeInclusive;

use trunkline_engine::catalog::RelationInfo;
use trunkline_engine::prewarm::{advise_blocks, read_blocks};
use trunkline_engine::read_stream::{BlockRange, ReadStream, StreamOptions};
use trunkline_engine::storage::Relation;
use trunkline_format::Fork;
use trunkline_format::catalog::RelationKind;
use trunkline_sql::functions::Argument;
use trunkline_sql::{SqlError, SqlState};

use super::view::{ServerView, blocking, int8, oid, text};
use crate::scan::{cancelled, read_error, storage_error};

/// What happens to the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Read into the buffer pool.
    Buffer,
    /// Read into the page cache.
    Read,
    /// Have the kernel read into the page cache.
    Prefetch,
}

impl ServerView {
    /// Loads the blocks for the arguments of a row, and returns their number.
    pub(super) fn prewarm(&self, arguments: &[Argument], row: usize) -> Result<i64, SqlError> {
        let is_given = |at: usize| at < arguments.len();
        let relation = oid(arguments, 0, row).ok_or_else(|| null("relation cannot be null"))?;
        let mode = match (is_given(1), text(arguments, 1, row)) {
            (false, _) | (true, Some("buffer")) => Mode::Buffer,
            (true, None) => return Err(null("prewarm type cannot be null")),
            (true, Some("read")) => Mode::Read,
            (true, Some("prefetch")) => Mode::Prefetch,
            (true, Some(_)) => {
                let hint = "Valid prewarm types are \"prefetch\", \"read\", and \"buffer\".";
                return Err(invalid("invalid prewarm type").with_hint(hint));
            }
        };
        let fork = match (is_given(2), text(arguments, 2, row)) {
            (false, _) => Fork::Main,
            (true, None) => return Err(null("relation fork cannot be null")),
            (true, Some(name)) => fork_named(name)?,
        };
        let (first, last) = (int8(arguments, 3, row), int8(arguments, 4, row));
        blocking(|| self.load(relation, mode, fork, first, last))
    }

    fn load(
        &self,
        oid: u32,
        mode: Mode,
        fork: Fork,
        first: Option<i64>,
        last: Option<i64>,
    ) -> Result<i64, SqlError> {
        let relation = self.relation(oid)?;
        let main = self.database.files(relation).ok_or_else(|| self.no_storage(relation))?;
        let files = main.storage().relation(main.locator(), fork);
        if !files.path(0).exists() {
            let message = match fork {
                Fork::Main => return Err(storage_error(&files.missing(0))),
                fork => format!("fork \"{fork}\" does not exist for this relation"),
            };
            return Err(invalid(&message));
        }
        let blocks = files.blocks().map_err(|error| storage_error(&error))?;
        let Some(range) = range(blocks, first, last)? else { return Ok(0) };
        let (start, end) = (*range.start(), range.end().saturating_add(1));
        let stopped = || self.cancellation.is_cancelled();
        let loaded = match mode {
            Mode::Buffer => return self.load_into_pool(&files, range),
            Mode::Read => read_blocks(&files, start..end, stopped),
            Mode::Prefetch => advise_blocks(&files, start..end, stopped),
        };
        match loaded {
            _ if stopped() => Err(cancelled()),
            Ok(loaded) => Ok(loaded.into()),
            Err(error) => Err(storage_error(&error)),
        }
    }

    fn load_into_pool(
        &self,
        files: &Relation,
        blocks: RangeInclusive<u32>,
    ) -> Result<i64, SqlError> {
        let mut session = self.session()?;
        let options = StreamOptions::maintenance(&self.io);
        let options = StreamOptions { sequential: true, ..options };
        let source = BlockRange::new(*blocks.start()..blocks.end().saturating_add(1));
        let mut stream = ReadStream::new(&session, files, source, options);
        let mut loaded = 0;
        while stream.next(&mut session).map_err(|error| read_error(&error))?.is_some() {
            loaded += 1;
        }
        Ok(loaded)
    }

    /// The error of a relation without files.
    pub(super) fn no_storage(&self, relation: &RelationInfo) -> SqlError {
        let name = String::from_utf8_lossy(&relation.name);
        let message = format!("relation \"{name}\" does not have storage");
        let kind = match relation.kind {
            RelationKind::View => "views",
            RelationKind::CompositeType => "composite types",
            RelationKind::ForeignTable => "foreign tables",
            RelationKind::PartitionedTable => "partitioned tables",
            RelationKind::PartitionedIndex => "partitioned indexes",
            RelationKind::Table
            | RelationKind::MaterializedView
            | RelationKind::Toast
            | RelationKind::Index
            | RelationKind::Sequence => "temporary relations",
        };
        let detail = format!("This operation is not supported for {kind}.");
        SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).with_detail(detail)
    }
}

fn null(message: &str) -> SqlError {
    SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
}

fn invalid(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// A fork by its name (`forkname_to_number`).
fn fork_named(name: &str) -> Result<Fork, SqlError> {
    let found = Fork::ALL.into_iter().find(|fork| fork.to_string() == name);
    let hint = "Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\".";
    found.ok_or_else(|| invalid("invalid fork name").with_hint(hint))
}

/// The blocks to load; `None` if there are none.
fn range(
    blocks: u32,
    first: Option<i64>,
    last: Option<i64>,
) -> Result<Option<RangeInclusive<u32>>, SqlError> {
    let most = i64::from(blocks) - 1;
    let check = |which: &str, block: i64| {
        let block = u32::try_from(block).ok().filter(|&block| block < blocks);
        let message = format!("{which} block number must be between 0 and {most}");
        block.ok_or_else(|| invalid(&message))
    };
    let first = first.map_or(Ok(0), |block| check("starting", block))?;
    let last = last.map(|block| check("ending", block)).transpose()?;
    let last = last.or(blocks.checked_sub(1));
    Ok(last.filter(|&last| first <= last).map(|last| first..=last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_checked_as_in_the_extension() {
        let check = |blocks, first, last, expected: Result<Option<(u32, u32)>, &str>| {
            let found = range(blocks, first, last);
            let found = found.map(|range| range.map(|range| (*range.start(), *range.end())));
            assert_eq!(
                found.map_err(|error| error.message().to_owned()),
                expected.map_err(str::to_owned)
            );
        };
        check(10, None, None, Ok(Some((0, 9))));
        check(10, Some(3), Some(5), Ok(Some((3, 5))));
        check(10, Some(5), Some(3), Ok(None));
        check(0, None, None, Ok(None));
        check(10, Some(10), None, Err("starting block number must be between 0 and 9"));
        check(10, None, Some(-1), Err("ending block number must be between 0 and 9"));
        check(0, Some(0), None, Err("starting block number must be between 0 and -1"));
    }
}
