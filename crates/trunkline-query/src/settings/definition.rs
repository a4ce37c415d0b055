//! The definitions of a session's settings: names, kinds, contexts and defaults of PostgreSQL.
//!
//! A setting is defined only if it has an effect here, if it describes the server, or if clients set
//! it as a matter of course to the only value that we have. The settings of the engine, such as
//! `shared_buffers`, have definitions of their own.

use trunkline_engine::settings::{Kind, Spec, Unit};

/// When a setting can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// Never.
    Internal,
    /// In any session.
    User,
    /// In any session, but no other value than the default is supported.
    Fixed,
}

/// What its values are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueKind {
    /// A number, a Boolean, or one of several words.
    Plain(Kind),
    /// Any text.
    Text,
    /// Names of schemas.
    Names,
    /// `DateStyle`.
    DateStyle,
    /// `TimeZone`.
    TimeZone,
    /// `client_encoding`.
    Encoding,
}

/// A setting.
#[derive(Debug)]
pub(crate) struct Definition {
    /// Its name.
    pub(crate) name: &'static str,
    /// What its values are.
    pub(crate) kind: ValueKind,
    /// When it can change.
    pub(crate) context: Context,
    /// The first version in which clients are informed of changes.
    pub(crate) reported: Option<u32>,
    /// The value that a session has if nothing else is said.
    pub(crate) boot: &'static str,
    /// One line that describes it.
    pub(crate) short: &'static str,
}

impl Definition {
    /// The definition of its value, if it is a plain one.
    pub(crate) fn spec(&self) -> Option<Spec> {
        match self.kind {
            ValueKind::Plain(kind) => Some(Spec { name: self.name, kind, short: self.short }),
            _ => None,
        }
    }

    const fn reported(self, since: u32) -> Self {
        Self { reported: Some(since), ..self }
    }
}

const fn setting(
    name: &'static str,
    kind: ValueKind,
    context: Context,
    boot: &'static str,
    short: &'static str,
) -> Definition {
    Definition { name, kind, context, reported: None, boot, short }
}

const fn integer(unit: Unit, min: i32, max: i32) -> ValueKind {
    ValueKind::Plain(Kind::Integer { unit, min, max, auto: false })
}

const fn words(words: &'static [&'static str]) -> ValueKind {
    ValueKind::Plain(Kind::Choice { words })
}

/// A cost, which is only compared with others.
const COST: ValueKind = ValueKind::Plain(Kind::Real { min: 0.0, max: f64::MAX });
const BOOL: ValueKind = ValueKind::Plain(Kind::Boolean);
const MILLISECONDS: ValueKind = integer(Unit::Milliseconds, 0, i32::MAX);
const ISOLATION_LEVELS: &[&str] =
    &["serializable", "repeatable read", "read committed", "read uncommitted"];
const LEVELS: &[&str] =
    &["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"];
const INTERVAL_STYLES: &[&str] = &["postgres", "postgres_verbose", "sql_standard", "iso_8601"];

use Context::{Fixed, Internal, User};

/// All settings, by name. Where the default is empty and the context internal, the session knows the
/// value.
pub(crate) static DEFINITIONS: &[Definition] = &[
    setting(
        "application_name",
        ValueKind::Text,
        User,
        "",
        "Sets the application name to be reported in statistics and logs.",
    )
    .reported(15),
    setting(
        "block_size",
        integer(Unit::None, 1, i32::MAX),
        Internal,
        "8192",
        "Shows the size of a disk block.",
    ),
    setting(
        "bytea_output",
        words(&["escape", "hex"]),
        User,
        "hex",
        "Sets the output format for bytea.",
    ),
    setting(
        "client_encoding",
        ValueKind::Encoding,
        User,
        "",
        "Sets the client's character set encoding.",
    )
    .reported(15),
    setting(
        "client_min_messages",
        words(LEVELS),
        User,
        "notice",
        "Sets the message levels that are sent to the client.",
    ),
    setting(
        "cpu_index_tuple_cost",
        COST,
        User,
        "0.005",
        "Sets the planner's estimate of the cost of processing each index entry during an index scan.",
    ),
    setting(
        "cpu_operator_cost",
        COST,
        User,
        "0.0025",
        "Sets the planner's estimate of the cost of processing each operator or function call.",
    ),
    setting(
        "cpu_tuple_cost",
        COST,
        User,
        "0.01",
        "Sets the planner's estimate of the cost of processing each tuple (row).",
    ),
    setting(
        "data_checksums",
        BOOL,
        Internal,
        "",
        "Shows whether data checksums are turned on for this cluster.",
    ),
    setting(
        "DateStyle",
        ValueKind::DateStyle,
        User,
        "ISO, MDY",
        "Sets the display format for date and time values.",
    )
    .reported(15),
    setting(
        "default_transaction_deferrable",
        BOOL,
        Fixed,
        "off",
        "Sets the default deferrable status of new transactions.",
    ),
    setting(
        "default_transaction_isolation",
        words(ISOLATION_LEVELS),
        User,
        "read committed",
        "Sets the transaction isolation level of each new transaction.",
    ),
    setting(
        "default_transaction_read_only",
        BOOL,
        User,
        "on",
        "Sets the default read-only status of new transactions.",
    )
    .reported(15),
    setting(
        "effective_cache_size",
        integer(Unit::Blocks, 1, i32::MAX),
        User,
        "4GB",
        "Sets the planner's assumption about the total size of the data caches.",
    ),
    setting(
        "enable_bitmapscan",
        BOOL,
        User,
        "on",
        "Enables the planner's use of bitmap-scan plans.",
    ),
    setting("enable_hashjoin", BOOL, User, "on", "Enables the planner's use of hash join plans."),
    setting(
        "enable_indexonlyscan",
        BOOL,
        User,
        "on",
        "Enables the planner's use of index-only-scan plans.",
    ),
    setting("enable_indexscan", BOOL, User, "on", "Enables the planner's use of index-scan plans."),
    setting(
        "enable_nestloop",
        BOOL,
        User,
        "on",
        "Enables the planner's use of nested-loop join plans.",
    ),
    setting(
        "enable_seqscan",
        BOOL,
        User,
        "on",
        "Enables the planner's use of sequential-scan plans.",
    ),
    setting(
        "extra_float_digits",
        integer(Unit::None, -15, 3),
        User,
        "1",
        "Sets the number of digits displayed for floating-point values.",
    ),
    setting(
        "hash_mem_multiplier",
        ValueKind::Plain(Kind::Real { min: 1.0, max: 1000.0 }),
        User,
        "2",
        "Multiple of \"work_mem\" to use for hash tables.",
    ),
    setting(
        "idle_in_transaction_session_timeout",
        MILLISECONDS,
        User,
        "0",
        "Sets the maximum allowed idle time between queries, when in a transaction.",
    ),
    setting(
        "idle_session_timeout",
        MILLISECONDS,
        User,
        "0",
        "Sets the maximum allowed idle time between queries, when not in a transaction.",
    ),
    setting(
        "in_hot_standby",
        BOOL,
        Internal,
        "off",
        "Shows whether hot standby is currently active.",
    )
    .reported(15),
    setting(
        "integer_datetimes",
        BOOL,
        Internal,
        "on",
        "Shows whether datetimes are integer based.",
    )
    .reported(15),
    setting(
        "IntervalStyle",
        words(INTERVAL_STYLES),
        User,
        "postgres",
        "Sets the display format for interval values.",
    )
    .reported(15),
    setting("is_superuser", BOOL, Internal, "on", "Shows whether the current user is a superuser.")
        .reported(15),
    setting(
        "lc_messages",
        ValueKind::Text,
        Fixed,
        "C",
        "Sets the language in which messages are displayed.",
    ),
    setting(
        "lc_monetary",
        ValueKind::Text,
        Fixed,
        "C",
        "Sets the locale for formatting monetary amounts.",
    ),
    setting("lc_numeric", ValueKind::Text, Fixed, "C", "Sets the locale for formatting numbers."),
    setting(
        "lc_time",
        ValueKind::Text,
        Fixed,
        "C",
        "Sets the locale for formatting date and time values.",
    ),
    setting(
        "lock_timeout",
        MILLISECONDS,
        Fixed,
        "0",
        "Sets the maximum allowed duration of any wait for a lock.",
    ),
    setting(
        "max_identifier_length",
        integer(Unit::None, 1, i32::MAX),
        Internal,
        "63",
        "Shows the maximum identifier length.",
    ),
    setting(
        "max_index_keys",
        integer(Unit::None, 1, i32::MAX),
        Internal,
        "32",
        "Shows the maximum number of index keys.",
    ),
    setting(
        "max_parallel_workers_per_gather",
        integer(Unit::None, 0, 1024),
        User,
        "2",
        "Sets the maximum number of parallel processes per executor node.",
    ),
    setting(
        "measured_page_costs",
        BOOL,
        User,
        "on",
        "Lets the planner look where pages are cached and measure how long reads take, while \
         seq_page_cost and random_page_cost have their defaults.",
    ),
    setting(
        "random_page_cost",
        COST,
        User,
        "4",
        "Sets the planner's estimate of the cost of a nonsequentially fetched disk page.",
    ),
    setting(
        "search_path",
        ValueKind::Names,
        User,
        "\"$user\", public",
        "Sets the schema search order for names that are not schema-qualified.",
    )
    .reported(18),
    setting(
        "segment_size",
        integer(Unit::Blocks, 1, i32::MAX),
        Internal,
        "",
        "Shows the number of pages per disk file.",
    ),
    setting(
        "seq_page_cost",
        COST,
        User,
        "1",
        "Sets the planner's estimate of the cost of a sequentially fetched disk page.",
    ),
    setting(
        "server_encoding",
        ValueKind::Text,
        Internal,
        "",
        "Shows the server (database) character set encoding.",
    )
    .reported(15),
    setting("server_version", ValueKind::Text, Internal, "", "Shows the server version.")
        .reported(15),
    setting(
        "server_version_num",
        integer(Unit::None, 1, i32::MAX),
        Internal,
        "",
        "Shows the server version as an integer.",
    ),
    setting("session_authorization", ValueKind::Text, Fixed, "", "Sets the session user name.")
        .reported(15),
    setting(
        "standard_conforming_strings",
        BOOL,
        Fixed,
        "on",
        "Causes '...' strings to treat backslashes literally.",
    )
    .reported(15),
    setting(
        "statement_timeout",
        MILLISECONDS,
        User,
        "0",
        "Sets the maximum allowed duration of any statement.",
    ),
    setting(
        "TimeZone",
        ValueKind::TimeZone,
        User,
        "GMT",
        "Sets the time zone for displaying and interpreting time stamps.",
    )
    .reported(15),
    setting(
        "transaction_deferrable",
        BOOL,
        Fixed,
        "off",
        "Whether to defer a read-only serializable transaction until it can be executed with no possible serialization failures.",
    ),
    setting(
        "transaction_isolation",
        words(ISOLATION_LEVELS),
        User,
        "",
        "Sets the current transaction's isolation level.",
    ),
    setting(
        "transaction_read_only",
        BOOL,
        User,
        "on",
        "Sets the current transaction's read-only status.",
    ),
    setting(
        "transaction_timeout",
        MILLISECONDS,
        Fixed,
        "0",
        "Sets the maximum allowed duration of any transaction within a session (not a prepared transaction).",
    ),
    setting(
        "wal_block_size",
        integer(Unit::None, 1, i32::MAX),
        Internal,
        "8192",
        "Shows the block size in the write ahead log.",
    ),
    setting(
        "work_mem",
        integer(Unit::Kilobytes, 64, i32::MAX),
        User,
        "4MB",
        "Sets the maximum memory to be used for query workspaces.",
    ),
];

/// The setting of a name, in any case.
pub(crate) fn find(name: &str) -> Option<&'static Definition> {
    DEFINITIONS.iter().find(|definition| definition.name.eq_ignore_ascii_case(name))
}
