//! Options of `bench`, and the plan that results from them.
//!
//! `--io-method` and `--io-direct` restrict the comparison, which otherwise covers everything. The
//! settings `effective_io_concurrency` and `io_combine_limit` are the defaults of the lists.

use std::path::{Path, PathBuf};

use clap::ValueHint;
use clap::builder::PossibleValuesParser;
use trunkline_engine::settings::IoMethod;
use trunkline_measure::{Cache, PLANNED, Plan, RepetitionRule, Scan, ServerMethod, Workload};
use trunkline_sample::accounts::SCALE_MAX;
use trunkline_slow_disk::Profile;

use crate::exit::Failure;
use crate::number::number;
use crate::options::{Context, DatabaseArgs};

/// Default scale of the generated table: 1.3 GB.
const SCALE: u32 = 100;
/// Default scale with a server: 2 million rows, as in the tuning guide.
const SCALE_OF_GUIDE: u32 = 20;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Workloads to measure [default: all that are possible; checkpoint and durable need
    /// --scratch].
    #[arg(value_name = "WORKLOAD")]
    #[arg(value_parser = PossibleValuesParser::new(Workload::ALL.map(Workload::name)))]
    workloads: Vec<String>,

    /// Table of the data directory to read. It can be given as a database OID and a file number,
    /// such as 5/16384, or by name, with -d or as database.schema.table.
    #[arg(long, value_name = "RELATION")]
    pub(super) table: Option<PathBuf>,

    #[command(flatten)]
    pub(super) database: DatabaseArgs,

    /// Create a scratch directory in DIR, which must not be in a data directory, for workloads that
    /// write and, without --table, for a generated table. It is removed at the end.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) scratch: Option<PathBuf>,

    /// Scale factor of the generated table, as in pgbench [default: 100]. Each unit adds 100,000
    /// rows, which take about 13 MB. With --postgres, each unit adds 100,000 rows to both tables,
    /// which take about 54 MB with their indexes [default: 20].
    #[arg(long, value_name = "N", value_parser = number(1..=SCALE_MAX))]
    scale: Option<u32>,

    /// Put what is measured on a simulated disk of this profile, as slow-disk takes it: in the
    /// scratch directory, which should be on a faster one.
    #[arg(long, value_name = "PROFILE", requires = "scratch", conflicts_with = "table")]
    #[arg(value_parser = |text: &str| text.parse::<Profile>())]
    pub(super) slow_disk: Option<Profile>,

    /// Compare with the PostgreSQL server whose programs are in BINDIR. It is started on a private
    /// socket, with a cluster in the scratch directory that has the tables uniform and linear_10.
    /// Both systems read these files.
    #[arg(long, value_name = "BINDIR", value_hint = ValueHint::DirPath)]
    #[arg(requires = "scratch", conflicts_with = "table")]
    pub(super) postgres: Option<PathBuf>,

    /// User that runs the server if this command is run as root [default: postgres or nobody].
    #[arg(long, value_name = "NAME", requires = "postgres")]
    pub(super) postgres_user: Option<String>,

    /// Numbers of worker processes of a server with io_method = worker.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "3,12")]
    #[arg(value_parser = number(1..=32_u32))]
    postgres_workers: Vec<u32>,

    /// Compare two configurations of the server instead of its methods: its defaults, and the
    /// lines of FILE, which are those of a postgresql.conf, such as trunkline calibrate -D DIR --for 18
    /// --conf FILE writes. Both keep their own concurrency and sizes of I/Os. A case is repeated until
    /// it is decided whether it is faster, not slower or slower, within --repetitions and --max-time.
    /// Only reads are measured, so lines about writes make no difference.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(requires = "postgres", conflicts_with = "postgres_workers")]
    pub(super) postgres_settings: Option<PathBuf>,

    /// Measure only the server, and leave out trunkline's engine.
    #[arg(long, requires = "postgres")]
    only_postgres: bool,

    /// Kinds of scans for uniform and linear_10 [default: sequential,bitmap,index, and planned with
    /// --postgres-settings]. For planned, the planner of the server chooses.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(value_parser = PossibleValuesParser::new(scan_names()))]
    scan: Vec<String>,

    /// Parts of all rows that queries of uniform and linear_10 select, in percent.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0.01,0.1,1,10,100")]
    #[arg(value_parser = percentage)]
    selectivity: Vec<f64>,

    /// States of the page cache. Direct I/O is measured only with cold.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "cold")]
    #[arg(value_parser = PossibleValuesParser::new(Cache::ALL.map(Cache::name)))]
    cache: Vec<String>,

    /// Numbers of I/Os in flight, 1 to 1000 [default: effective_io_concurrency].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = number(1..=1000_u32))]
    concurrency: Vec<u32>,

    /// Largest sizes of an I/O in blocks, 1 to 128 [default: io_combine_limit].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = number(1..=128_u32))]
    combine: Vec<u32>,

    /// Numbers of concurrent sessions, 1 to 256, for sequential, uniform, linear_10 and durable.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1")]
    #[arg(value_parser = number(1..=256_u32))]
    sessions: Vec<u32>,

    /// Largest number of repetitions of a case. At least 7 are needed for a case to be steady and
    /// to be compared with another run. Whether it is steady is decided after 7, 12 and 20, then 34,
    /// 57 and so on, and after the last one.
    #[arg(long, value_name = "N", default_value = "20", value_parser = number(1..=1000_u32))]
    repetitions: u32,

    /// A case is steady, and is not repeated any more, if the 95 % confidence interval of its
    /// median is no wider than this part of the median, in percent.
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = percentage)]
    spread: f64,

    /// Don't repeat a case that has taken this long, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = number(1..=86_400_u32))]
    max_time: u32,

    /// Seed of the random block lists.
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,

    /// Compare with a run that was stored with --save.
    #[arg(long, value_name = "RUN", value_hint = ValueHint::FilePath)]
    pub(super) against: Option<PathBuf>,

    /// Write the report to a file as JSON.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) save: Option<PathBuf>,

    /// Write the numbers to a file as CSV.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) csv: Option<PathBuf>,

    /// Write the report with plots to a file as HTML.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) html: Option<PathBuf>,
}

impl BenchArgs {
    /// Whether a table of a cluster is measured.
    pub(crate) fn reads_cluster(&self) -> bool {
        self.table.is_some()
    }

    /// What to measure.
    pub(super) fn plan(&self, context: &Context<'_>) -> Result<Plan, Failure> {
        if self.table.is_none() && self.scratch.is_none() {
            return Err(no_table());
        }
        let has_scratch = self.scratch.is_some();
        let workloads = self.workloads(has_scratch)?;
        let settings = &context.settings;
        let or = |list: &[u32], default: u32| match list {
            [] => vec![default.max(1)],
            list => sorted(list.to_vec()),
        };
        let all = context.given.contains("io_method");
        if self.postgres.is_some() && self.sessions.iter().any(|&number| number != 1) {
            let text = "several sessions can't be compared with a server";
            return Err(Failure::usage(text).with_hint("use --sessions 1"));
        }
        self.check_only_postgres(context)?;
        self.check_configurations()?;
        Ok(Plan {
            workloads,
            scans: match self.scan.is_empty() {
                true => Scan::ALL.to_vec(),
                false => chosen(&self.scan, Scan::ALL, Scan::name),
            },
            planned: self.postgres_settings.is_some()
                && (self.scan.is_empty() || self.names_planned()),
            selectivities: self.selectivities(),
            methods: if all { vec![settings.io_method()] } else { IoMethod::ALL.to_vec() },
            // A server has no direct cases.
            direct: match context.given.contains("io_direct") {
                _ if self.only_postgres => vec![false],
                true => vec![settings.io_direct_data()],
                false => vec![false, true],
            },
            caches: chosen(&self.cache, Cache::ALL, Cache::name),
            concurrencies: or(&self.concurrency, settings.effective_io_concurrency()),
            combines: or(&self.combine, settings.io_combine_limit()),
            sessions: sorted(self.sessions.iter().map(|&number| number as usize).collect()),
            seed: self.seed,
            // The caller adds the server's.
            servers: Vec::new(),
            only_server: self.only_postgres,
        })
    }

    fn names_planned(&self) -> bool {
        self.scan.iter().any(|name| name == PLANNED)
    }

    /// Fails if an option is only about trunkline's engine, which isn't measured.
    fn check_only_postgres(&self, context: &Context<'_>) -> Result<(), Failure> {
        if !self.only_postgres {
            return Ok(());
        }
        let why = if context.given.contains("io_direct") {
            "--io-direct has no effect with --only-postgres: the server's reads are buffered"
        } else if self.postgres_settings.is_some() && context.given.contains("io_method") {
            "--io-method has no effect on the configurations of a server, which have their own"
        } else {
            return Ok(());
        };
        Err(Failure::usage(why))
    }

    /// Fails if an option can't have its effect on the configurations of a server, or without them.
    fn check_configurations(&self) -> Result<(), Failure> {
        if self.postgres_settings.is_none() {
            if self.names_planned() {
                let text = "the scan planned needs two configurations of a server";
                return Err(Failure::usage(text).with_hint("use --postgres-settings FILE"));
            }
            return Ok(());
        }
        for (name, values) in [("concurrency", &self.concurrency), ("combine", &self.combine)] {
            // A configuration's cases would be repeated for each value, with the same settings.
            let most = usize::from(!self.only_postgres);
            if values.len() > most {
                let why = match self.only_postgres {
                    true => "has no effect on the configurations of a server, which have their own",
                    false => "takes one value with --postgres-settings, for trunkline's engine",
                };
                return Err(Failure::usage(format!("--{name} {why}")));
            }
        }
        Ok(())
    }

    /// The server's methods or configurations, in the order in which they are measured.
    pub(super) fn server_methods(&self, major: u32, context: &Context<'_>) -> Vec<ServerMethod> {
        if self.postgres_settings.is_some() {
            return ServerMethod::CONFIGURATIONS.to_vec();
        }
        let only = context.given.contains("io_method").then(|| context.settings.io_method());
        ServerMethod::all(major, &sorted(self.postgres_workers.clone()), only)
    }

    /// The scale of the generated tables.
    pub(super) fn scale(&self) -> u32 {
        let default = if self.postgres.is_some() { SCALE_OF_GUIDE } else { SCALE };
        self.scale.unwrap_or(default)
    }

    fn workloads(&self, has_scratch: bool) -> Result<Vec<Workload>, Failure> {
        if self.workloads.is_empty() {
            let possible = |workload: &Workload| is_possible(*workload, has_scratch);
            return Ok(Workload::ALL.into_iter().filter(possible).collect());
        }
        let workloads = chosen(&self.workloads, Workload::ALL, Workload::name);
        match workloads.iter().find(|&&workload| !is_possible(workload, has_scratch)) {
            None => Ok(workloads),
            Some(writes) => {
                let text = format!("{} writes, and there is no scratch directory", writes.name());
                Err(Failure::usage(text).with_hint("use --scratch DIR"))
            }
        }
    }

    fn selectivities(&self) -> Vec<f64> {
        let mut parts: Vec<f64> = self.selectivity.iter().map(|percent| percent / 100.0).collect();
        parts.sort_by(f64::total_cmp);
        parts.dedup();
        parts
    }

    /// When a case has been repeated often enough.
    pub(super) fn rule(&self) -> RepetitionRule {
        RepetitionRule {
            repetitions_max: self.repetitions,
            spread_max: self.spread / 100.0,
            seconds_max: f64::from(self.max_time),
        }
    }

    /// The files to be written.
    pub(super) fn reports(&self) -> impl Iterator<Item = &Path> {
        [&self.save, &self.csv, &self.html].into_iter().flatten().map(PathBuf::as_path)
    }
}

/// The failure if no option names a table.
pub(super) fn no_table() -> Failure {
    Failure::usage("no table to measure").with_hint(
        "use -D DIR --table RELATION for a table of a stopped cluster, or --scratch DIR for a \
         generated one",
    )
}

/// The values of `--scan`.
fn scan_names() -> Vec<&'static str> {
    Scan::ALL.map(Scan::name).into_iter().chain([PLANNED]).collect()
}

/// Whether a workload writes, so that it is left out without a scratch directory.
fn is_possible(workload: Workload, has_scratch: bool) -> bool {
    has_scratch || !workload.writes()
}

/// The values that were named, in the order of `all`.
fn chosen<T: Copy, const N: usize>(
    names: &[String],
    all: [T; N],
    name: fn(T) -> &'static str,
) -> Vec<T> {
    all.into_iter().filter(|&value| names.iter().any(|known| known == name(value))).collect()
}

fn sorted<N: Ord>(mut numbers: Vec<N>) -> Vec<N> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// A percentage above 0, up to 100.
fn percentage(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if number > 0.0 && number <= 100.0 { Ok(number) } else { Err("must be in range 0..100".into()) }
}
