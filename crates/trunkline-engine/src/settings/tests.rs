//! Tests for setting and showing values. We also ran every case on a PostgreSQL 15 server, using
//! some setting with the same unit (`checkpoint_flush_after`, `authentication_timeout` and so on)
//! if PostgreSQL 15 has one.

use super::*;

/// Sets a value and compares what `SHOW` prints, or the error and hint on one line.
fn check(name: &str, value: &str, expected: &str) {
    let mut settings = Settings::default();
    let shown = match settings.set(name, value) {
        Ok(()) => settings.show(name).unwrap_or_else(|error| error.to_string()),
        Err(error) => match error.hint() {
            Some(hint) => format!("{error} / {hint}"),
            None => error.to_string(),
        },
    };
    assert_eq!(shown, expected, "{name} = {value:?}");
}

#[test]
fn defaults_are_postgresql_s() {
    let shown: Vec<String> =
        Settings::default().iter().map(|(spec, value)| format!("{}={value}", spec.name)).collect();
    assert_eq!(
        shown,
        [
            "io_method=worker",
            "io_direct=",
            "effective_io_concurrency=16",
            "maintenance_io_concurrency=16",
            "io_combine_limit=128kB",
            "io_max_combine_limit=128kB",
            "io_max_concurrency=-1",
            "io_min_workers=2",
            "io_max_workers=8",
            "io_worker_idle_timeout=1min",
            "io_worker_launch_interval=100ms",
            "shared_buffers=128MB",
            "temp_buffers=8MB",
            "zero_damaged_pages=off",
            "ignore_checksum_failure=off",
            "max_sessions=255",
            "max_files_per_process=1000",
            "checkpoint_timeout=5min",
            "checkpoint_completion_target=0.9",
            "checkpoint_flush_after=256kB",
            "bgwriter_delay=200ms",
            "bgwriter_lru_maxpages=100",
            "bgwriter_lru_multiplier=2",
            "bgwriter_flush_after=512kB",
            "backend_flush_after=0",
            "file_extend_method=posix_fallocate",
        ]
    );
}

#[test]
fn sizes() {
    for (value, expected) in [
        ("16", "128kB"),
        ("1", "8kB"),
        ("128", "1MB"),
        ("0x10", "128kB"),
        ("010", "64kB"),
        ("64kB", "64kB"),
        (" 64 kB ", "64kB"),
        ("0.5MB", "512kB"),
        ("0.25MB", "256kB"),
        (".5MB", "512kB"),
        ("1e2kB", "96kB"),
        ("1.5", "16kB"),
        ("2.5", "16kB"),
        ("+16", "128kB"),
        ("65536B", "64kB"),
        ("10kB", "8kB"),
    ] {
        check("io_combine_limit", value, expected);
    }
}

#[test]
fn sizes_refused() {
    let invalid = |value: &str, hint: &str| {
        let text = format!("invalid value for parameter \"io_combine_limit\": \"{value}\"{hint}");
        check("io_combine_limit", value, &text);
    };
    let units = " / Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";
    for value in ["17 qB", "64KB", "64kb", "1 kB x", "08", "0x", "1kBB", "1ekB", "16,", "5min"] {
        invalid(value, units);
    }
    for value in ["", " ", "x", "-", "kB", ".", "."] {
        invalid(value, "");
    }
    invalid("3000000000", " / Value exceeds integer range.");
    invalid("99999999999999999999999", " / Value exceeds integer range.");
    let range = "is outside the valid range for parameter \"io_combine_limit\" (1 .. 128)";
    for (value, number) in
        [("200", "200 8kB"), ("0", "0 8kB"), ("2MB", "256 8kB"), ("-1", "-1 8kB")]
    {
        check("io_combine_limit", value, &format!("{number} {range}"));
    }
}

#[test]
fn times() {
    for (value, expected) in [
        ("60s", "1min"),
        ("1 h", "1h"),
        ("90s", "90s"),
        ("1.5min", "90s"),
        ("100", "100ms"),
        ("2500us", "2ms"),
        ("1d", "1d"),
        ("0", "0"),
        ("0.1s", "100ms"),
    ] {
        check("io_worker_idle_timeout", value, expected);
    }
    check(
        "io_worker_idle_timeout",
        "1 Min",
        "invalid value for parameter \"io_worker_idle_timeout\": \"1 Min\" / Valid units for \
         this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".",
    );
    check(
        "io_worker_idle_timeout",
        "-1",
        "-1 ms is outside the valid range for parameter \"io_worker_idle_timeout\" \
         (0 .. 2147483647)",
    );
}

#[test]
fn seconds() {
    for (value, expected) in [
        ("30", "30s"),
        ("1h", "1h"),
        ("90s", "90s"),
        ("45.4s", "45s"),
        ("45.5s", "46s"),
        ("2.5min", "150s"),
        ("0.6min", "36s"),
        ("1d", "1d"),
        ("3600", "1h"),
        ("45500ms", "46s"),
        ("1.5 h", "90min"),
        ("61s", "61s"),
        ("100000ms", "100s"),
    ] {
        check("checkpoint_timeout", value, expected);
    }
    for (value, number) in [("29", 29), ("86401", 86_401), ("1500 ms", 2)] {
        let text = format!(
            "{number} s is outside the valid range for parameter \"checkpoint_timeout\" \
             (30 .. 86400)"
        );
        check("checkpoint_timeout", value, &text);
    }
}

#[test]
fn real_numbers() {
    for (value, expected) in [
        ("2", "2"),
        ("2.5", "2.5"),
        (".25", "0.25"),
        ("1e1", "10"),
        ("0x4", "4"),
        ("010", "10"),
        (" 3 ", "3"),
        ("+1", "1"),
        ("2.", "2"),
        ("08", "8"),
        ("-0", "-0"),
        ("0.1", "0.1"),
        ("0.00001", "1e-05"),
        ("1e-7", "1e-07"),
        ("1.23456789", "1.23457"),
        ("3.141592653589793", "3.14159"),
    ] {
        check("bgwriter_lru_multiplier", value, expected);
    }
    for value in ["", ".", "x", "nan", "1e", "2 kB", "5s", "1e400", "0x", "1_0"] {
        let text = format!("invalid value for parameter \"bgwriter_lru_multiplier\": \"{value}\"");
        check("bgwriter_lru_multiplier", value, &text);
    }
    for (value, number) in [("-1", "-1"), ("-0.5", "-0.5"), ("11", "11"), ("10.00001", "10")] {
        let range =
            "is outside the valid range for parameter \"bgwriter_lru_multiplier\" (0 .. 10)";
        check("bgwriter_lru_multiplier", value, &format!("{number} {range}"));
    }
}

#[test]
fn settings_of_the_write_path() -> Result<(), SettingError> {
    check(
        "backend_flush_after",
        "3MB",
        "384 8kB is outside the valid range for parameter \"backend_flush_after\" (0 .. 256)",
    );
    check("backend_flush_after", "2MB", "2MB");
    check(
        "bgwriter_lru_maxpages",
        "1073741824",
        "1073741824 is outside the valid range for parameter \"bgwriter_lru_maxpages\" \
         (0 .. 1073741823)",
    );
    check(
        "bgwriter_delay",
        "9",
        "9 ms is outside the valid range for parameter \"bgwriter_delay\" (10 .. 10000)",
    );
    let mut settings = Settings::default();
    assert_eq!(settings.checkpoint_timeout(), Duration::from_secs(300));
    assert_eq!(settings.bgwriter_delay(), Duration::from_millis(200));
    for (name, value) in [
        ("checkpoint_completion_target", "0.5"),
        ("checkpoint_flush_after", "1MB"),
        ("bgwriter_lru_maxpages", "0"),
        ("bgwriter_lru_multiplier", "1.5"),
        ("bgwriter_flush_after", "0"),
        ("backend_flush_after", "16"),
        ("file_extend_method", "Write_Zeros"),
    ] {
        settings.set(name, value)?;
    }
    assert_eq!(settings.checkpoint_completion_target(), 0.5);
    assert_eq!((settings.checkpoint_flush_after(), settings.bgwriter_flush_after()), (128, 0));
    assert_eq!((settings.bgwriter_lru_maxpages(), settings.bgwriter_lru_multiplier()), (0, 1.5));
    assert_eq!(settings.backend_flush_after(), 16);
    assert_eq!(settings.file_extend_method(), ExtendMethod::WriteZeros);
    assert_eq!(settings.file_extend_method().name(), "write_zeros");
    Ok(())
}

#[test]
fn counts() {
    check("effective_io_concurrency", "1000", "1000");
    check("EFFECTIVE_IO_CONCURRENCY", "0", "0");
    check(
        "effective_io_concurrency",
        "1001",
        "1001 is outside the valid range for parameter \"effective_io_concurrency\" (0 .. 1000)",
    );
    check(
        "effective_io_concurrency",
        "16 kB",
        "invalid value for parameter \"effective_io_concurrency\": \"16 kB\"",
    );
    check("io_max_concurrency", "-1", "-1");
    check(
        "io_max_concurrency",
        "0",
        "invalid value for parameter \"io_max_concurrency\": 0 / Only -1 or values bigger than 0 \
         are valid.",
    );
    check(
        "io_max_concurrency",
        "-2",
        "-2 is outside the valid range for parameter \"io_max_concurrency\" (-1 .. 1024)",
    );
    check("max_sessions", "5000", "5000");
    check(
        "max_sessions",
        "9000",
        "9000 is outside the valid range for parameter \"max_sessions\" (1 .. 8191)",
    );
    check("max_files_per_process", "64", "64");
    check(
        "max_files_per_process",
        "63",
        "63 is outside the valid range for parameter \"max_files_per_process\" (64 .. 2147483647)",
    );
    check("wal_buffers", "1", "unrecognized configuration parameter \"wal_buffers\"");
}

#[test]
fn buffers() {
    check("shared_buffers", "16", "128kB");
    check("shared_buffers", "10GB", "10GB");
    check("shared_buffers", "1073741823", "8589934584kB");
    check(
        "shared_buffers",
        "15",
        "15 8kB is outside the valid range for parameter \"shared_buffers\" (16 .. 1073741823)",
    );
    check(
        "shared_buffers",
        "8TB",
        "1073741824 8kB is outside the valid range for parameter \"shared_buffers\" \
         (16 .. 1073741823)",
    );
    check(
        "temp_buffers",
        "99",
        "99 8kB is outside the valid range for parameter \"temp_buffers\" (100 .. 1073741823)",
    );
}

#[test]
fn booleans() {
    for value in ["on", "ON", "true", "tru", "t", "T", "yes", "Ye", "y", "1"] {
        check("zero_damaged_pages", value, "on");
    }
    for value in ["off", "of", "OFF", "false", "f", "fals", "no", "n", "0"] {
        check("zero_damaged_pages", value, "off");
    }
    let message = "parameter \"ignore_checksum_failure\" requires a Boolean value";
    for value in ["", "o", "O", " on", "on ", "onn", "truee", "2", "01", "-1", "x", "\"on\"", "é"]
    {
        check("ignore_checksum_failure", value, message);
    }
}

#[test]
fn words() {
    check("io_method", "IO_URING", "io_uring");
    check(
        "io_method",
        "aio",
        "invalid value for parameter \"io_method\": \"aio\" / Available values: sync, worker, \
         io_uring.",
    );
    check("io_direct", "data", "data");
    check("io_direct", " \"DATA\" , data", "data");
    check("io_direct", "", "");
    check("debug_io_direct", "data", "data");
    check(
        "io_direct",
        "data, wal",
        "\"wal\" is not supported yet in parameter \"io_direct\" / The only supported value \
         is \"data\".",
    );
    check(
        "debug_io_direct",
        "wal_init",
        "\"wal_init\" is not supported yet in parameter \"debug_io_direct\" / The only supported \
         value is \"data\".",
    );
    check(
        "io_direct",
        "data,",
        "invalid value for parameter \"io_direct\": \"data,\" / Invalid list syntax in parameter \
         \"io_direct\".",
    );
    check(
        "io_direct",
        "on",
        "invalid value for parameter \"io_direct\": \"on\" / Invalid option \"on\". Available \
         values: data.",
    );
}

#[test]
fn io_workers_sets_both_bounds() -> Result<(), SettingError> {
    let mut settings = Settings::default();
    settings.set_assignment("io-workers=3")?;
    assert_eq!((settings.io_min_workers(), settings.io_max_workers()), (3, 3));
    assert_eq!(settings.show("io_workers")?, "3");
    let error = settings.set("io_workers", "257");
    assert_eq!(
        error.map_err(|e| e.to_string()),
        Err("257 is outside the valid range for parameter \"io_workers\" (1 .. 256)".to_owned())
    );
    assert_eq!(settings.io_max_workers(), 3);
    Ok(())
}

#[test]
fn getters_return_effective_values() -> Result<(), SettingError> {
    let mut settings = Settings::default();
    settings.set("io_combine_limit", "1MB")?;
    assert_eq!(settings.io_combine_limit(), 16);
    settings.set("io_max_combine_limit", "128")?;
    assert_eq!(settings.io_combine_limit(), 128);
    settings.set("io_min_workers", "20")?;
    assert_eq!(settings.io_min_workers(), 8);
    assert_eq!(settings.io_max_concurrency(), None);
    settings.set("io_max_concurrency", "64")?;
    assert_eq!(settings.io_max_concurrency(), Some(64));
    assert_eq!(settings.io_worker_idle_timeout(), Duration::from_secs(60));
    assert_eq!(settings.io_worker_launch_interval(), Duration::from_millis(100));
    assert_eq!(settings.io_method(), IoMethod::Worker);
    assert_eq!((settings.shared_buffers(), settings.temp_buffers()), (16_384, 1024));
    assert_eq!(settings.max_files_per_process(), 1000);
    assert_eq!(settings.max_sessions(), 255);
    assert!(!settings.zero_damaged_pages() && !settings.ignore_checksum_failure());
    settings.set_assignment("zero-damaged-pages=yes")?;
    assert!(settings.zero_damaged_pages() && !settings.ignore_checksum_failure());
    settings.set("ignore_checksum_failure", "t")?;
    settings.set("zero_damaged_pages", "f")?;
    assert!(!settings.zero_damaged_pages() && settings.ignore_checksum_failure());
    assert!(!settings.io_direct_data());
    settings.set("io_direct", "data")?;
    assert!(settings.io_direct_data());
    assert_eq!(
        settings.set_assignment("io_method").map_err(|e| e.to_string()),
        Err("-c io_method requires a value".to_owned())
    );
    Ok(())
}

#[test]
fn large_numbers_are_shown_as_by_printf() {
    let cases = [
        (999_999.0, "999999"),
        (999_999.7, "1e+06"),
        (2_500_000.0, "2.5e+06"),
        (-1e12, "-1e+12"),
        (f64::MAX, "1.79769e+308"),
    ];
    for (number, expected) in cases {
        assert_eq!(number::show_real(number), expected);
    }
}
