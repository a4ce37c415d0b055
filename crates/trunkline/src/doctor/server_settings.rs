//! The settings of a PostgreSQL server that decide how it does I/O, and whether it starts.
//!
//! ```text
//!   defaults of the version  ◀─ postgresql.conf  ◀─ postgresql.auto.conf  ◀─ -c on our command line
//! ```
//! Values are checked against the ranges of the version, because a server with a bad value doesn't
//! start either.

use std::collections::BTreeMap;

use trunkline_engine::settings::Settings;

/// A setting with integer values, which has no unit: name, default, minimum and maximum.
type Integer = (&'static str, i64, i64, i64);

/// Settings of both versions.
const COMMON: [Integer; 8] = [
    ("max_connections", 100, 1, 262_143),
    ("autovacuum_worker_slots", 16, 1, 262_143),
    ("max_worker_processes", 8, 0, 262_143),
    ("max_wal_senders", 10, 0, 262_143),
    ("superuser_reserved_connections", 3, 0, 262_143),
    ("reserved_connections", 0, 0, 262_143),
    ("max_files_per_process", 1000, 64, i32::MAX as i64),
    ("io_max_concurrency", -1, -1, 1024),
];

const WORKERS_18: [Integer; 1] = [("io_workers", 3, 1, 32)];
const WORKERS_19: [Integer; 2] = [("io_min_workers", 2, 1, 32), ("io_max_workers", 8, 1, 32)];

/// The other settings that matter here.
const WORDS: [&str; 5] =
    ["io_method", "debug_io_direct", "huge_pages", "huge_page_size", "shared_buffers"];

/// Most backends (`MAX_BACKENDS`).
const BACKENDS_MAX: u32 = 262_143;

/// Processes of a server that are neither backends nor I/O workers (`NUM_AUXILIARY_PROCS`).
const AUXILIARY: u32 = 6;
/// Places for I/O workers (`MAX_IO_WORKERS`).
const IO_WORKERS_MAX: u32 = 32;
/// Autovacuum launcher and slot synchronization (`NUM_SPECIAL_WORKER_PROCS`).
const SPECIAL_WORKERS: u32 = 2;
/// Pages that a session may pin in any case, which it doesn't count again (`REFCOUNT_ARRAY_ENTRIES`).
const PINNED_ANYWAY: u32 = 8;
/// Most I/Os of one process, if `io_max_concurrency` is chosen by the server.
const AUTO_CONCURRENCY_MAX: u32 = 64;

/// Whether this is a setting that we know.
pub(crate) fn is_known(name: &str) -> bool {
    let integers = COMMON.iter().chain(&WORKERS_18).chain(&WORKERS_19);
    WORDS.contains(&name) || integers.into_iter().any(|(known, ..)| *known == name)
}

/// Whether this is a setting that only the other version than `version` has.
pub(crate) fn is_of_other_version(name: &str, version: u32) -> bool {
    let other = if version == 18 { &WORKERS_19[..] } else { &WORKERS_18 };
    other.iter().any(|(known, ..)| *known == name)
}

/// The settings of a server of one version.
#[derive(Debug, Clone)]
pub(crate) struct ServerSettings {
    pub(crate) version: u32,
    integers: BTreeMap<&'static str, u32>,
    pub(crate) io_method: String,
    /// The kinds of files that `debug_io_direct` lists.
    pub(crate) io_direct: Vec<String>,
    pub(crate) huge_pages: String,
    /// `huge_page_size` in kilobytes; 0 stands for the kernel's default.
    pub(crate) huge_page_kb: u64,
    /// `shared_buffers` in blocks.
    pub(crate) buffers: u32,
    /// `io_max_concurrency`, if it isn't -1.
    concurrency: Option<u32>,
    /// Why the server would refuse its configuration.
    pub(crate) faults: Vec<String>,
}

impl ServerSettings {
    /// The settings of a server of `version`, 18 or 19, with these values by name in lower case.
    /// `is_own` says that the values come from a cluster of this version. The settings of the other
    /// version are faults then, and otherwise ignored.
    pub(crate) fn new(
        version: u32,
        values: &BTreeMap<String, String>,
        is_own: bool,
    ) -> ServerSettings {
        let mut faults = Vec::new();
        let mut integers = BTreeMap::new();
        let mut concurrency = None;
        let workers = if version == 18 { &WORKERS_18[..] } else { &WORKERS_19 };
        for &(name, default, low, high) in COMMON.iter().chain(workers) {
            let value = match values.get(name) {
                Some(text) => integer(name, text, low, high).unwrap_or_else(|fault| {
                    faults.push(fault);
                    default
                }),
                None => default,
            };
            if name == "io_max_concurrency" {
                if value == 0 {
                    faults.push("invalid value for parameter \"io_max_concurrency\": 0".to_owned());
                }
                concurrency = u32::try_from(value).ok().filter(|value| *value > 0);
            } else {
                integers.insert(name, u32::try_from(value).unwrap_or(0));
            }
        }
        for name in values.keys().filter(|name| is_own && is_of_other_version(name, version)) {
            faults.push(format!("unrecognized configuration parameter \"{name}\""));
        }
        let mut word = |name: &'static str, default: &str, allowed: &[&str]| {
            let value = values.get(name).map_or(default, String::as_str).to_ascii_lowercase();
            if !allowed.contains(&&*value) {
                faults.push(format!("invalid value for parameter \"{name}\": \"{value}\""));
                return default.to_owned();
            }
            value
        };
        let io_method = word("io_method", "worker", &["sync", "worker", "io_uring"]);
        let booleans = ["on", "off", "try", "true", "false", "yes", "no", "1", "0"];
        let huge_pages = word("huge_pages", "try", &booleans);
        let list = values.get("debug_io_direct").map_or("", String::as_str);
        let words = list.split(',').map(|word| word.trim().to_ascii_lowercase());
        let io_direct: Vec<String> = words.filter(|word| !word.is_empty()).collect();
        for kind in &io_direct {
            if !["data", "wal", "wal_init"].contains(&&**kind) {
                faults.push(format!("invalid option \"{kind}\" of parameter \"debug_io_direct\""));
            }
        }
        let mut sized = Settings::default();
        if let Some(size) = values.get("shared_buffers")
            && let Err(error) = sized.set("shared_buffers", size)
        {
            faults.push(error.to_string());
        }
        let buffers = sized.shared_buffers();
        let text = values.get("huge_page_size").map_or("0", String::as_str);
        let huge_page_kb = kilobytes(text).unwrap_or_else(|| {
            faults.push(format!("invalid value for parameter \"huge_page_size\": \"{text}\""));
            0
        });
        let mut settings = ServerSettings {
            version,
            integers,
            io_method,
            io_direct,
            huge_pages,
            huge_page_kb,
            buffers,
            concurrency,
            faults,
        };
        settings.faults.extend(settings.contradiction());
        settings
    }

    /// Why the server refuses the combination of its settings, if it does.
    fn contradiction(&self) -> Option<String> {
        let [connections, superuser, reserved] =
            ["max_connections", "superuser_reserved_connections", "reserved_connections"]
                .map(|name| self.get(name));
        if superuser + reserved >= connections {
            return Some(format!(
                "superuser_reserved_connections ({superuser}) plus reserved_connections \
                 ({reserved}) must be less than max_connections ({connections})"
            ));
        }
        let backends = self.backends();
        (backends > BACKENDS_MAX).then(|| {
            format!(
                "too many server processes configured: max_connections, autovacuum_worker_slots, \
                 max_worker_processes and max_wal_senders are {} together, and must be less than {}",
                backends - SPECIAL_WORKERS,
                BACKENDS_MAX - SPECIAL_WORKERS + 1
            )
        })
    }

    /// An integer setting of this version, or 0 if the version doesn't have it.
    pub(crate) fn get(&self, name: &str) -> u32 {
        self.integers.get(name).copied().unwrap_or(0)
    }

    /// Whether huge pages are required.
    pub(crate) fn requires_huge_pages(&self) -> bool {
        ["on", "true", "yes", "1"].contains(&&*self.huge_pages)
    }

    /// `MaxBackends`.
    fn backends(&self) -> u32 {
        let parts = ["autovacuum_worker_slots", "max_worker_processes", "max_wal_senders"];
        let workers: u32 = parts.iter().map(|name| self.get(name)).sum();
        self.get("max_connections") + workers + SPECIAL_WORKERS
    }

    /// Number of rings: one for each process that may issue I/O. I/O workers don't exist with
    /// io_uring.
    pub(crate) fn rings(&self) -> u32 {
        self.backends() + AUXILIARY
    }

    /// Processes that have a place in shared memory and may issue I/O, with I/O workers.
    pub(crate) fn processes(&self) -> u32 {
        self.backends() + AUXILIARY + IO_WORKERS_MAX
    }

    /// How many pages a read stream of one process may pin: its share of `shared_buffers`.
    pub(crate) fn pinned_pages(&self) -> u32 {
        (self.buffers / self.processes()).saturating_sub(PINNED_ANYWAY)
    }

    /// Entries of each ring: `io_max_concurrency`, or the value that the server chooses.
    pub(crate) fn ring_entries(&self) -> u32 {
        let auto = (self.buffers / self.processes()).clamp(1, AUTO_CONCURRENCY_MAX);
        self.concurrency.unwrap_or(auto)
    }
}

/// A size in kilobytes, with or without a unit.
fn kilobytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    match text[digits..].trim() {
        "" | "kB" => Some(number),
        "B" => Some(number / 1024),
        "MB" => number.checked_mul(1 << 10),
        "GB" => number.checked_mul(1 << 20),
        "TB" => number.checked_mul(1 << 30),
        _ => None,
    }
}

fn integer(name: &str, text: &str, low: i64, high: i64) -> Result<i64, String> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let value = match digits {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    match value {
        None => Err(format!("invalid value for parameter \"{name}\": \"{text}\"")),
        Some(value) if (low..=high).contains(&value) => Ok(value),
        Some(value) => Err(format!(
            "{value} is outside the valid range for parameter \"{name}\" ({low} .. {high})"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(version: u32, values: &[(&str, &str)]) -> ServerSettings {
        let values = values.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        ServerSettings::new(version, &values.collect(), true)
    }

    #[test]
    fn rings_are_those_of_a_server() {
        let stock = settings(18, &[]);
        // 16384 buffers for 174 owners are 94 each, of which 64 are used.
        assert_eq!((stock.rings(), stock.ring_entries()), (142, 64));
        assert_eq!(stock.pinned_pages(), 86);
        assert_eq!(settings(18, &[("shared_buffers", "8MB")]).pinned_pages(), 0);
        let large = settings(19, &[("max_connections", "1000"), ("shared_buffers", "32MB")]);
        assert_eq!((large.rings(), large.ring_entries()), (1042, 3));
        let fixed = settings(18, &[("io_max_concurrency", "0x100")]);
        assert_eq!(fixed.ring_entries(), 256);
        assert!(stock.faults.is_empty() && large.faults.is_empty() && fixed.faults.is_empty());
    }

    #[test]
    fn bad_values_are_faults() {
        for (version, name, value) in [
            (18, "max_connections", "many"),
            (18, "max_connections", "0"),
            (18, "io_workers", "33"),
            (18, "io_min_workers", "2"),
            (19, "io_workers", "3"),
            (18, "io_method", "posix_aio"),
            (18, "io_max_concurrency", "0"),
            (18, "debug_io_direct", "data, tables"),
            (18, "huge_pages", "maybe"),
            (18, "huge_page_size", "2 XB"),
            // Three of them are reserved.
            (18, "max_connections", "3"),
            (18, "superuser_reserved_connections", "100"),
            (19, "reserved_connections", "97"),
            // 262,142 together with the other defaults.
            (18, "max_connections", "262108"),
            (19, "shared_buffers", "1 XB"),
        ] {
            let found = settings(version, &[(name, value)]);
            assert_eq!(found.faults.len(), 1, "{version} {name}={value}: {:?}", found.faults);
        }
        for (name, value) in
            [("max_connections", "4"), ("max_connections", "262107"), ("huge_page_size", "1GB")]
        {
            let found = settings(18, &[(name, value)]);
            assert!(found.faults.is_empty(), "{name}={value}: {:?}", found.faults);
        }
        assert_eq!(settings(18, &[("huge_page_size", "2 MB")]).huge_page_kb, 2048);
        let good = settings(19, &[("io_max_workers", "32"), ("debug_io_direct", "DATA,wal")]);
        assert!(good.faults.is_empty(), "{:?}", good.faults);
        assert_eq!(good.io_direct, ["data", "wal"]);
    }
}
