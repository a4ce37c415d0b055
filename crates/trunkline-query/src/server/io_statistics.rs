//! The statistics of the buffer pool: `pg_stat_io`, and totals by relation.

use std::collections::BTreeMap;

use arrow_array::ArrayRef;
use trunkline_engine::pool::{BackendType, IoKey, IoObject, Strategy, Tally};
use trunkline_format::BLOCK_SIZE;
use trunkline_sql::functions::Argument;
use trunkline_sql::values::Carrier;
use trunkline_sql::{SqlError, SqlState};

use super::row_builder::{RowBuilder, Value};
use super::view::{ServerView, text};

/// The kinds of sessions that the engine has, in PostgreSQL's order.
const BACKENDS: [BackendType; 5] = [
    BackendType::Client,
    BackendType::BackgroundWorker,
    BackendType::Standalone,
    BackendType::BackgroundWriter,
    BackendType::Checkpointer,
];

/// The access strategies, in the order of their names.
const STRATEGIES: [Strategy; 4] =
    [Strategy::BulkRead, Strategy::BulkWrite, Strategy::Normal, Strategy::Vacuum];

impl ServerView {
    /// `pg_stat_get_io()`. As in PostgreSQL, there is a row for everything that can be counted, and a
    /// value is null if it can't occur. Versions 16 and 17 have other columns.
    pub(super) fn io_statistics(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let mut counts: BTreeMap<(BackendType, Strategy), Tally> = BTreeMap::new();
        for (key, tally) in self.engine.pool().counts() {
            counts.entry((key.backend, key.context)).or_default().add(&tally);
        }
        let has_bytes = !matches!(self.database.version().major(), 16 | 17);
        let mut rows = RowBuilder::new(&carriers(has_bytes));
        let reset = self.engine.pool().counts_reset().map_or(Value::Null, Value::Time);
        for backend in BACKENDS {
            let writes_only =
                matches!(backend, BackendType::BackgroundWriter | BackendType::Checkpointer);
            let normal_only = writes_only;
            for strategy in STRATEGIES {
                if normal_only && strategy != Strategy::Normal {
                    continue;
                }
                let tally = counts.get(&(backend, strategy)).copied().unwrap_or_default();
                let mut row = vec![
                    Value::Text(backend.name().to_owned()),
                    Value::Text(IoObject::Relation.name().to_owned()),
                    Value::Text(strategy.context().to_owned()),
                ];
                row.extend(values(&tally, strategy, writes_only, has_bytes));
                row.push(reset.clone());
                rows.push(&row)?;
            }
        }
        Ok(rows.finish())
    }

    /// `trunkline_io_relations()`: what was counted for each relation. `read_time` is the time that
    /// sessions waited, as in `pg_stat_io`, and `device_time` that of the device.
    pub(super) fn relation_totals(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let (text, count, time) = (Carrier::Text, Carrier::Int64, Carrier::Float64);
        let mut rows = RowBuilder::new(&[
            text,
            text,
            text,
            Carrier::UInt32,
            text,
            count,
            count,
            count,
            count,
            count,
            count,
            time,
            time,
            count,
        ]);
        for (key, tally) in self.engine.pool().counts() {
            let IoKey { backend, object, context, .. } = key;
            let relation = self.database.relation_at(key.relation);
            let name = relation.map_or_else(
                || key.relation.to_string(),
                |relation| self.database.qualified_name(relation),
            );
            rows.push(&[
                Value::Text(backend.name().to_owned()),
                Value::Text(object.name().to_owned()),
                Value::Text(context.context().to_owned()),
                relation.map_or(Value::Null, |relation| Value::Oid(relation.oid.0)),
                Value::Text(name),
                Value::count(tally.reads),
                Value::count(tally.read_bytes()),
                Value::count(tally.hits),
                Value::count(tally.joins),
                Value::count(tally.evictions),
                Value::count(tally.waits),
                Value::Float8(millis(tally.wait_nanos)),
                Value::Float8(millis(tally.device_nanos)),
                Value::count(tally.checksum_failures),
            ])?;
        }
        Ok(rows.finish())
    }

    /// The blocks of each relation that were looked for in the buffer pool, or only those that were
    /// found there, by OID.
    pub(super) fn blocks_by_relation(&self, only_hits: bool) -> BTreeMap<u32, i64> {
        let mut counts: BTreeMap<u32, i64> = BTreeMap::new();
        for (key, tally) in self.engine.pool().counts() {
            let Some(relation) = self.database.relation_at(key.relation) else { continue };
            let blocks = if only_hits { tally.hits } else { tally.hits + tally.read_blocks };
            let count = counts.entry(relation.oid.0).or_default();
            *count = count.saturating_add(i64::try_from(blocks).unwrap_or(i64::MAX));
        }
        counts
    }

    /// `pg_stat_reset_shared(target)`. Returns whether the result isn't null.
    pub(super) fn reset_statistics(
        &self,
        arguments: &[Argument],
        row: usize,
    ) -> Result<bool, SqlError> {
        let target = text(arguments, 0, row);
        match target {
            // Since version 17, null stands for everything. Before, the function is strict.
            None if self.database.version().major() < 17 => return Ok(false),
            None | Some("io") => self.engine.pool().reset_counts(self.statement_start),
            Some(
                "archiver" | "bgwriter" | "checkpointer" | "recovery_prefetch" | "slru" | "wal",
            ) => {
                let target = target.unwrap_or_default();
                let message =
                    format!("resetting the statistics \"{target}\" is not supported by trunkline");
                return Err(SqlError::unsupported(message));
            }
            Some(other) => {
                let message = format!("unrecognized reset target: \"{other}\"");
                let hint = "Target must be \"archiver\", \"bgwriter\", \"checkpointer\", \"io\", \
                            \"recovery_prefetch\", \"slru\", or \"wal\".";
                let error = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
                return Err(error.with_hint(hint));
            }
        }
        Ok(true)
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// The columns from `reads` to `fsync_time`.
fn values(tally: &Tally, strategy: Strategy, writes_only: bool, has_bytes: bool) -> Vec<Value> {
    let is_ring = strategy != Strategy::Normal;
    let unless = |never: bool, value: Value| if never { Value::Null } else { value };
    let no_extends = writes_only || matches!(strategy, Strategy::BulkRead | Strategy::Vacuum);
    let bytes =
        |blocks: u64| Value::Numeric(i64::try_from(blocks * BLOCK_SIZE as u64).unwrap_or(i64::MAX));
    let time = Value::Float8;
    let mut row = vec![unless(writes_only, Value::count(tally.reads))];
    if has_bytes {
        row.push(unless(writes_only, bytes(tally.read_blocks)));
    }
    row.extend([unless(writes_only, time(millis(tally.wait_nanos))), Value::count(tally.writes)]);
    if has_bytes {
        row.push(bytes(tally.written_blocks));
    }
    // The engine doesn't measure how long these take, so they are zero, as without track_io_timing.
    row.extend([time(0.0), Value::count(tally.writebacks), time(0.0)]);
    row.push(unless(no_extends, Value::count(tally.extends)));
    if has_bytes {
        row.push(unless(no_extends, bytes(tally.extended_blocks)));
    }
    row.push(unless(no_extends, time(0.0)));
    if !has_bytes {
        row.push(Value::Int8(BLOCK_SIZE as i64));
    }
    row.extend([
        unless(writes_only, Value::count(tally.hits)),
        unless(writes_only, Value::count(tally.evictions)),
        unless(!is_ring, Value::count(tally.reuses)),
        // Checkpoints count them elsewhere.
        unless(is_ring, Value::Int8(0)),
        unless(is_ring, time(0.0)),
    ]);
    row
}

/// The carriers of `pg_stat_get_io()`.
fn carriers(has_bytes: bool) -> Vec<Carrier> {
    let (text, count, time, numeric) =
        (Carrier::Text, Carrier::Int64, Carrier::Float64, Carrier::Bytes);
    let mut columns = vec![text, text, text];
    match has_bytes {
        true => columns.extend([
            count, numeric, time, count, numeric, time, count, time, count, numeric, time,
        ]),
        false => columns.extend([count, time, count, time, count, time, count, time, count]),
    }
    columns.extend([count, count, count, count, time, Carrier::Int64]);
    columns
}
