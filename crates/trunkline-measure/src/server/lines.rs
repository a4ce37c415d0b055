//! **Lines**: settings of the user, such as those of `trunkline calibrate`, for one of the two
//! configurations that are compared.
//!
//! ```text
//!   effective_io_concurrency = 64      taken
//!   shared_buffers = 8GB               refused: both configurations have the same
//!   shared_preload_libraries = 'x'     refused: it loads code
//! ```
//! A setting is refused by name if the two configurations would no longer do the same work, or if
//! the server could no longer be started, reached or watched. Everything else is up to the server: one
//! that it doesn't know, or a value that it doesn't accept, keeps it from starting, with its own error.

use std::collections::BTreeMap;

use super::error::ServerError;
use super::quiet::is_quiet;

/// Why settings are refused that all servers have (`quiet`), and those of the first list.
const OWN: &str = "bench has its own value";

/// Other names that are refused, with the reason. A star stands for any letters, at the beginning or
/// end.
const REFUSED: [(&[&str], &str); 9] = [
    (&["shared_buffers", "work_mem"], OWN),
    (
        &[
            "enable_*",
            "max_parallel*",
            "min_parallel*",
            "parallel_*",
            "debug_parallel_query",
            "force_parallel_mode",
            "jit*",
            "autovacuum*",
            "plan_cache_mode",
            "search_path",
            "track_counts",
        ],
        "both configurations must do the same work",
    ),
    (&["debug_io_direct"], "it bypasses the page cache, whose state is part of each case"),
    (
        &[
            "data_directory",
            "config_file",
            "hba_file",
            "ident_file",
            "external_pid_file",
            "unix_socket_*",
            "ssl*",
            "krb_*",
            "superuser_reserved_connections",
            "reserved_connections",
        ],
        "it decides about the server's files or connections, and bench has its own",
    ),
    (&["include", "include_*"], "only this file is read"),
    (
        &["*_libraries", "*_library", "dynamic_library_path", "*_command"],
        "it loads code or runs commands",
    ),
    (&["log_*", "logging_*"], "bench shows the end of the server's log if the server fails"),
    (
        &[
            "statement_timeout",
            "transaction_timeout",
            "lock_timeout",
            "idle_session_timeout",
            "idle_in_transaction_session_timeout",
        ],
        "it could end a query that is measured, or its session",
    ),
    (
        &["zero_damaged_pages", "ignore_checksum_failure", "ignore_invalid_pages"],
        "it hides damaged pages",
    ),
];

/// Settings that differ from the server's defaults, by name in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerLines(BTreeMap<String, String>);

impl ServerLines {
    /// These settings, as names in lower case and values. The last value of a name counts.
    ///
    /// # Errors
    /// [`ServerError::Settings`]: those that would break the measurement.
    pub fn new(lines: impl IntoIterator<Item = (String, String)>) -> Result<Self, ServerError> {
        let lines: BTreeMap<String, String> = lines.into_iter().collect();
        let refused = lines.keys().filter_map(|name| Some((name.clone(), refusal(name)?)));
        let refused: Vec<(String, &str)> = refused.collect();
        if refused.is_empty() { Ok(Self(lines)) } else { Err(ServerError::Settings(refused)) }
    }

    /// Whether there is nothing to compare.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Why a setting is refused, if it is.
fn refusal(name: &str) -> Option<&'static str> {
    let matches = |pattern: &&str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (_, Some(start)) => name.starts_with(start),
        _ => name == *pattern,
    };
    if is_quiet(name) {
        return Some(OWN);
    }
    let listed = REFUSED.iter().find(|(patterns, _)| patterns.iter().any(matches));
    listed.map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[(&str, &str)]) -> Result<ServerLines, ServerError> {
        ServerLines::new(text.iter().map(|(name, value)| (name.to_string(), value.to_string())))
    }

    #[test]
    fn settings_that_would_break_the_measurement_are_refused_by_name() {
        for (name, expected) in [
            ("shared_buffers", "its own value"),
            ("enable_seqscan", "the same work"),
            ("max_parallel_workers", "the same work"),
            ("jit_above_cost", "the same work"),
            ("autovacuum_naptime", "the same work"),
            ("debug_io_direct", "bypasses the page cache"),
            // What all servers get comes first: other reasons may be untrue for it.
            ("max_wal_size", "its own value"),
            ("synchronize_seqscans", "its own value"),
            ("checkpoint_timeout", "its own value"),
            ("listen_addresses", "its own value"),
            ("port", "its own value"),
            ("data_directory", "the server's files or connections"),
            ("unix_socket_group", "the server's files or connections"),
            ("include_dir", "only this file"),
            ("oauth_validator_libraries", "loads code or runs commands"),
            ("restore_command", "loads code or runs commands"),
            ("archive_library", "loads code or runs commands"),
            ("log_statement", "the server's log"),
            ("statement_timeout", "could end a query"),
        ] {
            let taken = ("effective_io_concurrency", "64");
            let error = lines(&[taken, (name, "x")]).expect_err(name).to_string();
            assert!(error.contains(&format!("\"{name}\"")) && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn all_settings_that_are_refused_are_named() {
        let all = ["port", "wal_buffers", "log_statement", "ssl", "listen_addresses"];
        let error = lines(&all.map(|name| (name, "x"))).expect_err("refused").to_string();
        let expected = "settings that can't be compared: \"listen_addresses\", \"port\", \"ssl\" \
                        (bench has its own value), \"log_statement\" (bench shows the end of the \
                        server's log if the server fails)";
        assert_eq!(error, expected);
    }

    #[test]
    fn the_lines_of_a_calibration_are_taken() {
        let all = [
            ("io_method", "io_uring"),
            ("io_workers", "12"),
            ("io_min_workers", "2"),
            ("io_max_workers", "32"),
            ("effective_io_concurrency", "16"),
            ("effective_io_concurrency", "64"),
            ("maintenance_io_concurrency", "64"),
            ("io_max_concurrency", "64"),
            ("io_max_combine_limit", "256kB"),
            ("io_combine_limit", "256kB"),
            ("random_page_cost", "1.1"),
            ("wal_sync_method", "open_datasync"),
            ("checkpoint_flush_after", "0"),
            // How many processes there may be decides how many buffers a session may pin.
            ("max_connections", "200"),
            ("max_wal_senders", "0"),
            ("deadlock_timeout", "10s"),
        ];
        let taken = lines(&all).expect("taken");
        let found: Vec<(&str, &str)> = taken.iter().collect();
        assert_eq!(found.len(), all.len() - 1);
        assert!(found.contains(&("effective_io_concurrency", "64")), "the last one counts");
        assert!(!taken.is_empty() && lines(&[]).expect("nothing").is_empty());
    }
}
