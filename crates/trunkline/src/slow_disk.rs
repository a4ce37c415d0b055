//! `trunkline slow-disk`: mounts a directory as a slow disk, for any program.
//!
//! ```text
//!   slow-disk DIR MOUNT --profile gp3                          a cloud volume
//!   slow-disk DIR MOUNT --profile latency=5ms                  5 ms for each read and write
//!   slow-disk DIR MOUNT --profile gp3,latency=2ms,iops=6000    a cloud volume with other values
//! ```
//! Prints how exactly this machine keeps the latency, then serves the mount until SIGINT or SIGTERM,
//! and prints what the disk has done. A second signal ends the command at once; the next start
//! removes the mount that then stays.

mod helper;

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use signal_hook::consts::SIGTERM;
use trunkline_aio::facade::{Arc, Futex, thread};
use trunkline_slow_disk::{
    Accuracy, KNOWN_DISKS, MountError, Profile, SlowDisk, Statistics, Unmounted,
};

use crate::exit::{Exit, Failure, message};
use crate::interrupt::{Cancel, Interrupt};
use crate::options::Context;
use crate::output::{Column, object, print_report, table};

pub(crate) use self::helper::{HelperArgs, run as run_helper};

/// A limit on open files below this is worth a warning: every file that the kernel knows counts.
const FILES_MIN: u64 = 10_000;
/// An error of the latency above this is worth a warning.
pub(crate) const ERROR_MAX: f64 = 0.10;

/// Options of the command.
#[derive(Debug, clap::Args)]
#[command(after_help = profiles())]
pub(crate) struct SlowDiskArgs {
    /// Directory with the files.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: PathBuf,

    /// Empty directory under which they appear.
    #[arg(value_name = "MOUNT", value_hint = ValueHint::DirPath)]
    mount: PathBuf,

    /// The disk: the name of a known disk, values, or a name followed by values that replace its own.
    ///
    /// latency=TIME is the time that each request takes, however many are in flight. rate=SIZE/s and
    /// iops=N limit all requests together. With credit=SIZE or credit=Nio, the disk starts with a
    /// credit for as much beyond the limit, up to burst_rate=SIZE/s or burst_iops=N, and earns it
    /// back while it does less. With io_size=SIZE, a larger request counts as several I/Os.
    #[arg(long, value_name = "PROFILE", value_parser = |text: &str| text.parse::<Profile>())]
    profile: Profile,

    /// End when standard input is closed, as it is when the process at its other end is killed.
    #[arg(long, hide = true)]
    until_eof: bool,
}

/// The list of known disks for the help.
fn profiles() -> String {
    let mut text = "Known disks:\n".to_owned();
    for disk in KNOWN_DISKS {
        // Writing to a string can't fail.
        let _ = writeln!(text, "  {:<17} {}", disk.name, disk.description);
        let _ = writeln!(text, "  {:<17} {}", "", disk.values);
        let _ = writeln!(text, "  {:<17} {}", "", disk.source);
    }
    text.trim_end().to_owned()
}

impl From<MountError> for Failure {
    fn from(error: MountError) -> Failure {
        let hint = error.hint();
        let failure = match error {
            MountError::NotADirectory(_) | MountError::NotEmpty(_) | MountError::Nested { .. } => {
                Failure::usage(error)
            }
            error => Failure::cannot_run(error),
        };
        failure.with_hint_if_any(hint)
    }
}

/// Wakes the command when a signal arrives.
#[derive(Debug)]
struct Wake(Arc<Futex>);

impl Cancel for Wake {
    fn cancel(&self) {
        self.0.signal();
    }
}

/// What a second signal does.
const ABORT: &str = "a second signal ends this command at once; data that isn't written back is lost, \
                     and open files return errors";

/// The message of an unmount that takes long.
fn writing_back() {
    message("info", "writing back the data in the page cache");
    message("hint", ABORT);
}

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &SlowDiskArgs) -> Result<Exit, Failure> {
    // Before the mount: from then on, a signal must unmount it.
    let interrupt = Interrupt::install()?;
    let events = Arc::new(Futex::new(0));
    interrupt.cancel_on_request(Wake(Arc::clone(&events)));
    if args.until_eof {
        thread::spawn("standard input", end_at_eof).map_err(Failure::cannot_run)?;
    }
    let profile = args.profile.clone();
    let disk = SlowDisk::mount(&args.directory, &args.mount, profile, Arc::clone(&events))?;
    if disk.cleaned() > 0 {
        let mount = disk.mount_point().display();
        message("info", format_args!("removed a stale mount at \"{mount}\""));
    }
    if disk.files_max() < FILES_MIN {
        let files = disk.files_max();
        message("warning", format_args!("programs can use only about {files} files of the disk"));
        message("hint", "raise the hard limit on open files (ulimit -Hn)");
    }
    // A failure from here on must not leave the mount behind.
    let served = serve(context, &disk, &interrupt, &events);
    let unmounted = match disk.has_ended() {
        true => Ok(Unmounted::Now),
        false => helper::unmounted(&disk, writing_back),
    };
    match unmounted {
        Ok(Unmounted::WhenClosed) if !disk.has_ended() => {
            let mount = disk.mount_point().display();
            message(
                "warning",
                format_args!("files below \"{mount}\" are open; waiting until they are closed"),
            );
            message("hint", ABORT);
        }
        Ok(_) => {}
        // The end of this command would lose what isn't written back yet.
        Err(failure) => {
            message("warning", &failure);
            message("hint", "unmount it, and this command ends");
            message("hint", ABORT);
        }
    }
    let statistics = disk.wait().map_err(|error| {
        Failure::cannot_run(format_args!("could not serve \"{}\": {error}", args.mount.display()))
    })?;
    served?;
    report_end(context, &statistics)?;
    Ok(Exit::Good)
}

/// Ends this command, as SIGTERM does, when standard input is closed.
fn end_at_eof() {
    // An error ends it too.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    let _ = signal_hook::low_level::raise(SIGTERM);
}

/// Measures, and waits for a signal or the end of the mount.
fn serve(
    context: &Context<'_>,
    disk: &SlowDisk,
    interrupt: &Interrupt,
    events: &Futex,
) -> Result<(), Failure> {
    disk.show_probe(true);
    let measured = helper::accuracies(disk, interrupt);
    disk.show_probe(false);
    let Some(measured) = measured? else { return Ok(()) };
    report_start(context, disk, &measured)?;
    loop {
        let epoch = events.epoch();
        if interrupt.requested() || disk.has_ended() {
            return Ok(());
        }
        events.wait(epoch, None);
    }
}

/// Prints the profile and the accuracy. The warning comes first, so that a script that waits for the
/// report has seen it.
fn report_start(
    context: &Context<'_>,
    disk: &SlowDisk,
    measured: &[Accuracy],
) -> Result<(), Failure> {
    let latency = disk.profile().latency();
    let rows: Vec<Row> = measured.iter().map(|accuracy| Row::new(accuracy, latency)).collect();
    if let Some(row) = rows.iter().find(|row| row.error.is_some_and(|error| error > ERROR_MAX)) {
        let error = percent(row.error);
        message(
            "warning",
            format_args!(
                "this machine adds {error} to the latency with {} requests in flight",
                row.accuracy.in_flight
            ),
        );
        message("hint", "use a longer latency, or keep the machine idle");
    }
    let json = object! {
        mount: disk.mount_point().to_string_lossy(),
        profile: disk.profile().to_string(),
        accuracy: rows.iter().map(|row| object! {
            in_flight: row.accuracy.in_flight,
            reads: row.accuracy.reads,
            median_us: micros(row.accuracy.median),
            p99_us: micros(row.accuracy.p99),
            error: row.error,
        }).collect::<Vec<_>>(),
    };
    print_report(context.global, &json, || {
        let mut text = format!("Mounted:  {}\n", disk.mount_point().display());
        text += &format!("Profile:  {}\n\n", disk.profile());
        text + &table(&rows, COLUMNS)
    })
}

/// A line of the table of accuracies.
struct Row {
    accuracy: Accuracy,
    error: Option<f64>,
}

impl Row {
    fn new(accuracy: &Accuracy, latency: Duration) -> Row {
        Row { accuracy: *accuracy, error: accuracy.error(latency) }
    }
}

const COLUMNS: &[Column<Row>] = &[
    (">in flight", |row| row.accuracy.in_flight.to_string()),
    (">reads", |row| row.accuracy.reads.to_string()),
    (">median", |row| millis(row.accuracy.median)),
    (">99 %", |row| millis(row.accuracy.p99)),
    (">error of the median", |row| percent(row.error)),
];

fn millis(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1000.0)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A fraction as a signed percentage. There is none for a disk without latency.
fn percent(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| "-".to_owned(), |fraction| format!("{:+.1} %", fraction * 100.0))
}

/// Prints what the disk has done.
fn report_end(context: &Context<'_>, done: &Statistics) -> Result<(), Failure> {
    if done.late > 0 {
        let latest = millis(done.latest);
        message(
            "warning",
            format_args!(
                "{} requests were late, by up to {latest}, because DIR is slower",
                done.late
            ),
        );
    }
    let json = object! {
        reads: done.reads,
        read_bytes: done.read_bytes,
        writes: done.writes,
        written_bytes: done.written_bytes,
        flushes: done.flushes,
        late: done.late,
        latest_us: micros(done.latest),
    };
    print_report(context.global, &json, || {
        let mut text = format!("\nReads:    {}, {} bytes\n", done.reads, done.read_bytes);
        text += &format!("Writes:   {}, {} bytes\n", done.writes, done.written_bytes);
        text + &format!("Flushes:  {}\n", done.flushes)
    })
}
