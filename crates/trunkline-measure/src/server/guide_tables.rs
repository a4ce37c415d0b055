//! **The tuning guide's tables**, created in a cluster of our own: `uniform` and `linear_10`.
//!
//! ```text
//!   a int     the indexed column: random, or the row's position with noise of 10 % of the table
//!   b int     the row's number, which queries add up
//!   pad text  192 bytes, so that 34 rows fill a page
//! ```
//! The values come from a hash of the row's number and a seed, so they are the same in each version
//! of the server. Which blocks a range query reads, and in which order, is asked from the server
//! itself: our scans then request exactly the blocks that the server's request.

use trunkline_aio::facade::Arc;
use trunkline_format::BlockNo;

use super::error::ServerError;
use super::session::{Session, force};
use crate::access::{Dataset, Scan};
use crate::row_sum::Visits;

/// Rows of one unit of the scale.
pub const ROWS_PER_SCALE: u64 = 100_000;

/// Bytes of a row with its part of the index, in both tables.
const ROW_BYTES: u64 = 2 * 270;

/// Bytes of an empty cluster with its log, and some room.
const CLUSTER_BYTES: u64 = 400 << 20;

/// Disk space that a cluster with both tables takes at most.
pub fn bytes_needed(scale: u32) -> u64 {
    CLUSTER_BYTES + u64::from(scale) * ROWS_PER_SCALE * ROW_BYTES
}

/// A range of values, and what a query that selects it has to read and return.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// Part of all rows, as it was asked for.
    pub selectivity: f64,
    /// Smallest value of `a`.
    pub low: i32,
    /// Largest value of `a`.
    pub high: i32,
    /// Sum of `b` over the selected rows.
    pub sum: i64,
    /// Blocks with the selected rows in the order of the index. A block is repeated if rows of other
    /// blocks are in between.
    pub blocks: Vec<BlockNo>,
    /// The selected rows of each of these visits.
    pub(crate) visits: Arc<Visits>,
}

impl Range {
    /// The blocks that a scan requests, in order.
    pub(crate) fn requested(&self, scan: Scan, blocks: BlockNo) -> Vec<BlockNo> {
        match scan {
            Scan::Sequential => (0..blocks).collect(),
            Scan::Index => self.blocks.clone(),
            Scan::Bitmap => {
                let mut sorted = self.blocks.clone();
                sorted.sort_unstable();
                sorted.dedup();
                sorted
            }
        }
    }
}

/// One of the tables.
#[derive(Debug, Clone)]
pub struct GuideTable {
    /// Which one.
    pub dataset: Dataset,
    /// Its OID.
    pub(super) oid: u32,
    /// Its files, as database and file number: `5/16384`.
    pub relation: String,
    /// Those of its index.
    pub index: String,
    /// Its length.
    pub blocks: BlockNo,
    /// Sum of `b` over all rows.
    pub sum: i64,
    /// One for each selectivity.
    pub ranges: Vec<Range>,
}

impl GuideTable {
    /// Its name in the database.
    pub fn name(&self) -> &'static str {
        name(self.dataset)
    }

    /// The range that selects this part of all rows.
    pub(crate) fn range(&self, selectivity: f64) -> Option<&Range> {
        self.ranges.iter().find(|range| range.selectivity == selectivity)
    }

    /// The query whose scan is measured.
    pub(super) fn query(&self, range: Option<&Range>) -> String {
        let name = self.name();
        match range {
            None => format!("SELECT sum(b) FROM {name}"),
            Some(Range { low, high, .. }) => {
                format!("SELECT sum(b) FROM {name} WHERE a BETWEEN {low} AND {high}")
            }
        }
    }
}

fn name(dataset: Dataset) -> &'static str {
    match dataset {
        Dataset::Uniform => "uniform",
        Dataset::Linear10 => "linear_10",
    }
}

/// The statement that creates a table. `r` is uniform in [0, 1).
fn definition(dataset: Dataset, rows: u64, seed: u64) -> String {
    let value = match dataset {
        Dataset::Uniform => format!("r * {rows} / 2"),
        Dataset::Linear10 => format!("(i + (r - 0.5) * 0.1 * {rows}) / 2"),
    };
    // Another seed for each table, and a signed one, as the function takes it.
    let seed = seed.wrapping_mul(2).wrapping_add(u64::from(dataset == Dataset::Linear10)) as i64;
    format!(
        "CREATE TABLE {} AS SELECT ({value})::int AS a, i::int AS b, repeat(md5(i::text), 6) AS pad \
         FROM (SELECT i, (hashint8extended(i, '{seed}'::bigint) >> 33 & 1073741823)::float8 / \
         1073741824 AS r FROM generate_series(1::bigint, {rows}) AS i) AS numbered",
        name(dataset)
    )
}

/// Creates a table with an index, and finds its ranges.
pub(super) fn create(
    session: &mut Session,
    dataset: Dataset,
    (rows, seed): (u64, u64),
    selectivities: &[f64],
) -> Result<GuideTable, ServerError> {
    let name = name(dataset);
    session.execute(&definition(dataset, rows, seed))?;
    session.execute(&format!("CREATE INDEX {name}_a ON {name} (a)"))?;
    // Each statement alone, because VACUUM can't be in a transaction.
    session.execute(&format!("VACUUM (FREEZE, ANALYZE) {name}"))?;
    session.execute("CHECKPOINT")?;
    let files = |relation: &str| {
        format!(
            "SELECT d.oid || '/' || pg_relation_filenode('{relation}') FROM pg_database AS d \
             WHERE datname = current_database()"
        )
    };
    let relation = session.row(&files(name))?.concat();
    let index = session.row(&files(&format!("{name}_a")))?.concat();
    let [oid, bytes, sum] = session.numbers(&format!(
        "SELECT '{name}'::regclass::oid, pg_relation_size('{name}'), (SELECT sum(b) FROM {name})"
    ))?;
    let blocks = u32::try_from(bytes / 8192).unwrap_or(u32::MAX);
    let oid = u32::try_from(oid).unwrap_or_default();
    let mut table = GuideTable { dataset, oid, relation, index, blocks, sum, ranges: Vec::new() };
    session.execute(&force(Scan::Index))?;
    for &selectivity in selectivities {
        let range = find_range(session, &table, rows, selectivity)?;
        table.ranges.push(range);
    }
    Ok(table)
}

/// The range in the middle of the values that selects this part of all rows. Rows with the same
/// value as its ends are selected too.
fn find_range(
    session: &mut Session,
    table: &GuideTable,
    rows: u64,
    selectivity: f64,
) -> Result<Range, ServerError> {
    let name = table.name();
    let count = ((rows as f64 * selectivity).round() as u64).clamp(1, rows);
    let before = (rows - count) / 2;
    // An index-only scan would do, but it is off.
    let at = |offset: u64| format!("(SELECT a FROM {name} ORDER BY a OFFSET {offset} LIMIT 1)");
    let [low, high] =
        session.numbers(&format!("SELECT {}, {}", at(before), at(before + count - 1)))?;
    let int = |number| i32::try_from(number).unwrap_or_default();
    let (low, high) = (int(low), int(high));
    let mut range =
        Range { selectivity, low, high, sum: 0, blocks: Vec::new(), visits: Arc::default() };
    let query = table.query(Some(&range));
    session.prepare_scan(&query, Scan::Index)?;
    range.sum = session.run_prepared()?;
    // The same scan, whose plan was checked, with the rows' places instead of a sum.
    let places = query.replacen("sum(b)", "ctid::text", 1);
    let (mut blocks, mut visits) = (Vec::new(), Visits::default());
    session.column(&places, |place| {
        let (block, item) = place_of(place).ok_or_else(|| ServerError::Statement {
            statement: places.clone(),
            reason: format!("returned \"{place}\", expected a row's place"),
        })?;
        // The scan keeps the block until it needs another one.
        let is_new = blocks.last() != Some(&block);
        if is_new {
            blocks.push(block);
        }
        visits.push(item, is_new);
        Ok(())
    })?;
    range.blocks = blocks;
    range.visits = Arc::new(visits);
    Ok(range)
}

/// Block and line pointer in a row's place such as `(17,3)`.
fn place_of(place: &str) -> Option<(BlockNo, u16)> {
    let (block, item) = place.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    Some((block.parse().ok()?, item.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scan_requests_its_blocks() {
        let range = Range {
            selectivity: 0.1,
            low: 1,
            high: 9,
            sum: 45,
            blocks: vec![7, 2, 7, 3],
            visits: Arc::default(),
        };
        assert_eq!(range.requested(Scan::Index, 9), [7, 2, 7, 3]);
        assert_eq!(range.requested(Scan::Bitmap, 9), [2, 3, 7]);
        assert_eq!(range.requested(Scan::Sequential, 3), [0, 1, 2]);
    }

    #[test]
    fn places_of_rows_are_read() {
        assert_eq!(place_of("(4294967294,12)"), Some((4_294_967_294, 12)));
        assert_eq!(["17", "(x,1)", "(1,2", ""].map(place_of), [None; 4]);
    }

    #[test]
    fn a_table_is_the_same_for_the_same_seed() {
        let one = definition(Dataset::Uniform, 100_000, 1);
        assert!(one.contains("r * 100000 / 2") && one.contains("'2'::bigint"), "{one}");
        assert_ne!(one, definition(Dataset::Uniform, 100_000, 2));
        let other = definition(Dataset::Linear10, 100_000, 1);
        assert!(other.contains("'3'::bigint") && other.contains("linear_10"), "{other}");
    }
}
