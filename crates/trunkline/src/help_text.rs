//! Texts that the help and the manual pages share: examples, exit statuses, environment variables.

/// The version of the program and the commit that it was built from.
pub(crate) const VERSION: &str = env!("TRUNKLINE_VERSION");

/// Example command lines, and what each of them does.
pub(crate) const EXAMPLES: [(&str, &str); 20] = [
    ("trunkline tables -D DIR -d bench --sort size", "list the tables of a database"),
    ("trunkline copy -D DIR -d bench public.accounts", "print a table as COPY ... TO STDOUT does"),
    (
        "trunkline verify -D /backup/main --io-method io_uring",
        "check every page of a stopped cluster",
    ),
    ("trunkline verify -D DIR -d bench --deep", "check a database, rows and indexes too"),
    ("trunkline backup verify DIR --wal ARCHIVE", "check that a base backup restores"),
    ("trunkline prewarm -D DIR 5/16384 --shared-buffers 1GB", "load a table into a buffer pool"),
    ("trunkline inspect control -D DIR", "print the control file"),
    ("trunkline inspect page -D DIR -d bench public.t 3", "decode a page of a table"),
    ("trunkline inspect page --json base/5/1259.1 131072", "decode a page of a file, as JSON"),
    (
        "trunkline inspect page -D DIR -d bench public.t 3 --history",
        "list the records of the log that changed it",
    ),
    (
        "trunkline inspect tuple -D DIR -d bench public.t '(0,1)'",
        "decode a row version column by column",
    ),
    ("trunkline inspect btree -D DIR -d bench public.t_pkey", "describe an index level by level"),
    ("trunkline inspect wal -D DIR --rmgr Transaction", "print records of the write-ahead log"),
    ("trunkline doctor -D DIR", "find out which kinds of I/O work, and why others don't"),
    (
        "trunkline doctor -c io_method=io_uring -c max_connections=1000",
        "find out whether a server would start with these settings",
    ),
    ("trunkline init DIR", "create a new cluster"),
    ("trunkline demo", "compare I/O methods on this machine"),
    ("trunkline bench --scratch DIR --html report.html", "measure them repeatedly, with plots"),
    ("trunkline calibrate -D DIR --html report.html", "measure the device, and print settings"),
    (
        "trunkline slow-disk DIR MOUNT --profile gp3,latency=2ms",
        "mount a directory as a cloud volume",
    ),
];

/// The values of [`Exit`](crate::exit::Exit), and what they mean.
pub(crate) const EXIT_STATUSES: [(&str, &str); 7] = [
    ("0", "success"),
    (
        "1",
        "findings: something is wrong with the data, or something that doctor was asked for is missing",
    ),
    ("2", "usage error"),
    ("3", "unable to run"),
    ("130", "interrupted"),
    ("141", "the reader of the output is gone"),
    ("143", "terminated"),
];

/// Environment variables: an option that a command has if it reads the variable, its name, and
/// what it means.
pub(crate) const ENVIRONMENT: [(&str, &str, &str); 3] = [
    ("pgdata", "PGDATA", "Data directory, unless -D is given."),
    (
        "dbname",
        "PGDATABASE",
        "Database in which names are looked up, unless -d is given. tables lists it; without a \
         name, verify and prewarm still read the whole cluster.",
    ),
    (
        "dir",
        "XDG_CACHE_HOME",
        "The user's cache directory, in which demo creates its table [default: ~/.cache].",
    ),
];

/// What the help of the program ends with.
pub(crate) fn after_help() -> String {
    let mut text = "Examples:\n".to_owned();
    for (command, meaning) in EXAMPLES {
        text += &format!("  {command:<56} {meaning}\n");
    }
    text += "\nExit status:\n";
    for (status, meaning) in EXIT_STATUSES {
        text += &format!("  {status:<5}{meaning}\n");
    }
    text.trim_end().to_owned()
}
