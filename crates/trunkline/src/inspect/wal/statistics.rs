//! Numbers and sizes of records, by resource manager or operation, as `pg_waldump --stats` counts
//! them: a record's size is that without its images.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Serialize;
use trunkline_format::Lsn;
use trunkline_format::wal::resource_manager::operation_name;
use trunkline_format::wal::{LogRecord, ResourceManager};

use crate::exit::Failure;
use crate::options::Global;
use crate::output::{Column, object, print_report, table};

/// What a line stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Grouping {
    /// A resource manager.
    Rmgr,
    /// An operation of a resource manager.
    Record,
}

/// Counts of one line.
#[derive(Debug, Clone, Default, Serialize)]
struct Line {
    name: String,
    records: u64,
    record_bytes: u64,
    image_bytes: u64,
    #[serde(skip)]
    shares: [f64; 4],
}

impl Line {
    fn add(&mut self, records: u64, record_bytes: u64, image_bytes: u64) {
        self.records += records;
        self.record_bytes += record_bytes;
        self.image_bytes += image_bytes;
    }

    fn combined(&self) -> u64 {
        self.record_bytes + self.image_bytes
    }

    fn counts(&self) -> [u64; 4] {
        [self.records, self.record_bytes, self.image_bytes, self.combined()]
    }

    fn set_shares(&mut self, whole: [u64; 4]) {
        let counts = self.counts();
        for (share, (count, whole)) in self.shares.iter_mut().zip(counts.into_iter().zip(whole)) {
            *share = if whole == 0 { 0.0 } else { count as f64 / whole as f64 };
        }
    }
}

/// Collects the counts.
pub(super) struct Statistics {
    grouping: Grouping,
    /// By resource manager, then by operation.
    lines: BTreeMap<(ResourceManager, u8), Line>,
}

const COLUMNS: [Column<Line>; 9] = [
    ("type", |line| line.name.clone()),
    (">records", |line| line.records.to_string()),
    (">%", |line| percent(line.shares[0])),
    (">record size", |line| line.record_bytes.to_string()),
    (">%", |line| percent(line.shares[1])),
    (">FPI size", |line| line.image_bytes.to_string()),
    (">%", |line| percent(line.shares[2])),
    (">combined size", |line| line.combined().to_string()),
    (">%", |line| percent(line.shares[3])),
];

fn percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

impl Statistics {
    pub(super) fn new(grouping: Grouping) -> Statistics {
        Statistics { grouping, lines: BTreeMap::new() }
    }

    pub(super) fn count(&mut self, found: &LogRecord<'_>) {
        let header = found.record.header();
        let manager = ResourceManager(header.manager);
        // Operations with the same name, such as commits with and without flags, share a line.
        let name = operation_name(header, found.version);
        let operation = match (self.grouping, name) {
            (Grouping::Rmgr, _) => 0,
            (Grouping::Record, Some("Generic")) => 0,
            // Only a transaction's highest bit is a flag.
            (Grouping::Record, _) if header.manager == 1 => header.operation() & 0x70,
            (Grouping::Record, _) => header.operation(),
        };
        let line = self.lines.entry((manager, operation)).or_insert_with(|| {
            let name = match (self.grouping, name) {
                (Grouping::Rmgr, _) => manager.to_string(),
                (Grouping::Record, Some(name)) => format!("{manager}/{name}"),
                (Grouping::Record, None) => format!("{manager}/UNKNOWN ({operation:X})"),
            };
            Line { name, ..Line::default() }
        });
        let image_bytes = found.record.image_bytes() as u64;
        line.add(1, u64::from(header.length).saturating_sub(image_bytes), image_bytes);
    }

    pub(super) fn print(self, global: &Global, from: Lsn, to: Lsn) -> Result<(), Failure> {
        let mut lines: Vec<Line> = self.lines.into_values().collect();
        let mut total = Line { name: "total".to_owned(), ..Line::default() };
        for line in &lines {
            total.add(line.records, line.record_bytes, line.image_bytes);
        }
        let whole = total.counts();
        lines.push(total);
        lines.iter_mut().for_each(|line| line.set_shares(whole));
        let (from, to) = (from.to_string(), to.to_string());
        let json = object! { from: &from, to: &to, lines: &lines };
        let text = || format!("between {from} and {to}\n\n{}", table(&lines, &COLUMNS));
        print_report(global, &json, text)
    }
}
