//! What a search finds out about simulated disks, whose limits are known.

use std::time::Duration;

use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_slow_disk::{Limit as Expected, Profile};

use super::confidence::Confidence;
use super::findings::{Concurrency, DeviceFindings};
use super::ledger::Unit;
use super::limit::Limit;
use super::line::{Lines, Target};
use super::load::{Device as _, Work};
use super::outcome::Calibrated;
use super::plots::plots;
use super::search::{Ended, Search};
use super::settings::{ClusterFacts, max_concurrency_bytes, page_cost, random_seconds, settings};
use super::simulated_device::SimulatedDevice;
use super::step::Step;
use crate::machine::Machine;
use crate::watcher::{Unwatched, Watcher};

/// Latencies, limits and credits. Everything here is within reach: no limit hides another one, and
/// every credit ends within a minute at full speed.
pub(super) const DISKS: [&str; 24] = [
    "latency=200us,rate=1GB/s,iops=20000",
    "latency=200us,rate=20MB/s,iops=300",
    "latency=200us,rate=100MB/s,iops=3000",
    "latency=500us,rate=250MB/s,iops=16000",
    "latency=500us,rate=125MB/s,iops=3000,io_size=256KiB",
    "latency=1ms,rate=125MB/s,iops=3000",
    "latency=1ms,rate=1GB/s,iops=5000",
    "latency=1ms,rate=60MB/s,iops=500",
    "latency=2ms,rate=500MB/s,iops=20000",
    "latency=2ms,rate=200MB/s,iops=1000",
    "latency=5ms,rate=150MB/s,iops=300",
    "latency=5ms,rate=400MB/s,iops=10000",
    "latency=10ms,rate=100MB/s,iops=2000",
    "latency=20ms,rate=20MB/s,iops=300",
    "latency=20ms,rate=500MB/s,iops=20000",
    // Credits for I/Os.
    "latency=1ms,rate=125MB/s,iops=300,burst_iops=3000,credit=54000io",
    "latency=500us,rate=300MB/s,iops=1000,burst_iops=4000,credit=150000io",
    "latency=5ms,rate=100MB/s,iops=500,burst_iops=3500,credit=60000io",
    "latency=20ms,rate=100MB/s,iops=1000,burst_iops=2000,credit=40000io",
    // Ends within the sweep of depths.
    "latency=1ms,rate=125MB/s,iops=400,burst_iops=2000,credit=9000io",
    // Credits for bytes.
    "latency=1ms,rate=100MB/s,burst_rate=170MB/s,credit=3GB,iops=3500",
    "latency=2ms,rate=50MB/s,burst_rate=200MB/s,credit=8GB,iops=2000",
    "latency=200us,rate=200MB/s,burst_rate=1GB/s,credit=40GB,iops=10000",
    // Both.
    "latency=1ms,rate=100MB/s,burst_rate=170MB/s,credit=4GB,iops=500,burst_iops=3500,credit=120000io",
];

/// A cluster whose sessions may pin many pages.
const LARGE_CLUSTER: ClusterFacts = ClusterFacts { has_own_log: false, pinned_pages: 4096 };

fn search(disk: &str, seconds: u64) -> DeviceFindings {
    let mut device = SimulatedDevice::new(disk, 1 << 30);
    run(&mut device, seconds)
}

fn run(device: &mut SimulatedDevice, seconds: u64) -> DeviceFindings {
    let time = Duration::from_secs(seconds);
    let mut search = Search::new(device, time, LARGE_CLUSTER.combine_max(), Arc::new(Unwatched));
    assert!(search.run().is_ok(), "the search ended early");
    search.found
}

/// Fails unless both are within 10 % of each other.
fn near(disk: &str, what: &str, found: f64, expected: f64) {
    let error = found / expected - 1.0;
    assert!(error.abs() <= 0.10, "{disk}: {what} is {found}, expected {expected}");
}

fn check_limit(disk: &str, what: &str, found: Option<&Limit>, expected: Option<Expected>) {
    let (Some(found), Some(expected)) = (found, expected) else {
        panic!("{disk}: {what} is missing")
    };
    assert!(found.reached && found.steady, "{disk}: {what}: {found:?}");
    near(disk, what, found.sustained.median, expected.rate as f64);
    assert!(found.sustained.low <= found.sustained.median);
    match (&found.burst, expected.burst) {
        (None, None) => {}
        (Some(found), Some(rate)) => {
            near(disk, &format!("{what} burst"), found.rate, rate as f64);
            near(disk, &format!("{what} credit"), found.credit, expected.credit as f64);
            let lasts = expected.credit as f64 / (rate - expected.rate) as f64;
            near(disk, &format!("{what} duration of the burst"), found.lasts_seconds, lasts);
        }
        (found, expected) => panic!("{disk}: {what} burst is {found:?}, expected {expected:?}"),
    }
}

#[test]
fn limits_latency_and_credits_are_found_within_ten_percent() {
    for disk in DISKS {
        let expected: Profile = disk.parse().expect("a profile");
        let found = search(disk, if disk.contains("credit") { 180 } else { 40 });
        let latency = expected.latency().as_secs_f64();
        near(disk, "latency", found.latency_seconds().expect("measured"), latency);
        check_limit(disk, "iops", found.iops.as_ref(), expected.iops());
        check_limit(disk, "bandwidth", found.bandwidth.as_ref(), expected.bandwidth());
        let iops = expected.iops().expect("a limit");
        let product = latency * iops.burst.unwrap_or(iops.rate) as f64;
        let concurrency = found.concurrency.expect("found");
        let factor = f64::from(concurrency.recommended) / product.max(1.0);
        assert!((0.5..=2.0).contains(&factor), "{disk}: {concurrency:?}, product {product}");
        near(disk, "latency times throughput", concurrency.product, product);
    }
}

/// A machine that is busy makes single I/Os late. Medians and steady rates must not follow them.
#[test]
fn late_completions_change_nothing() {
    for disk in ["latency=2ms,rate=100MB/s,iops=3000", "latency=20ms,rate=40MB/s,iops=1000"] {
        let expected: Profile = disk.parse().expect("a profile");
        let mut device = SimulatedDevice::new(disk, 256 << 20);
        device.hiccup = Some((997, Duration::from_millis(50)));
        let found = run(&mut device, 40);
        near(
            disk,
            "latency",
            found.latency_seconds().expect("measured"),
            expected.latency().as_secs_f64(),
        );
        check_limit(disk, "iops", found.iops.as_ref(), expected.iops());
        check_limit(disk, "bandwidth", found.bandwidth.as_ref(), expected.bandwidth());
    }
}

/// A limit that another one hides is at least as high as what was seen.
#[test]
fn a_hidden_limit_is_at_least_what_was_seen() {
    // 8 kB reads use up the bandwidth at 2,441 a second.
    let found = search("latency=1ms,rate=20MB/s,iops=10000", 40);
    let iops = found.iops.expect("found");
    assert!(!iops.reached && found.bandwidth.expect("found").reached);
    near("few bytes", "iops", iops.sustained.median, 20e6 / 8192.0);
    // 300 reads of a megabyte don't use up the bandwidth.
    let found = search("latency=1ms,rate=1GB/s,iops=300", 40);
    let bandwidth = found.bandwidth.expect("found");
    assert!(!bandwidth.reached && found.iops.expect("found").reached);
    near("few I/Os", "bandwidth", bandwidth.sustained.median, 300.0 * f64::from(1 << 20));
}

/// The line with this name; its value if it is a change, otherwise nothing.
fn change(lines: &[Lines], target: Target, name: &str) -> Option<String> {
    let lines = lines.iter().find(|lines| lines.target == target).expect("a target");
    let line = lines.lines.iter().find(|line| line.name == name);
    let line = line.unwrap_or_else(|| panic!("no line {name} for {target:?}"));
    line.changed.then(|| line.value.clone())
}

/// The value of a line that keeps the default or is held back.
fn comment(lines: &[Lines], target: Target, name: &str) -> Option<String> {
    let lines = lines.iter().find(|lines| lines.target == target).expect("a target");
    let line = lines.lines.iter().find(|line| line.name == name && !line.changed);
    line.map(|line| line.value.clone())
}

#[test]
fn the_lines_follow_from_the_disk() {
    for disk in DISKS {
        let profile: Profile = disk.parse().expect("a profile");
        let has_credit = disk.contains("credit");
        let found = search(disk, if has_credit { 180 } else { 40 });
        let iops = profile.iops().expect("a limit");
        let latency = profile.latency().as_secs_f64();
        let sustained = latency * iops.rate as f64;
        let product = latency * iops.burst.unwrap_or(iops.rate) as f64;
        let lines = settings(&found, &LARGE_CLUSTER, true);
        for target in Target::ALL {
            let change = |name: &str| change(&lines, target, name);
            let comment = |name: &str| comment(&lines, target, name);
            let number = |name: &str| change(name).map(|value| value.parse::<f64>().expect(name));
            let workers =
                if target == Target::Postgres18 { "io_workers" } else { "io_max_workers" };
            // The simulated io_uring is as fast as workers, unless it takes more than 32.
            let wants_uring = sustained > 34.0;
            let is_uring = change("io_method").is_some();
            // A server that has no io_uring would not start.
            let held_back = comment("io_method").as_deref() == Some("io_uring");
            assert!(if target == Target::Trunkline { !held_back } else { !is_uring }, "{disk}");
            // Slow cases earn credit for the fast ones, so either may be found with a burst.
            if wants_uring || product < 34.0 {
                assert_eq!(held_back || is_uring, wants_uring, "{disk}");
            }
            let usual = if target == Target::Postgres18 { 3.0 } else { 8.0 };
            let helps = !is_uring && product > 1.05 * usual;
            assert_eq!(number(workers).is_some(), helps, "{disk}, {target:?}");
            if target != Target::Postgres18 {
                // The pool begins with as many as it needs, as it grows too slowly.
                let least = match product > 1.05 * 3.0 {
                    _ if is_uring => None,
                    true => Some(number(workers).unwrap_or(8.0)),
                    false => None,
                };
                assert_eq!(number("io_min_workers"), least, "{disk}, {target:?}");
            }
            // Sessions do what workers don't one after the other.
            let product = if is_uring { product } else { product.min(32.0) };
            for name in ["effective_io_concurrency", "maintenance_io_concurrency"] {
                match number(name) {
                    Some(value) => {
                        let factor = value / product;
                        assert!((0.5..=2.0).contains(&factor), "{disk}: {value}, {product}");
                        assert!(is_uring || value <= 32.0, "{disk}: {value}");
                    }
                    // The default of 16 is within a few percent of the best.
                    None => assert!(product < 17.0, "{disk}: {name}"),
                }
            }
            let line = comment("io_max_concurrency");
            let recommended = found.concurrency.expect("found").recommended;
            let is_shown = target != Target::Trunkline && recommended > 64;
            assert_eq!(line.as_deref(), is_shown.then_some("-1"), "{disk}");
            // Latency alone doesn't make a durable write faster, and there is no page cache here.
            if target != Target::Trunkline {
                assert_eq!(change("wal_sync_method"), None);
            }
            let all = lines.iter().find(|it| it.target == target).expect("a target");
            assert!(all.lines.iter().all(|line| !line.name.ends_with("flush_after")));
        }
    }
}

#[test]
fn lines_are_text_for_a_configuration_file() {
    let found = search("latency=20ms,rate=500MB/s,iops=20000", 40);
    let lines = settings(&found, &LARGE_CLUSTER, true);
    let text = lines[0].text();
    let comments = text.replace("\n# ", " ");
    for expected in [
        "Confidence: medium. The default loses 99 % of these reads. Commented out, because a server",
        "400 would keep the device busy, but io_method = worker can't use more than 32.",
        "Confidence: high. The default loses 50 % of the reads of bitmap scans",
    ] {
        let expected = expected.trim_start_matches("400");
        assert!(comments.contains(expected), "{expected}: {text}");
    }
    assert!(comments.contains("Needs a restart.\nio_max_combine_limit"), "{text}");
    for expected in [
        "\n#io_method = io_uring\n",
        "\nio_workers = 32\n",
        "\neffective_io_concurrency = 32\n",
        "\n#io_max_concurrency = -1\n",
        "\nio_combine_limit = 1024kB\n",
        "\nio_max_combine_limit = 1024kB\n",
        "\n#random_page_cost = 4.0\n",
        "\n#wal_sync_method = fdatasync\n",
    ] {
        assert!(format!("\n{text}").contains(expected), "{expected}: {text}");
    }
    let own = lines[2].text();
    assert!(own.contains("\nio_method = io_uring\n") && !own.contains("io_max_conc"), "{own}");
    assert!(own.contains("Has no effect with io_method = io_uring."), "{own}");
    // Another device has the log.
    let own_log = ClusterFacts { has_own_log: true, ..LARGE_CLUSTER };
    let lines = settings(&found, &own_log, true);
    assert!(!lines[0].text().contains("wal_sync_method"));
    // A server with default settings can't have enough large reads in flight.
    let stock = ClusterFacts { has_own_log: false, pinned_pages: 86 };
    assert_eq!([86, 7_384, 0].map(|pages| facts(pages).combine_max() >> 10), [128, 1024, 8]);
    assert_eq!(
        change(&settings(&found, &stock, true), Target::Postgres18, "io_combine_limit"),
        None
    );
    // Reads that may be cached prove nothing.
    let cached = DeviceFindings { not_direct: Some("tmpfs".into()), ..found.clone() };
    let lines = settings(&cached, &LARGE_CLUSTER, true);
    assert!(lines.iter().flat_map(|it| &it.lines).all(|it| it.confidence == Confidence::Low));
    assert!(cached.summary(true).iter().all(|row| !row.2.contains("confidence high")));
    // No interval without enough rounds, and no change without an interval.
    let mut few = found.clone();
    let cases = [&mut few.methods, &mut few.in_flight, &mut few.combined];
    cases.into_iter().flatten().for_each(|case| case.samples.truncate(6));
    let lines = settings(&few, &LARGE_CLUSTER, true);
    for name in ["io_workers", "effective_io_concurrency", "io_combine_limit"] {
        assert_eq!(change(&lines, Target::Postgres18, name), None, "{name}");
    }
}

fn facts(pinned_pages: u32) -> ClusterFacts {
    ClusterFacts { has_own_log: false, pinned_pages }
}

/// The fastest step of a sweep, by bytes.
fn fastest(steps: &[Step]) -> &Step {
    let rate = |step: &&Step| step.bytes_per_second.median;
    steps.iter().max_by(|a, b| rate(a).total_cmp(&rate(b))).expect("steps")
}

/// Neither reads nor syncs are free of charge on these disks, so everything meets the same limits.
#[test]
fn writes_reach_the_limits_of_the_disk() {
    for disk in DISKS.into_iter().filter(|disk| !disk.contains("credit")) {
        let profile: Profile = disk.parse().expect("a profile");
        let (iops, bandwidth) = (profile.iops().expect("a limit"), profile.bandwidth());
        let (iops, bandwidth) = (iops.rate as f64, bandwidth.expect("a limit").rate as f64);
        let latency = profile.latency().as_secs_f64();
        for seconds in [60, 180] {
            let found = search(disk, seconds);
            let pages = iops.min(bandwidth / 8192.0);
            near(disk, "writes", fastest(&found.random_writes).ios_per_second.median, pages);
            // The mixed load has at most 256 in flight.
            let mixed = fastest(&found.mixed_depths).ios_per_second.median;
            near(disk, "mixed", mixed, pages.min(256.0 / latency));
            let size = profile.io_size().map_or(1 << 20, |size| size.min(1 << 20)) as f64;
            let large = bandwidth.min(iops * size);
            let rate = fastest(&found.sequential_writes).bytes_per_second.median;
            near(disk, "writes in order", rate, large);
            // A durable write is a write and a flush, one after the other.
            let sessions = &found.durable_sessions;
            for step in sessions.iter().filter(|step| step.steady || step.depth == 1) {
                let pages = pages.min(iops / 2.0).min(f64::from(step.depth) / (2.0 * latency));
                near(disk, "durable writes", step.ios_per_second.median, pages);
            }
            let depths: Vec<u32> = sessions.iter().map(|step| step.depth).collect();
            let sizes: Vec<u32> = found.durable_sizes.iter().map(|step| step.size >> 10).collect();
            if seconds == 60 {
                assert_eq!((depths, sizes), (vec![1, 4, 16], vec![8, 32, 128]));
            } else {
                assert_eq!((depths, sizes), (vec![1, 2, 4, 8, 16], vec![8, 16, 32, 64, 128]));
            }
            assert!(found.durable_sizes.iter().all(|step| step.micros.is_some()));
            // The mixed load of the summary is the one with the recommended depth.
            let depth = found.concurrency.expect("found").recommended.min(256);
            let mixed = found.mixed.as_ref().expect("measured");
            assert_eq!(mixed.depth, depth);
            assert!(found.mixed_depths.iter().any(|step| step.depth == depth));
            assert!(found.mixed_depths.last().expect("steps").depth >= 16, "{disk}");
        }
    }
}

#[test]
fn steps_that_write_are_measured_until_they_are_steady() {
    for disk in ["latency=1ms,rate=125MB/s,iops=3000", "latency=5ms,rate=400MB/s,iops=10000"] {
        let found = search(disk, 180);
        let steps = [
            &found.mixed_depths,
            &found.random_writes,
            &found.sequential_writes,
            &found.durable_sessions,
            &found.durable_sizes,
        ];
        let unsteady: Vec<&Step> =
            steps.into_iter().flatten().filter(|step| !step.steady).collect();
        assert!(unsteady.is_empty(), "{disk}: {unsteady:?}");
    }
}

/// Steps that take longer than planned are left out, but each sweep has one.
#[test]
fn a_calibration_ends_in_time() {
    let usual = DISKS.into_iter().filter(|disk| disk.contains(",iops=300"));
    let usual = usual.flat_map(|disk| [(disk, 80, 1.05), (disk, 180, 1.05)]);
    // The rounds of comparisons take longer, too, on disks as slow as these.
    let slow = [
        ("latency=20ms,rate=5MB/s,iops=100", 180, 1.07),
        ("latency=100ms,rate=10MB/s,iops=300", 180, 1.05),
        ("latency=200ms,rate=40MB/s,iops=2000", 180, 1.07),
    ];
    for (disk, seconds, most) in usual.chain(slow) {
        let mut device = SimulatedDevice::new(disk, 1 << 30);
        let found = run(&mut device, seconds);
        let part = device.now() / seconds as f64;
        assert!(part <= most, "{disk}, {seconds} s: {part}");
        let sweeps = [
            &found.mixed_depths,
            &found.random_writes,
            &found.sequential_writes,
            &found.durable_sessions,
            &found.durable_sizes,
        ];
        assert!(sweeps.iter().all(|steps| !steps.is_empty()), "{disk}");
        let is_late = found.skipped.iter().any(|text| text.ends_with("no time left"));
        assert_eq!(is_late, most > 1.05 || disk.starts_with("latency=100ms"), "{disk}: {seconds}");
    }
}

/// A write cache may hold everything that is written in a fraction of a second.
#[test]
fn rates_of_writes_say_how_short_they_are_and_are_never_sure() {
    let notes = |found: &DeviceFindings| -> Vec<String> {
        let names = ["mixed, 70 % reads", "random writes of 8 kB", "writes in order"];
        let rows = found.summary(true);
        let row = |name: &&str| rows.iter().find(|row| row.0 == **name).expect("a row").2.clone();
        names.iter().map(row).collect()
    };
    let mut found = search("latency=1ms,rate=125MB/s,iops=3000", 180);
    for note in notes(&found) {
        let (start, end) = note.split_once("steady over ").expect("a time");
        assert!(!start.contains("synced") && !start.contains("credit"), "{note}");
        assert_eq!(end, "0.3 s, a write cache isn't excluded, confidence medium");
    }
    let rows = found.summary(true);
    let row = rows.iter().find(|row| row.0.ends_with("1 to 16 sessions")).expect("a row");
    assert!(row.2.starts_with("steady over 0.3"), "{row:?}");
    // A step that wasn't steady is shown only if none was.
    let shown = |found: &DeviceFindings| -> u32 {
        let note = notes(found)[1].clone();
        note.split(' ').next().expect("a depth").parse().expect("a number")
    };
    let best = shown(&found);
    let is_best = |step: &&mut Step| step.depth == best;
    found.random_writes.iter_mut().find(is_best).expect("a step").steady = false;
    assert!(shown(&found) != best && !notes(&found)[1].contains("not steady"));
    found.random_writes.iter_mut().for_each(|step| step.steady = false);
    assert!(shown(&found) == best && notes(&found)[1].contains("not steady over 0.3 s"));
    let doubtful = DeviceFindings { not_direct: Some("tmpfs".into()), ..found.clone() };
    let is_low = |it: &String| it.contains("synced, ") && it.ends_with("confidence low");
    assert!(notes(&doubtful).iter().all(is_low));
    found.random_writes.iter_mut().for_each(|step| step.mode = "buffered".into());
    assert!(notes(&found)[1].starts_with("buffered and synced, "));
}

/// Loads that write come after the long runs, in which the credit ends.
#[test]
fn reads_with_credit_are_not_compared_with_writes_without_a_word() {
    let titles = |disk: &str| -> Vec<String> {
        let found = search(disk, 180);
        let has_note = found.summary(true).iter().any(|row| row.2.contains("after the credit had"));
        assert_eq!(has_note, disk.contains("credit"), "{disk}");
        let all = plots(&found).into_iter().map(|plot| plot.title);
        all.filter(|title| title.ends_with("(only reads alone had credit)")).collect()
    };
    let ios = titles("latency=1ms,rate=125MB/s,iops=300,burst_iops=3000,credit=54000io");
    assert_eq!(ios.len(), 2, "{ios:?}");
    let bytes = titles("latency=1ms,rate=100MB/s,burst_rate=170MB/s,credit=3GB,iops=3500");
    assert!(bytes.len() == 1 && bytes[0].starts_with("GB/s against size"), "{bytes:?}");
    assert!(titles("latency=1ms,rate=125MB/s,iops=3000").is_empty());
}

/// A device that is slower after writes, as SSDs are, is measured before them.
#[test]
fn writes_change_nothing_that_settings_follow_from() {
    let disk = "latency=2ms,rate=200MB/s,iops=3000";
    let findings = |wear| {
        let mut device = SimulatedDevice::new(disk, 1 << 30);
        device.wear = wear;
        run(&mut device, 60)
    };
    let (new, worn) = (findings(None), findings(Some(Duration::from_millis(20))));
    let slower = |step: &Step| step.micros.expect("times").p50 > 20_000.0;
    assert!(!slower(&new.random_writes[0]) && slower(&worn.random_writes[0]));
    let before_writes = |found: &DeviceFindings| {
        let mut json = serde_json::to_value(found).expect("JSON");
        let fields = json.as_object_mut().expect("fields");
        for name in [
            "mixed",
            "mixed_depths",
            "random_writes",
            "sequential_writes",
            "durable_sessions",
            "durable_sizes",
        ] {
            assert!(fields.remove(name).is_some_and(|field| !field.is_null()), "{name}");
        }
        json
    };
    assert_eq!(before_writes(&new), before_writes(&worn));
    let lines = |found| settings(found, &LARGE_CLUSTER, true);
    assert_eq!(lines(&new), lines(&worn));
}

/// Writes use up credit as reads do.
#[test]
fn the_ledger_has_every_byte() {
    let mut device = SimulatedDevice::new("latency=2ms,rate=200MB/s,iops=3000", 1 << 30);
    let time = Duration::from_secs(60);
    let mut search = Search::new(&mut device, time, 1 << 20, Arc::new(Unwatched));
    assert!(search.run().is_ok());
    // Nothing is earned back at a rate of zero.
    let entered = search.ledger.spent(Unit::Bytes, 0.0, f64::INFINITY);
    assert_eq!(entered, device.bytes as f64);
}

/// One failed I/O doesn't take away what else was measured.
#[test]
fn a_failure_ends_only_its_part() {
    for (work, what) in [
        (Work::Sequential, "reads in order"),
        (Work::Mixed(70), "mixed"),
        (Work::RandomWrite, "random wr"),
    ] {
        let mut device = SimulatedDevice::new("latency=5ms,rate=400MB/s,iops=10000", 1 << 30);
        device.fails = Some(work);
        let time = Duration::from_secs(40);
        let mut search = Search::new(&mut device, time, 1 << 20, Arc::new(Unwatched));
        assert!(search.run().is_ok() && search.has_failed);
        let found = std::mem::take(&mut search.found);
        assert!(found.skipped.iter().any(|text| text.starts_with(what)), "{:?}", found.skipped);
        assert!(found.iops.is_some() && found.latency.is_some() && !found.durable.is_empty());
    }
    let mut device = SimulatedDevice::new("latency=5ms,rate=400MB/s,iops=10000", 1 << 30);
    device.fails = Some(Work::Fill);
    let mut search =
        Search::new(&mut device, Duration::from_secs(40), 1 << 20, Arc::new(Unwatched));
    assert!(matches!(search.run(), Err(Ended::Failed(_))));
}

/// Another program that takes a part of the disk during the long runs isn't a burst.
#[test]
fn a_neighbour_is_no_burst() {
    let mut device = SimulatedDevice::new("latency=2ms,rate=200MB/s,iops=3000", 1 << 30);
    device.neighbour = Some(Duration::from_secs(5));
    let found = run(&mut device, 180);
    for limit in [&found.iops, &found.bandwidth] {
        let limit = limit.as_ref().expect("found");
        assert!(limit.burst.is_none() && !limit.steady, "{limit:?}");
    }
    assert_eq!(found.skipped.iter().filter(|text| text.contains("something else")).count(), 2);
}

/// A credit that ends before the knee is earned back, or the result is known to be a lower bound.
#[test]
fn a_credit_that_ends_before_the_knee_hides_nothing() {
    let disk = "latency=20ms,rate=100MB/s,iops=200,burst_iops=2000,credit=2000io";
    let found = search(disk, 180);
    let concurrency = found.concurrency.expect("found");
    assert!(concurrency.is_cut || concurrency.recommended >= 20, "{concurrency:?}");
    // With more time, the knee itself is found.
    let found = search(disk, 600);
    let concurrency = found.concurrency.expect("found");
    assert!(!concurrency.is_cut, "{concurrency:?}");
    let factor = f64::from(concurrency.recommended) / 40.0;
    assert!((0.5..=2.0).contains(&factor), "{concurrency:?}");
    near(disk, "iops", found.iops.expect("found").sustained.median, 200.0);
}

/// The rate still grew up to the last depth before the credit ended.
#[test]
fn a_cut_sweep_recommends_at_least_its_last_depth() {
    let of = |cut_after| {
        let found = Concurrency::of(0.02, 700.0, 12.3, cut_after);
        (found.recommended, found.is_cut)
    };
    assert_eq!([of(None), of(Some(16)), of(Some(8))], [(13, false), (16, true), (13, true)]);
    // This credit ends in the sweep, and half of it is too little for a longer step.
    let disk = "latency=20ms,rate=100MB/s,iops=200,burst_iops=2000,credit=700io";
    let found = search(disk, 40);
    let (concurrency, deepest) = (found.concurrency.expect("found"), found.depths.last());
    assert!(concurrency.is_cut, "{concurrency:?}");
    assert!(concurrency.recommended >= deepest.expect("steps").depth, "{concurrency:?}");
}

#[test]
fn the_time_of_a_random_read_is_the_longer_one() {
    let mut found = search("latency=2ms,rate=200MB/s,iops=1000", 40);
    near("idle", "time", random_seconds(&found).expect("found"), 2e-3);
    // Woken from a sleep after each pause.
    found.latency.as_mut().and_then(|it| it.micros.as_mut()).expect("measured").p50 = 9_000.0;
    near("busy", "time", random_seconds(&found).expect("found"), 2e-3);
    let found = search("latency=1ms,rate=60MB/s,iops=500", 40);
    near("limited", "time", random_seconds(&found).expect("found"), 2e-3);
}

#[test]
fn handles_take_shared_memory() {
    let bytes = max_concurrency_bytes(1000, 1 << 20);
    assert_eq!(bytes, 174 * 1000 * (144 + 128 * 24));
}

/// Ends a search after some windows.
struct After(AtomicU64);

impl Watcher for After {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0 || self.0.fetch_sub(1, Ordering::Relaxed) == 0
    }
}

#[test]
fn an_interrupted_search_keeps_what_it_has() {
    let mut had = Vec::new();
    for windows in [1, 40, 120, 300, 500] {
        let mut device = SimulatedDevice::new("latency=5ms,rate=400MB/s,iops=10000", 1 << 30);
        let watcher = Arc::new(After(AtomicU64::new(windows)));
        let mut search =
            Search::new(&mut device, Duration::from_secs(40), LARGE_CLUSTER.combine_max(), watcher);
        assert!(matches!(search.run(), Err(Ended::Cancelled)));
        let found = std::mem::take(&mut search.found);
        let all = [&found.bandwidth, &found.iops].map(Option::is_some);
        had.push((found.fill.is_some(), all));
        let lines = settings(&found, &LARGE_CLUSTER, false);
        let best = lines.iter().flat_map(|lines| &lines.lines).map(|line| line.confidence).max();
        assert!(best.is_none_or(|best| best < Confidence::High), "{best:?}");
        // Lines follow as soon as there is something that they follow from.
        assert_eq!(best.is_some(), found.concurrency.is_some() || !found.sizes.is_empty());
        assert!(found.summary(false).iter().all(|row| !row.2.contains("confidence high")));
    }
    assert_eq!(had[0], (false, [false, false]));
    assert_eq!(had[4], (true, [true, true]));
    assert!(had.windows(2).all(|pair| pair[0] <= pair[1]), "{had:?}");
}

#[test]
fn page_csv_and_json_have_the_same_numbers() {
    let found = search("latency=5ms,rate=400MB/s,iops=10000", 40);
    let settings = settings(&found, &LARGE_CLUSTER, true);
    let report = Calibrated {
        schema: 1,
        command: "calibrate".into(),
        command_line: "trunkline calibrate -D 'a<b>'".into(),
        program: "1".into(),
        started: 0,
        machine: Machine::describe(std::path::Path::new("/proc")),
        directory: "a<b>".into(),
        seconds: 40,
        io_method: "io_uring".into(),
        buffered_because: None,
        complete: true,
        found,
        settings,
    };
    let page = report.to_html().expect("a page");
    assert!(!page.contains("<script") && !page.contains("<link") && !page.contains("src="));
    assert!(page.contains("a&lt;b&gt;") && !page.contains("a<b>"), "{page}");
    // IOPS, GB/s and latency against load, size, and two long runs; rates of writes, reads beside
    // writes, and durable writes by sessions and size.
    assert_eq!(page.matches("<figure>").count(), 10);
    assert!(page.contains("knee: 64 in flight") && page.contains("sustained, steady"));
    let csv = report.to_csv().expect("CSV");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let json: serde_json::Value =
        serde_json::from_str(&report.to_json().expect("JSON")).expect("parsed");
    let records: Vec<csv::StringRecord> =
        reader.records().collect::<Result<_, _>>().expect("records");
    let depths = json["found"]["depths"].as_array().expect("depths");
    let random: Vec<&csv::StringRecord> =
        records.iter().filter(|row| &row[0] == "random read" && &row[3] != "1").collect();
    assert_eq!(random.len() + 1, depths.len());
    for (row, step) in random.iter().zip(&depths[1..]) {
        assert_eq!(row[5].parse::<f64>().ok(), step["ios_per_second"]["median"].as_f64());
        assert_eq!(row[10].parse::<f64>().ok(), step["micros"]["p99"].as_f64());
        let cells: String = row.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        assert!(page.contains(&cells), "{cells}");
    }
    let read: Calibrated = serde_json::from_value(json).expect("a report");
    assert_eq!(read.settings, report.settings);
}

#[test]
fn a_random_page_costs_what_it_takes_and_at_most_the_default() {
    assert_eq!(page_cost(8192.0 / 100e6 * 4.0, 100e6), 4.0);
    assert_eq!(page_cost(8192.0 / 100e6 * 200.0, 100e6), 4.0);
    assert_eq!(page_cost(8192.0 / 100e6 * 2.5, 100e6), 2.5);
    // Never cheaper than in order.
    assert_eq!(page_cost(8192.0 / 100e6, 100e6), 1.0);
}
