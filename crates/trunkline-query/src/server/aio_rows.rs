//! I/O in flight, how long I/O takes, and the I/O method.

use std::path::Path;

use arrow_array::ArrayRef;
use trunkline_aio::{CLASSES, IoRow, OPERATIONS};
use trunkline_format::{RelationFile, SEGMENT_BLOCKS};
use trunkline_sql::SqlError;
use trunkline_sql::values::Carrier;

use super::row_builder::{RowBuilder, Value};
use super::view::ServerView;

/// The first bucket of a histogram ends here, in nanoseconds. Each bucket is twice as wide as the one
/// before.
const BUCKET_NANOS: u32 = 1000;

impl ServerView {
    /// `pg_get_aios()`. A handle's `pid` is the number of its session in the engine, of which a
    /// connection may have several.
    pub(super) fn aios(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let mut rows = RowBuilder::new(&[
            Carrier::Int32,
            Carrier::Int32,
            Carrier::Int64,
            Carrier::Text,
            Carrier::Text,
            Carrier::Int64,
            Carrier::Int64,
            Carrier::Text,
            Carrier::Int16,
            Carrier::Int32,
            Carrier::Text,
            Carrier::Text,
            Carrier::Bool,
            Carrier::Bool,
            Carrier::Bool,
        ]);
        let root =
            self.stored_relations().next().map(|(_, files)| files.storage().root().to_owned());
        for io in self.engine.aio().snapshot() {
            let (target, description) = target(&io, root.as_deref());
            let length = io.handle_data_len.map(|length| i16::try_from(length).unwrap_or(i16::MAX));
            rows.push(&[
                Value::Int4(io.pid.cast_signed()),
                Value::Int4(io.io_id.cast_signed()),
                Value::count(io.io_generation),
                Value::Text(io.state.to_owned()),
                Value::text(io.operation),
                io.off.map_or(Value::Null, Value::count),
                io.length.map_or(Value::Null, |length| Value::Int8(length.into())),
                Value::text(target),
                length.map_or(Value::Null, Value::Int2),
                io.raw_result.map_or(Value::Null, Value::Int4),
                Value::text(io.result),
                Value::text(description),
                Value::Bool(io.f_sync),
                Value::Bool(io.f_localmem),
                Value::Bool(io.f_buffered),
            ])?;
        }
        Ok(rows.finish())
    }

    /// `trunkline_io_histogram()`: how long the device took, and how long sessions waited.
    pub(super) fn latencies(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let mut rows = RowBuilder::new(&[
            Carrier::Text,
            Carrier::Text,
            Carrier::Text,
            Carrier::Float64,
            Carrier::Float64,
            Carrier::Int64,
        ]);
        let latencies = self.engine.aio().latencies();
        for class in CLASSES {
            for operation in OPERATIONS {
                let device = latencies.device(class, operation).map(|times| ("device", times));
                let wait = latencies.wait(class, operation).map(|times| ("wait", times));
                for (measure, times) in device.into_iter().chain(wait) {
                    let mut from = 0.0;
                    for bucket in times.iter_log(BUCKET_NANOS.into(), 2.0) {
                        let to = (bucket.value_iterated_to() + 1) as f64 / 1e3;
                        let count = bucket.count_since_last_iteration();
                        if count > 0 {
                            rows.push(&[
                                Value::Text(class.name().to_owned()),
                                Value::Text(operation.name().to_owned()),
                                Value::Text(measure.to_owned()),
                                Value::Float8(from),
                                Value::Float8(to),
                                Value::count(count),
                            ])?;
                        }
                        from = to;
                    }
                }
            }
        }
        Ok(rows.finish())
    }

    /// `trunkline_io_method()`: a row for each reason why I/O isn't done as asked, or one row.
    pub(super) fn io_method(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let text = Carrier::Text;
        let mut rows = RowBuilder::new(&[text, text, text, text, Carrier::Int32]);
        let status = self.engine.aio().method_status();
        let workers = Value::small_count(self.engine.aio().worker_count() as u64);
        let mut push = |reason: Option<String>, remedy: Option<String>| {
            rows.push(&[
                Value::Text(status.requested.to_string()),
                Value::Text(status.used.to_string()),
                Value::text(reason),
                Value::text(remedy),
                workers.clone(),
            ])
        };
        if status.fallbacks.is_empty() {
            push(None, None)?;
        }
        for fallback in &status.fallbacks {
            push(Some(fallback.to_string()), Some(fallback.fix()))?;
        }
        Ok(rows.finish())
    }
}

/// The target of an I/O and its description. PostgreSQL describes a read or write of a relation by the
/// relation's path and its blocks, which it counts over all segments.
fn target(io: &IoRow, root: Option<&Path>) -> (Option<String>, Option<String>) {
    let plain = (io.target.map(str::to_owned), io.target_desc.clone());
    let Some(description) = &io.target_desc else { return plain };
    let relation = || {
        let path = description.split_once("file \"")?.1.strip_suffix('"')?;
        let path = Path::new(path).strip_prefix(root?).ok()?;
        let file = RelationFile::parse(path.file_name()?.to_str()?)?;
        let first = io.off? / trunkline_format::BLOCK_SIZE as u64
            + u64::from(file.segment) * u64::from(SEGMENT_BLOCKS);
        let count = u64::from(io.length?).div_ceil(trunkline_format::BLOCK_SIZE as u64);
        let whole = RelationFile { segment: 0, ..file };
        let name = path.with_file_name(whole.to_string());
        let blocks = match count {
            0 | 1 => format!("block {first}"),
            _ => format!("blocks {first}..{}", first + count - 1),
        };
        Some(format!("{blocks} in file \"{}\"", name.display()))
    };
    match relation() {
        Some(text) => (Some("smgr".to_owned()), Some(text)),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_is_described_by_its_path_and_blocks() {
        let row = |name: &str, off: u64, length: u32| IoRow {
            pid: 1,
            io_id: 1,
            io_generation: 1,
            state: "SUBMITTED",
            operation: Some("readv"),
            off: Some(off),
            length: Some(length),
            target: Some("file"),
            handle_data_len: Some(16),
            raw_result: None,
            result: Some("UNKNOWN"),
            target_desc: Some(format!("blocks 0..1 in file \"/data/{name}\"")),
            f_sync: false,
            f_localmem: false,
            f_buffered: true,
            class: "look-ahead",
            method: None,
        };
        let check = |io: IoRow, kind: &str, text: &str| {
            let found = target(&io, Some(Path::new("/data")));
            assert_eq!(found, (Some(kind.to_owned()), Some(text.to_owned())));
        };
        // As in PostgreSQL 18 for the second segment.
        let second = row("base/16440/16456.1", 570_818_560, 131_072);
        check(second, "smgr", "blocks 200752..200767 in file \"base/16440/16456\"");
        let map = row("base/5/16456_vm", 8192, 8192);
        check(map, "smgr", "block 1 in file \"base/5/16456_vm\"");
        let other = row("pg_xact/0000x", 0, 8192);
        check(other.clone(), "file", other.target_desc.as_deref().unwrap_or_default());
    }
}
