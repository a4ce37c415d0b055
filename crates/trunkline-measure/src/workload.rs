//! **Workloads and cases**: what is measured, and under which conditions.
//!
//! ```text
//!   Workload    a name on the command line
//!     Task      one kind of work: for uniform, a scan and a selectivity
//!       Case    a task under one method, cache mode, concurrency, combine limit and number of sessions
//! ```
//! All conditions are combined, except for those that can't make a difference: direct I/O never
//! finds anything in the page cache, and a checkpoint has one session.
//!
//! With a server to compare with, each of its methods is a block of cases, because another method is
//! a restart. Within a block, our cases and the server's alternate, task by task:
//!
//! ```text
//!   sync       uniform bitmap 1 %: ours buffered, ours direct, server;  10 %: ours, ours, server; …
//!   worker 3   uniform bitmap 1 %: …
//! ```
//! Two configurations of a server that are compared with each other are such blocks, too, but they
//! take turns for each kind of scan: a pair's halves are then a few queries apart, and not all queries
//! of the workload, which take minutes on a slow disk. Our cases are in the first block. Configurations
//! have one kind of task more: queries whose plan the planner chooses.
//!
//! ```text
//!   defaults   uniform bitmap 1 %, 10 %     settings   uniform bitmap 1 %, 10 %
//!   defaults   uniform index 1 %, 10 %      settings   uniform index 1 %, 10 %
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};
use trunkline_engine::settings::IoMethod;

use crate::access::{Dataset, Scan};
use crate::server::ServerMethod;

/// A named workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// The whole table in order.
    Sequential,
    /// Range queries on a table whose values are random.
    Uniform,
    /// Range queries on a table whose values are nearly in the order of the table.
    Linear10,
    /// Blocks that are requested again while their read is in flight.
    Reread,
    /// Loading the table into the buffer pool.
    Prewarm,
    /// Checking all pages of the table.
    Verify,
    /// Writing changed pages of a scratch table.
    Checkpoint,
    /// Single blocks that must be durable before the next one is written, as by commits.
    Durable,
}

impl Workload {
    /// All workloads, in the order in which they are measured.
    pub const ALL: [Workload; 8] = [
        Workload::Sequential,
        Workload::Uniform,
        Workload::Linear10,
        Workload::Reread,
        Workload::Prewarm,
        Workload::Verify,
        Workload::Checkpoint,
        Workload::Durable,
    ];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Sequential => "sequential",
            Workload::Uniform => "uniform",
            Workload::Linear10 => "linear_10",
            Workload::Reread => "reread",
            Workload::Prewarm => "prewarm",
            Workload::Verify => "verify",
            Workload::Checkpoint => "checkpoint",
            Workload::Durable => "durable",
        }
    }

    /// Whether it writes, so that it needs a scratch directory.
    pub fn writes(self) -> bool {
        matches!(self, Workload::Checkpoint | Workload::Durable)
    }

    /// Why a server can't do the same work, if it can't.
    pub fn without_equal(self) -> Option<&'static str> {
        match self {
            Workload::Sequential | Workload::Uniform | Workload::Linear10 | Workload::Prewarm => {
                None
            }
            Workload::Reread => {
                Some("a query doesn't request a block again while it is being read")
            }
            Workload::Verify => Some("a server checks pages only when it is stopped"),
            Workload::Checkpoint => {
                Some("a server also writes its log and other files, and spreads the writes")
            }
            Workload::Durable => Some("a commit writes log records, not whole blocks"),
        }
    }
}

/// What is in the page cache when a repetition begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// As little as possible.
    Cold,
    /// The whole table.
    Cached,
}

impl Cache {
    /// Both states.
    pub const ALL: [Cache; 2] = [Cache::Cold, Cache::Cached];

    /// Whether a repetition that begins with this part of the table in the page cache was in this
    /// state. Some file systems, such as tmpfs, keep everything, and a table may be larger than memory.
    pub(crate) fn is_held(self, part: f64) -> bool {
        match self {
            Cache::Cold => part <= 0.05,
            Cache::Cached => part >= 0.99,
        }
    }

    /// The part that is farther from this state.
    pub(crate) fn worse(self, part: f64, other: f64) -> f64 {
        match self {
            Cache::Cold => part.max(other),
            Cache::Cached => part.min(other),
        }
    }

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Cache::Cold => "cold",
            Cache::Cached => "cached",
        }
    }
}

/// One kind of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Task {
    /// All blocks in order, through a ring buffer.
    Whole,
    /// A range query that selects this part of all rows.
    Range { dataset: Dataset, scan: Scan, selectivity: f64 },
    /// The same query on a server, with the plan that its planner chooses.
    Planned { dataset: Dataset, selectivity: f64 },
    /// Each block four times in a row of overlapping windows.
    Reread,
    /// Into the pool.
    Prewarm,
    /// Check all pages.
    Verify,
    /// Write half of the pages: the first half in order, or every second page.
    Checkpoint { scattered: bool },
    /// Durable writes.
    Durable,
}

/// The name of the scan that the planner of a server chooses.
pub const PLANNED: &str = "planned";

/// A task and the conditions under which it is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Case {
    pub(crate) workload: Workload,
    pub(crate) task: Task,
    /// The server's method; none if our engine does the work.
    pub(crate) server: Option<ServerMethod>,
    /// Our method.
    pub(crate) method: IoMethod,
    pub(crate) direct: bool,
    /// `None` if the task reads nothing that could be in the page cache.
    pub(crate) cache: Option<Cache>,
    pub(crate) concurrency: u32,
    /// Largest I/O, in blocks.
    pub(crate) combine: u32,
    pub(crate) sessions: usize,
}

impl Case {
    /// The name of the scan, or of the order of blocks.
    pub(crate) fn scan_name(&self) -> &'static str {
        match self.task {
            Task::Whole => "sequential",
            Task::Range { scan, .. } => scan.name(),
            Task::Planned { .. } => PLANNED,
            Task::Checkpoint { scattered: true } => "scattered",
            Task::Checkpoint { scattered: false } => "sequential",
            Task::Reread | Task::Prewarm | Task::Verify | Task::Durable => "",
        }
    }

    /// Whether both are the same work under the same conditions, except for the system and its method.
    pub(crate) fn is_comparable(&self, other: &Case) -> bool {
        let conditions =
            |case: &Case| (case.task, case.cache, case.concurrency, case.combine, case.sessions);
        conditions(self) == conditions(other)
    }

    /// Whether it is a server with its own concurrency and sizes of I/Os, not ours.
    pub(crate) fn has_own_sizes(&self) -> bool {
        self.server.is_some_and(ServerMethod::is_configuration)
    }

    /// The selectivity in percent, if it matters.
    pub(crate) fn selectivity_percent(&self) -> Option<f64> {
        match self.task {
            Task::Range { scan: Scan::Bitmap | Scan::Index, selectivity, .. }
            | Task::Planned { selectivity, .. } => {
                Some(crate::rounding::rounded(selectivity * 100.0, 6))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.workload.name())?;
        if !self.scan_name().is_empty() && self.scan_name() != self.workload.name() {
            write!(f, " {}", self.scan_name())?;
        }
        if let Some(percent) = self.selectivity_percent() {
            write!(f, " {percent} %")?;
        }
        let mode = if self.direct { "direct" } else { "buffered" };
        match self.server {
            None => write!(f, ", {} {mode}", self.method),
            Some(server) => write!(f, ", server {}", server.label()),
        }
    }
}

/// Everything to be measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// Kinds of scans for range queries.
    pub scans: Vec<Scan>,
    /// Whether range queries are also run with the plan that a server's planner chooses.
    pub planned: bool,
    /// Parts of all rows that range queries select, between 0 and 1.
    pub selectivities: Vec<f64>,
    /// I/O methods.
    pub methods: Vec<IoMethod>,
    /// Buffered (false) and direct I/O (true).
    pub direct: Vec<bool>,
    /// States of the page cache.
    pub caches: Vec<Cache>,
    /// I/Os in flight for each session.
    pub concurrencies: Vec<u32>,
    /// Largest I/Os, in blocks.
    pub combines: Vec<u32>,
    /// Numbers of concurrent sessions.
    pub sessions: Vec<usize>,
    /// Methods or configurations of the server to compare with; none without a server.
    pub servers: Vec<ServerMethod>,
    /// Whether only the server works.
    pub only_server: bool,
    /// For the block lists.
    pub seed: u64,
}

impl Plan {
    /// The cases of one workload, in the order in which they are measured.
    pub(crate) fn cases(&self, workload: Workload) -> Vec<Case> {
        let ours = self.own_cases(workload);
        match self.servers.is_empty() {
            true => ours,
            // These take turns for each kind of scan.
            false if self.servers.iter().any(|server| server.is_configuration()) => {
                let scans = ours.chunk_by(|one, next| one.scan_name() == next.scan_name());
                scans.flat_map(|ours| self.with_server(ours)).collect()
            }
            false => self.with_server(&ours),
        }
    }

    /// Adds the server's cases, in a block for each of its methods or configurations.
    fn with_server(&self, ours: &[Case]) -> Vec<Case> {
        let mut all = Vec::new();
        for (block, &server) in self.servers.iter().enumerate() {
            // A method of ours that the server doesn't have belongs to the first block.
            let block_of = |method: IoMethod| {
                let found = self.servers.iter().position(|server| server.ours() == Some(method));
                found.unwrap_or(0)
            };
            let mut done: Vec<Case> = Vec::new();
            for first in ours {
                if done.iter().any(|case| case.is_comparable(first)) {
                    continue;
                }
                done.push(*first);
                let only_server = self.only_server || matches!(first.task, Task::Planned { .. });
                let same = ours.iter().filter(|case| !only_server && case.is_comparable(first));
                all.extend(same.filter(|case| block_of(case.method) == block).copied());
                all.push(Case { server: Some(server), direct: false, ..*first });
            }
        }
        all
    }

    /// The cases of our engine.
    fn own_cases(&self, workload: Workload) -> Vec<Case> {
        let mut cases = Vec::new();
        for task in self.tasks(workload) {
            // Only what makes a difference is varied.
            let is_cached = |direct: bool| match (workload.writes(), direct) {
                (true, _) => vec![None],
                (false, true) => vec![Some(Cache::Cold)],
                (false, false) => self.caches.iter().copied().map(Some).collect(),
            };
            let streams = !matches!(workload, Workload::Durable);
            let parallel = matches!(
                workload,
                Workload::Sequential | Workload::Uniform | Workload::Linear10 | Workload::Durable
            );
            let [concurrencies, combines] = [&self.concurrencies, &self.combines]
                .map(|all| if streams { all.clone() } else { vec![1] });
            let sessions = if parallel { self.sessions.clone() } else { vec![1] };
            for &direct in &self.direct {
                for cache in is_cached(direct) {
                    // A cold cache is asked for, but direct I/O doesn't use any.
                    if direct && !workload.writes() && !self.caches.contains(&Cache::Cold) {
                        continue;
                    }
                    for &concurrency in &concurrencies {
                        for &combine in &combines {
                            for &sessions in &sessions {
                                cases.extend(self.methods.iter().map(|&method| Case {
                                    workload,
                                    task,
                                    server: None,
                                    method,
                                    direct,
                                    cache,
                                    concurrency,
                                    combine,
                                    sessions,
                                }));
                            }
                        }
                    }
                }
            }
        }
        cases
    }

    fn tasks(&self, workload: Workload) -> Vec<Task> {
        let ranges = |dataset| {
            let mut tasks = Vec::new();
            for &scan in &self.scans {
                // A sequential scan reads everything, whatever the range.
                let all = [1.0];
                let selectivities: &[f64] = match scan {
                    Scan::Sequential => &all,
                    Scan::Bitmap | Scan::Index => &self.selectivities,
                };
                let task = |&selectivity| Task::Range { dataset, scan, selectivity };
                tasks.extend(selectivities.iter().map(task));
            }
            if self.planned {
                let task = |&selectivity| Task::Planned { dataset, selectivity };
                tasks.extend(self.selectivities.iter().map(task));
            }
            tasks
        };
        match workload {
            Workload::Sequential => vec![Task::Whole],
            Workload::Uniform => ranges(Dataset::Uniform),
            Workload::Linear10 => ranges(Dataset::Linear10),
            Workload::Reread => vec![Task::Reread],
            Workload::Prewarm => vec![Task::Prewarm],
            Workload::Verify => vec![Task::Verify],
            Workload::Checkpoint => {
                [false, true].map(|scattered| Task::Checkpoint { scattered }).to_vec()
            }
            Workload::Durable => vec![Task::Durable],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_a_difference_is_varied() {
        let plan = Plan {
            workloads: Workload::ALL.to_vec(),
            scans: Scan::ALL.to_vec(),
            planned: false,
            selectivities: vec![0.001, 0.01, 0.1],
            methods: IoMethod::ALL.to_vec(),
            direct: vec![false, true],
            caches: Cache::ALL.to_vec(),
            concurrencies: vec![1, 16],
            combines: vec![1, 16],
            sessions: vec![1, 4],
            seed: 1,
            servers: Vec::new(),
            only_server: false,
        };
        let count = |workload| plan.cases(workload).len();
        // Methods × (buffered cold, buffered cached, direct) × concurrencies × limits × sessions.
        let (each, alone) = (3 * 3 * 2 * 2 * 2, 3 * 3 * 2 * 2);
        assert_eq!(count(Workload::Sequential), each);
        assert_eq!(count(Workload::Uniform), (1 + 3 + 3) * each);
        assert_eq!([Workload::Reread, Workload::Prewarm, Workload::Verify].map(count), [alone; 3]);
        assert_eq!(count(Workload::Checkpoint), 2 * 3 * 2 * 2 * 2);
        assert_eq!(count(Workload::Durable), 3 * 2 * 2);
        let cached = Plan { caches: vec![Cache::Cached], ..plan };
        assert!(cached.cases(Workload::Verify).iter().all(|case| !case.direct));
        assert!(cached.cases(Workload::Durable).iter().any(|case| case.direct));
    }

    #[test]
    fn the_server_does_each_task_once_with_each_of_its_methods() {
        let servers = vec![ServerMethod::Sync, ServerMethod::Worker(3), ServerMethod::Worker(12)];
        let plan = Plan {
            workloads: vec![Workload::Uniform],
            scans: vec![Scan::Bitmap],
            planned: false,
            selectivities: vec![0.01, 0.1],
            methods: IoMethod::ALL.to_vec(),
            direct: vec![false, true],
            caches: Cache::ALL.to_vec(),
            concurrencies: vec![16],
            combines: vec![16],
            sessions: vec![1],
            seed: 1,
            servers: servers.clone(),
            only_server: false,
        };
        let cases = plan.cases(Workload::Uniform);
        // Selectivities × (cold, cached) × servers; our cases are the same as without a server.
        let of_server: Vec<&Case> = cases.iter().filter(|case| case.server.is_some()).collect();
        assert_eq!(of_server.len(), 2 * 2 * 3);
        let alone = Plan { servers: Vec::new(), ..plan }.cases(Workload::Uniform);
        assert_eq!(cases.len() - of_server.len(), alone.len());
        assert!(alone.iter().all(|case| cases.contains(case)));
        // One block for each method, with our cases of the same kind. io_uring is in the first.
        let blocks: Vec<_> = of_server.chunks(4).collect();
        for (block, &server) in blocks.iter().zip(&servers) {
            assert!(block.iter().all(|case| case.server == Some(server)), "{block:?}");
        }
        let end = cases.iter().rposition(|case| case.server == Some(servers[0])).expect("one");
        let rings = |part: &[Case]| part.iter().any(|case| case.method == IoMethod::IoUring);
        assert!(rings(&cases[..end]) && !rings(&cases[end + 1..]), "{cases:?}");
        let workers = |part: &[Case]| part.iter().any(|case| case.method == IoMethod::Worker);
        assert!(!workers(&cases[..end]) && workers(&cases[end + 1..]), "{cases:?}");
    }

    #[test]
    fn configurations_take_turns_and_have_plans_of_their_own() {
        let plan = Plan {
            workloads: vec![Workload::Linear10],
            scans: vec![Scan::Index],
            planned: true,
            selectivities: vec![0.01, 0.1],
            methods: vec![IoMethod::Sync, IoMethod::Worker],
            direct: vec![false, true],
            caches: vec![Cache::Cold],
            concurrencies: vec![16],
            combines: vec![16],
            sessions: vec![1],
            seed: 1,
            servers: ServerMethod::CONFIGURATIONS.to_vec(),
            only_server: false,
        };
        let cases = plan.cases(Workload::Linear10);
        let (servers, ours): (Vec<Case>, Vec<Case>) =
            cases.iter().partition(|case| case.server.is_some());
        assert!(servers.iter().all(Case::has_own_sizes));
        // Two selectivities of each scan in one configuration, and then in the other.
        let found = servers.iter().map(|it| (it.scan_name(), it.server, it.selectivity_percent()));
        let block = |scan, server| [1.0, 10.0].map(|it| (scan, Some(server), Some(it)));
        let scan = |scan| ServerMethod::CONFIGURATIONS.map(|server| block(scan, server)).concat();
        assert!(found.eq(["index", PLANNED].map(scan).concat()), "{servers:?}");
        // Ours has no planner, and is in the block of the defaults.
        assert_eq!(ours.len(), 2 * 2 * 2);
        assert!(ours.iter().all(|case| case.scan_name() == "index" && !case.has_own_sizes()));
        assert!(cases[..ours.len() + 2].iter().all(|it| it.server != Some(ServerMethod::Settings)));
        let alone = Plan { only_server: true, ..plan }.cases(Workload::Linear10);
        assert_eq!(alone, servers);
    }
}
