//! What the overlay of the catalogs contains: names, types and OIDs.
//!
//! The columns are those of PostgreSQL 18, of `pg_buffercache` 1.6, `pg_prewarm` 1.1, and of the
//! module `test_aio` of PostgreSQL's own tests. Names that begin with `trunkline_` are ours.
//!
//! An OID stands for the same object in all versions of trunkline, because prepared statements and
//! clients may keep it. A removed object's OID is not used again.

use trunkline_format::Oid;

use super::oids::{BOOL, FLOAT8, INT2, INT4, INT8, NUMERIC, OID, REGCLASS, TEXT, TIMESTAMPTZ};

/// `int4[]`.
const INT4ARRAY: Oid = Oid(1007);

/// The OIDs of the overlay. PostgreSQL assigns OIDs below 10,000 by hand, of which it reserves those
/// from 8,000 on for development, so no release uses them; and objects of users have OIDs from 16,384
/// on.
pub(super) const OIDS: std::ops::RangeInclusive<u32> = 9_500..=9_899;

/// `trunkline_domain_violation`, which a cast to a domain calls for a value that a constraint refuses.
pub(crate) const DOMAIN_VIOLATION: Oid = Oid(9544);

/// `void`.
const VOID: Oid = Oid(2278);

/// A function.
#[derive(Debug)]
pub(super) struct FunctionDefinition {
    pub(super) oid: u32,
    pub(super) name: &'static str,
    /// The names and types of the arguments. A name may be empty.
    pub(super) arguments: &'static [(&'static str, Oid)],
    pub(super) result: ResultDefinition,
    /// `provolatile`.
    pub(super) volatility: u8,
    pub(super) strict: bool,
}

/// What a function returns.
#[derive(Debug)]
pub(super) enum ResultDefinition {
    /// A value.
    Value(Oid),
    /// Rows with these columns.
    Rows(&'static [(&'static str, Oid)]),
    /// One row with these columns.
    Row(&'static [(&'static str, Oid)]),
}

/// A relation: all rows of a function without arguments.
#[derive(Debug)]
pub(super) struct RelationDefinition {
    pub(super) oid: u32,
    pub(super) name: &'static str,
    pub(super) function: &'static str,
}

use ResultDefinition::{Row, Rows, Value};

const fn function(
    oid: u32,
    name: &'static str,
    arguments: &'static [(&'static str, Oid)],
    result: ResultDefinition,
) -> FunctionDefinition {
    FunctionDefinition { oid, name, arguments, result, volatility: b'v', strict: true }
}

/// `pg_prewarm` has defaults, which we express as functions with fewer arguments. It isn't strict:
/// blocks may be null.
const fn prewarm(oid: u32, arguments: &'static [(&'static str, Oid)]) -> FunctionDefinition {
    FunctionDefinition { strict: false, ..function(oid, "pg_prewarm", arguments, Value(INT8)) }
}

/// Extensions whose functions are in the overlay: name, version and comment. `test_aio` belongs to
/// PostgreSQL's own tests.
pub const BUILT_IN_EXTENSIONS: [(&str, &str, &str); 3] = [
    ("pg_buffercache", "1.6", "look into the shared buffers of trunkline"),
    ("pg_prewarm", "1.1", "read relations into the shared buffers of trunkline"),
    ("test_aio", "1.0", "read streams over given blocks"),
];

/// The functions.
pub(super) const FUNCTIONS: &[FunctionDefinition] = &[
    function(9500, "pg_get_aios", &[], Rows(AIOS)),
    function(9501, "pg_stat_get_io", &[], Rows(STAT_IO)),
    function(9510, "pg_buffercache_pages", &[], Rows(BUFFERS)),
    function(9511, "pg_buffercache_summary", &[], Row(BUFFER_SUMMARY)),
    function(9512, "pg_buffercache_usage_counts", &[], Rows(USAGE_COUNTS)),
    function(9513, "pg_buffercache_evict", &[("", INT4)], Row(EVICTED_ONE)),
    function(9514, "pg_buffercache_evict_relation", &[("", REGCLASS)], Row(EVICTED_MANY)),
    function(9515, "pg_buffercache_evict_all", &[], Row(EVICTED_MANY)),
    prewarm(9520, &[("", REGCLASS)]),
    prewarm(9521, &[("", REGCLASS), ("mode", TEXT)]),
    prewarm(9522, &[("", REGCLASS), ("mode", TEXT), ("fork", TEXT)]),
    prewarm(9523, &[("", REGCLASS), ("mode", TEXT), ("fork", TEXT), ("first_block", INT8)]),
    prewarm(
        9524,
        &[
            ("", REGCLASS),
            ("mode", TEXT),
            ("fork", TEXT),
            ("first_block", INT8),
            ("last_block", INT8),
        ],
    ),
    function(
        9530,
        "read_stream_for_blocks",
        &[("rel", REGCLASS), ("blocks", INT4ARRAY)],
        Rows(&[("blockoff", INT4), ("blocknum", INT4), ("buf", INT4)]),
    ),
    function(9540, "trunkline_io_histogram", &[], Rows(HISTOGRAM)),
    function(9541, "trunkline_io_method", &[], Rows(METHOD)),
    function(9542, "trunkline_residency", &[], Rows(RESIDENCY)),
    function(9543, "trunkline_io_relations", &[], Rows(IO_RELATIONS)),
    // The constraint is null for NOT NULL. It has the type that the domain has.
    FunctionDefinition {
        strict: false,
        ..function(
            DOMAIN_VIOLATION.0,
            "trunkline_domain_violation",
            &[("domain", TEXT), ("constraint", TEXT)],
            Value(VOID),
        )
    },
];

/// The relations.
pub(super) const RELATIONS: &[RelationDefinition] = &[
    RelationDefinition { oid: 9800, name: "pg_aios", function: "pg_get_aios" },
    RelationDefinition { oid: 9801, name: "pg_stat_io", function: "pg_stat_get_io" },
    RelationDefinition { oid: 9802, name: "pg_buffercache", function: "pg_buffercache_pages" },
    RelationDefinition {
        oid: 9810,
        name: "trunkline_io_histogram",
        function: "trunkline_io_histogram",
    },
    RelationDefinition { oid: 9811, name: "trunkline_io_method", function: "trunkline_io_method" },
    RelationDefinition { oid: 9812, name: "trunkline_residency", function: "trunkline_residency" },
    RelationDefinition {
        oid: 9813,
        name: "trunkline_io_relations",
        function: "trunkline_io_relations",
    },
];

const AIOS: &[(&str, Oid)] = &[
    ("pid", INT4),
    ("io_id", INT4),
    ("io_generation", INT8),
    ("state", TEXT),
    ("operation", TEXT),
    ("off", INT8),
    ("length", INT8),
    ("target", TEXT),
    ("handle_data_len", INT2),
    ("raw_result", INT4),
    ("result", TEXT),
    ("target_desc", TEXT),
    ("f_sync", BOOL),
    ("f_localmem", BOOL),
    ("f_buffered", BOOL),
];

const STAT_IO: &[(&str, Oid)] = &[
    ("backend_type", TEXT),
    ("object", TEXT),
    ("context", TEXT),
    ("reads", INT8),
    ("read_bytes", NUMERIC),
    ("read_time", FLOAT8),
    ("writes", INT8),
    ("write_bytes", NUMERIC),
    ("write_time", FLOAT8),
    ("writebacks", INT8),
    ("writeback_time", FLOAT8),
    ("extends", INT8),
    ("extend_bytes", NUMERIC),
    ("extend_time", FLOAT8),
    ("hits", INT8),
    ("evictions", INT8),
    ("reuses", INT8),
    ("fsyncs", INT8),
    ("fsync_time", FLOAT8),
    ("stats_reset", TIMESTAMPTZ),
];

const BUFFERS: &[(&str, Oid)] = &[
    ("bufferid", INT4),
    ("relfilenode", OID),
    ("reltablespace", OID),
    ("reldatabase", OID),
    ("relforknumber", INT2),
    ("relblocknumber", INT8),
    ("isdirty", BOOL),
    ("usagecount", INT2),
    ("pinning_backends", INT4),
];

const BUFFER_SUMMARY: &[(&str, Oid)] = &[
    ("buffers_used", INT4),
    ("buffers_unused", INT4),
    ("buffers_dirty", INT4),
    ("buffers_pinned", INT4),
    ("usagecount_avg", FLOAT8),
];

const USAGE_COUNTS: &[(&str, Oid)] =
    &[("usage_count", INT4), ("buffers", INT4), ("dirty", INT4), ("pinned", INT4)];

const EVICTED_ONE: &[(&str, Oid)] = &[("buffer_evicted", BOOL), ("buffer_flushed", BOOL)];

const EVICTED_MANY: &[(&str, Oid)] =
    &[("buffers_evicted", INT4), ("buffers_flushed", INT4), ("buffers_skipped", INT4)];

const HISTOGRAM: &[(&str, Oid)] = &[
    ("class", TEXT),
    ("operation", TEXT),
    ("measure", TEXT),
    ("from_us", FLOAT8),
    ("to_us", FLOAT8),
    ("count", INT8),
];

const METHOD: &[(&str, Oid)] =
    &[("asked", TEXT), ("in_force", TEXT), ("reason", TEXT), ("remedy", TEXT), ("workers", INT4)];

const IO_RELATIONS: &[(&str, Oid)] = &[
    ("backend_type", TEXT),
    ("object", TEXT),
    ("context", TEXT),
    ("relid", OID),
    ("relation", TEXT),
    ("reads", INT8),
    ("read_bytes", INT8),
    ("hits", INT8),
    ("joins", INT8),
    ("evictions", INT8),
    ("waits", INT8),
    ("read_time", FLOAT8),
    ("device_time", FLOAT8),
    ("checksum_failures", INT8),
];

const RESIDENCY: &[(&str, Oid)] = &[
    ("relid", OID),
    ("schemaname", TEXT),
    ("relname", TEXT),
    ("fork", TEXT),
    ("blocks", INT8),
    ("pool_blocks", INT8),
    ("cache_blocks", INT8),
    ("both_blocks", INT8),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn oids_are_reserved_and_unique() {
        let mut seen = BTreeSet::new();
        let functions = FUNCTIONS.iter().map(|function| function.oid);
        for oid in functions.chain(RELATIONS.iter().map(|relation| relation.oid)) {
            assert!(OIDS.contains(&oid) && seen.insert(oid), "{oid}");
        }
    }
}
