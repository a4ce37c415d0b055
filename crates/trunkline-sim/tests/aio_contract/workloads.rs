//! Random workloads, run with every I/O method. All data that is read must be correct, each outcome
//! must be returned exactly once, and there must be no leaks.
//!
//! They run on the simulated disk with faults, under many seeds, and on real files with real
//! threads.

use trunkline_aio::facade::{Arc, random};
use trunkline_aio::{Builder, File, MethodKind, OpenOptions};
use trunkline_sim::matrix::{Environment, Matrix, REAL, SIMULATED};
use trunkline_sim::{
    BLOCK, BlockModel, FaultPlan, Rates, SimExecutor, SimMethod, Workload, content, run,
};

const BLOCKS: u32 = 24;
const NAMES: [&str; 2] = ["first", "second"];
/// Seeds per method.
const SEEDS: u64 = 200;

/// Faults that the issuer sees in its outcome, or that only delay the I/O.
const LOUD: Rates = Rates { short: 60, again: 60, error: 40, delay: 40, reorder: 60, silent: 0 };
/// Faults that report success, so only the contents show them.
const SILENT: Rates = Rates { short: 0, again: 0, error: 0, delay: 0, reorder: 0, silent: 100 };

fn original(file: u32) -> Vec<u8> {
    (0..BLOCKS).flat_map(|block| content(file, block, 0)).collect()
}

/// Runs one workload on the simulated disk. Returns its failure, if any.
fn simulated(
    environment: Environment,
    rates: Rates,
    methods: &'static [MethodKind],
) -> Option<String> {
    let seed = random::seed();
    let plan = FaultPlan::random(seed, rates);
    let disk = Arc::new(trunkline_sim::Disk::new());
    // Keep everything small, so that we exhaust every resource.
    let aio = Builder::new()
        .handles(10, 1, 2)
        .session_quota(6)
        .region_bytes(1 << 20)
        .worker_queue(5)
        .executor(Arc::new(SimExecutor::new(&disk, plan.clone()).with_cache(3)))
        .custom_method(Arc::new(SimMethod::new(&disk, plan, 4)))
        .method(environment.method)
        .start()
        .expect("starts");
    let open = |file: u32| -> File {
        let name = NAMES[file as usize];
        disk.open(&aio, name, 1 + u64::from(file), &original(file))
    };
    let files = vec![open(0), open(1)];
    let model = Arc::new(BlockModel::new());
    let workload = Workload { seed, blocks: BLOCKS, methods, ..Workload::default() };
    if let Err(finding) = run(&aio, files, &model, workload) {
        return Some(finding);
    }
    let bad = model.find_bad_block(2, |file| disk.content(NAMES[file as usize]));
    bad.map(|(file, block)| format!("at the end: file {file} block {block}"))
}

#[test]
fn random_workloads_with_loud_faults_leave_nothing_behind() {
    let matrix = Matrix::simulated(&SIMULATED, SEEDS);
    matrix.run(|environment| assert_eq!(simulated(environment, LOUD, &[]), None));
}

#[test]
fn random_workloads_survive_switches_between_all_methods() {
    // Other seeds than above.
    let matrix = Matrix::simulated(&SIMULATED, SEEDS / 2)
        .vary(|other| [Environment { seed: other.seed.map(|seed| 1000 + seed), ..other }]);
    matrix.run(|environment| assert_eq!(simulated(environment, LOUD, &SIMULATED), None));
}

/// The model must detect silent faults, or the other cases prove nothing.
#[test]
fn the_model_finds_silent_faults() {
    use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
    static FOUND: AtomicU64 = AtomicU64::new(0);
    for seed in 0..30 {
        Environment::simulated(MethodKind::Custom, seed).run(|environment| {
            let found = simulated(environment, SILENT, &[]).is_some();
            FOUND.fetch_add(u64::from(found), Ordering::SeqCst);
        });
    }
    let found = FOUND.load(Ordering::SeqCst);
    assert!(found > 15, "only {found} of 30 runs with silent faults were noticed");
}

#[test]
fn random_workloads_on_real_files() {
    for (number, method) in REAL.into_iter().enumerate() {
        for cached in [false, true] {
            real(method, cached, &[], number as u64);
            real(method, cached, &REAL, 10 + number as u64);
        }
    }
}

fn real(method: MethodKind, cached: bool, methods: &'static [MethodKind], seed: u64) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = |file: u32| folder.path().join(NAMES[file as usize]);
    let builder = Builder::new().handles(24, 1, 2).session_quota(12).region_bytes(2 << 20);
    let builder = if cached { builder } else { builder.try_cached_below(0).inline_write_max(0) };
    let aio = builder.method(method).start().expect("starts");
    let model = Arc::new(BlockModel::new());
    let mut files = Vec::new();
    for file in 0..2 {
        std::fs::write(path(file), original(file)).expect("writes the sample");
        let options = OpenOptions { write: true, ..OpenOptions::default() };
        files.push(aio.open(&path(file), options).expect("opens"));
    }
    let workload = Workload {
        seed,
        clients: 4,
        steps: 150,
        blocks: BLOCKS,
        // Concurrent reads and writes of a page aren't atomic on every file system, and the I/O
        // core doesn't make them so.
        share: false,
        methods,
    };
    let found = run(&aio, files, &model, workload);
    assert_eq!(found, Ok(()), "{method}, cached {cached}, seed {seed}");
    let bad = model.find_bad_block(2, |file| std::fs::read(path(file)).expect("reads"));
    assert_eq!(bad, None, "{method}, cached {cached}, seed {seed}");
    assert_eq!(content(0, 0, 0).len(), BLOCK);
}
