//! The buffer pool: `pg_buffercache` and the functions that evict.

use arrow_array::ArrayRef;
use trunkline_engine::pool::Evicted;
use trunkline_format::Fork;
use trunkline_sql::SqlError;
use trunkline_sql::values::Carrier;

use super::row_builder::{RowBuilder, Value};
use super::view::ServerView;

/// The largest usage count (`BM_MAX_USAGE_COUNT`).
const USAGE_MAX: usize = 5;

impl ServerView {
    /// `pg_buffercache_pages()`: a row for each buffer, with nulls if it holds no page.
    pub(super) fn buffers(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let mut rows = RowBuilder::new(&[
            Carrier::Int32,
            Carrier::UInt32,
            Carrier::UInt32,
            Carrier::UInt32,
            Carrier::Int16,
            Carrier::Int64,
            Carrier::Bool,
            Carrier::Int16,
            Carrier::Int32,
        ]);
        let mut used = self.engine.pool().rows().into_iter().peekable();
        for bufferid in 1..=self.engine.pool().buffers() {
            let mut row = vec![Value::Int4(bufferid.cast_signed())];
            match used.next_if(|buffer| buffer.bufferid == bufferid) {
                None => row.extend(vec![Value::Null; 8]),
                Some(buffer) => {
                    let fork = Fork::ALL.iter().position(|fork| *fork == buffer.fork);
                    row.extend([
                        Value::Oid(buffer.relation.relfilenode),
                        Value::Oid(buffer.relation.tablespace.0),
                        Value::Oid(buffer.relation.database.0),
                        Value::Int2(fork.unwrap_or_default() as i16),
                        Value::Int8(buffer.block.into()),
                        Value::Bool(buffer.dirty),
                        Value::Int2(i16::try_from(buffer.usage).unwrap_or(i16::MAX)),
                        Value::small_count(buffer.pins.into()),
                    ]);
                }
            }
            rows.push(&row)?;
        }
        Ok(rows.finish())
    }

    /// `pg_buffercache_summary()`.
    pub(super) fn buffer_summary(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let count = Carrier::Int32;
        let mut rows = RowBuilder::new(&[count, count, count, count, Carrier::Float64]);
        let used = self.engine.pool().rows();
        let total = u64::from(self.engine.pool().buffers());
        let dirty = used.iter().filter(|buffer| buffer.dirty).count();
        let pinned = used.iter().filter(|buffer| buffer.pins > 0).count();
        let usage: u64 = used.iter().map(|buffer| u64::from(buffer.usage)).sum();
        let mean = (!used.is_empty()).then(|| usage as f64 / used.len() as f64);
        rows.push(&[
            Value::small_count(used.len() as u64),
            Value::small_count(total.saturating_sub(used.len() as u64)),
            Value::small_count(dirty as u64),
            Value::small_count(pinned as u64),
            mean.map_or(Value::Null, Value::Float8),
        ])?;
        Ok(rows.finish())
    }

    /// `pg_buffercache_usage_counts()`. Empty buffers have the usage count 0.
    pub(super) fn usage_counts(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let mut rows = RowBuilder::new(&[Carrier::Int32; 4]);
        let used = self.engine.pool().rows();
        let mut counts = [[0_u64; 3]; USAGE_MAX + 1];
        for buffer in &used {
            let usage = (buffer.usage as usize).min(USAGE_MAX);
            if let Some([buffers, dirty, pinned]) = counts.get_mut(usage) {
                *buffers += 1;
                *dirty += u64::from(buffer.dirty);
                *pinned += u64::from(buffer.pins > 0);
            }
        }
        let empty = u64::from(self.engine.pool().buffers()).saturating_sub(used.len() as u64);
        let [[unused, ..], ..] = &mut counts;
        *unused += empty;
        for (usage, counts) in (0..).zip(counts) {
            let [buffers, dirty, pinned] = counts.map(Value::small_count);
            rows.push(&[Value::Int4(usage), buffers, dirty, pinned])?;
        }
        Ok(rows.finish())
    }

    /// `pg_buffercache_evict(buffer)`.
    pub(super) fn evict_buffer(&self, bufferid: i32) -> Result<Vec<ArrayRef>, SqlError> {
        let pool = self.engine.pool();
        let buffer = u32::try_from(bufferid).ok();
        let buffer = buffer.filter(|buffer| (1..=pool.buffers()).contains(buffer));
        let Some(buffer) = buffer else {
            return Err(SqlError::internal(format!("bad buffer ID: {bufferid}")));
        };
        let mut rows = RowBuilder::new(&[Carrier::Bool; 2]);
        // The pages of a directory that is only read are never dirty, so nothing is flushed.
        rows.push(&[Value::Bool(pool.evict(buffer)), Value::Bool(false)])?;
        Ok(rows.finish())
    }

    /// `pg_buffercache_evict_relation(relation)`: all forks.
    pub(super) fn evict_relation(&self, oid: u32) -> Result<Vec<ArrayRef>, SqlError> {
        let relation = self.relation(oid)?;
        let mut sum = Evicted::default();
        if let Some(files) = self.database.files(relation) {
            for fork in Fork::ALL {
                let fork = files.storage().relation(files.locator(), fork);
                let evicted = self.engine.pool().evict_relation(&fork, 0);
                sum.evicted += evicted.evicted;
                sum.skipped += evicted.skipped;
            }
        }
        evicted_row(sum)
    }

    /// `pg_buffercache_evict_all()`.
    pub(super) fn evict_all(&self) -> Result<Vec<ArrayRef>, SqlError> {
        evicted_row(self.engine.pool().evict_all())
    }
}

fn evicted_row(counts: Evicted) -> Result<Vec<ArrayRef>, SqlError> {
    let mut rows = RowBuilder::new(&[Carrier::Int32; 3]);
    rows.push(&[
        Value::small_count(counts.evicted.into()),
        Value::Int4(0),
        Value::small_count(counts.skipped.into()),
    ])?;
    Ok(rows.finish())
}
