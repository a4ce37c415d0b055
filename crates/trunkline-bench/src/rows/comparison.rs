//! **Rows as data**, and the runner that turns a row into its report.
//!
//! ```text
//!   Row           name, what it measures, settings, set-up, lines, notes
//!     set-up      the data to read, or a table to write          Stage
//!     lines       a Comparison each: names, target, experiment
//!     experiment  prepares and measures both halves of a pair    Experiment
//! ```
//!
//! A row declares its lines as data: which contender is compared with which baseline, and the
//! target. Most lines differ only in their parameters, so there are only a few experiments. We
//! create the pool for a line just before we measure that line, so that there is only one pool in
//! memory at a time.

use super::checkpoint_table::Table;
use super::options::RunOptions;
use crate::costs::Cost;
use crate::data::Data;
use crate::failure::Result;
use crate::group::Group;
use crate::pairs::{Half, Pairs, Sample};
use crate::report::{Line, Names, Report, Target};
use std::cell::{Cell, OnceCell, RefCell, RefMut};

/// A row of the benchmark table.
pub(crate) struct Row {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// What it measures, for `--help`.
    pub(crate) measures: &'static str,
    /// The question that the row answers, which is its heading in the report.
    pub(super) question: &'static str,
    /// What the report says below the heading: above all what the baseline is.
    pub(super) about: &'static str,
    /// The PostgreSQL settings that this row uses. They never include the I/O method or the size of
    /// the pool, because each row chooses those itself.
    pub(crate) settings: &'static [&'static str],
    /// `all` leaves the row out unless the user passed this.
    pub(crate) needs: Needs,
    pub(super) set_up: SetUp,
    pub(super) body: Body,
    /// Notes above the lines. They are computed at the end.
    pub(super) notes: fn(&Stage<'_>) -> Result<Vec<String>>,
}

/// What the user must pass for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// A directory on a slow device.
    LagDir,
    /// A parent control group.
    Group,
    /// The setting `checkpoint_timeout`, because a pair takes two of them.
    Timeout,
}

/// What a row's lines have in common.
#[derive(Clone, Copy)]
pub(super) enum SetUp {
    /// All data in `--dir`.
    Whole,
    /// A separate, smaller data set in the given subdirectory, limited to the given number of
    /// bytes.
    Folder(&'static str, u64),
    /// A data set in `--lag-dir`, limited to the given number of bytes.
    SlowDevice(u64),
    /// A table to write: its minimum size in bytes, and the number of buffers. Concurrent readers
    /// read all data in `--dir`.
    Table(fn(&RunOptions) -> Result<(u64, u32)>),
}

/// What a row measures.
pub(super) enum Body {
    /// Comparisons, in report order. A table is verified after each function's lines.
    Lines(&'static [Lines]),
    /// Costs per page, without a baseline.
    Costs(fn(&Stage<'_>) -> Result<Vec<Cost>>),
}

/// The lines of a row, or of a part of it.
type Lines = fn(&Stage<'_>) -> Result<Vec<Comparison>>;

/// One comparison, which becomes one line of a report.
pub(super) struct Comparison {
    names: Names,
    target: Target,
    experiment: Box<dyn Experiment>,
}

impl Comparison {
    pub(super) fn new(names: Names, target: Target, experiment: impl Experiment + 'static) -> Self {
        Self { names, target, experiment: Box::new(experiment) }
    }
}

/// The work done by a baseline and a contender, plus everything they both need. A type that
/// implements this trait only describes the work. The `measure` method opens the files and starts
/// the threads.
pub(super) trait Experiment {
    /// Measures all pairs of the line with these names.
    fn measure(&self, stage: &Stage<'_>, names: &Names) -> Result<Measured>;
}

/// All pairs of a line, and notes about them.
pub(super) struct Measured {
    pub(super) pairs: Pairs,
    pub(super) notes: Vec<String>,
}

/// A row's set-up during a run.
pub(super) struct Stage<'a> {
    pub(super) bench: &'a RunOptions,
    row: &'a Row,
    /// Created when it is first needed.
    data: OnceCell<Data>,
    table: Option<RefCell<Table>>,
    /// Created by the line that needs it, and removed at the end.
    group: OnceCell<Group>,
    /// The kind of memory pages that backed the last pool or I/O region used for sequential reads.
    /// We show it in the report, because those reads are faster with huge pages.
    pub(super) page_kind: Cell<Option<&'static str>>,
}

impl Row {
    /// What most rows have in common: all data in `--dir`, and a note that says how cold it was.
    pub(super) const COLD: Self = Self {
        name: "",
        measures: "",
        question: "",
        about: "",
        settings: &[],
        needs: Needs::Nothing,
        set_up: SetUp::Whole,
        body: Body::Lines(&[]),
        notes: |stage| Ok(vec![stage.coldness()?]),
    };

    /// Measures every line the user selected.
    pub(crate) fn run(&self, bench: &RunOptions) -> Result<Report> {
        let stage = Stage::new(self, bench)?;
        let mut report = Report {
            row: self.name.to_owned(),
            question: self.question.to_owned(),
            about: self.about.to_owned(),
            ..Report::default()
        };
        match self.body {
            Body::Costs(measure) => report.costs = measure(&stage)?,
            Body::Lines(groups) => {
                for comparisons in groups {
                    stage.measure(comparisons(&stage)?, &mut report)?;
                }
            }
        }
        report.notes.splice(0..0, (self.notes)(&stage)?);
        Ok(report)
    }
}

impl<'a> Stage<'a> {
    fn new(row: &'a Row, bench: &'a RunOptions) -> Result<Self> {
        let table = match row.set_up {
            SetUp::Table(size) => {
                let (bytes, buffers) = size(bench)?;
                Some(RefCell::new(Table::make(bench, bytes, buffers)?))
            }
            _ => None,
        };
        let (data, group) = (OnceCell::new(), OnceCell::new());
        Ok(Self { bench, row, data, table, group, page_kind: Cell::new(None) })
    }

    /// The data to read.
    pub(super) fn data(&self) -> Result<&Data> {
        if let Some(data) = self.data.get() {
            return Ok(data);
        }
        let bench = self.bench;
        let made = match self.row.set_up {
            SetUp::Whole | SetUp::Table(_) => Data::prepare(&bench.dir, bench.bytes)?,
            SetUp::Folder(name, most) => {
                Data::prepare(&bench.dir.join(name), bench.bytes.min(most))?
            }
            SetUp::SlowDevice(most) => {
                let name = self.row.name;
                let missing =
                    || format!("the row `{name}` needs --lag-dir, a folder on a slow device");
                Data::prepare(bench.lag_dir.as_deref().ok_or_else(missing)?, bench.bytes.min(most))?
            }
        };
        Ok(self.data.get_or_init(|| made))
    }

    /// The control group, limited to `limit` bytes of memory. All lines must ask for the same.
    pub(super) fn group(&self, limit: u64) -> Result<&Group> {
        if let Some(group) = self.group.get() {
            return Ok(group);
        }
        let made = Group::make(self.bench.group.as_deref(), limit)?;
        Ok(self.group.get_or_init(|| made))
    }

    /// The table to write. Only one caller may use it at a time.
    pub(super) fn table(&self) -> Result<RefMut<'_, Table>> {
        let table = self.table.as_ref().ok_or("the row has no table to write")?;
        Ok(table.borrow_mut())
    }

    /// A note: how cold the cold runs were.
    pub(super) fn coldness(&self) -> Result<String> {
        Ok(self.with_page_kind(self.data()?.coldness()))
    }

    /// A note: how warm the warm runs were.
    pub(super) fn warmth(&self) -> Result<String> {
        let cached = self.data()?.cached()? * 100.0;
        let state = format!("{cached:.0} % of the data was in the page cache at the end");
        Ok(self.with_page_kind(state))
    }

    /// A note that begins with the kind of memory pages, if it is known.
    pub(super) fn with_page_kind(&self, note: String) -> String {
        match self.page_kind.get() {
            Some(kind) => format!("{kind} pages; {note}"),
            None => note,
        }
    }

    /// Measures pairs that need no notes; see [`Pairs::run`].
    pub(super) fn pairs(&self, half: impl FnMut(Half, u64) -> Result<Sample>) -> Result<Measured> {
        Ok(Measured { pairs: Pairs::run(self.bench.pairs as usize, half)?, notes: Vec::new() })
    }

    fn measure(&self, comparisons: Vec<Comparison>, report: &mut Report) -> Result<()> {
        let before = report.lines.len();
        for Comparison { names, target, experiment } in comparisons {
            if self.bench.wants(&names) {
                let Measured { pairs, notes } = experiment.measure(self, &names)?;
                report.lines.push(Line::new(names, &pairs, target));
                report.notes.extend(notes);
            }
        }
        match &self.table {
            Some(table) if report.lines.len() > before => table.borrow_mut().finish(),
            _ => Ok(()),
        }
    }
}
