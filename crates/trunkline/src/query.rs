//! `trunkline query`: executes SQL statements and prints their rows.
//!
//! ```text
//!   query -D DIR -d shop "select sum(abalance) from pgbench_accounts"
//!   query -D DIR -d shop -f report.sql -x          statements of a file; - is standard input
//!   query -D DIR -d shop "table t" --format csv -o t.csv
//!   query -D DIR -d shop "table t" --explain=analyze   its plan, with pages, reads and times
//!   query -D DIR -d shop "copy t to stdout"        the lines of COPY, as they are
//! ```
//! Rows look as in psql, or are CSV as `COPY` writes it, or JSON as `to_json` makes it. CSV, JSON and
//! unaligned rows are printed as they arrive. An aligned table needs the width of all its values, so a
//! large result is printed in blocks, as psql does with `FETCH_COUNT`.
//!
//! All statements are parsed first, and then executed in one session. The first error ends the
//! command with [`Exit::Findings`]. An error that prevents the session from being opened has another
//! exit code, because no statement has been executed.

mod aligned;
mod arguments;
mod cells;
mod expanded;
mod explanation;
mod messages;
mod printer;
mod rows;
mod screen;
mod sink;
mod statements;
mod timing;
mod unaligned;

use std::time::Duration;

use trunkline_aio::facade::{env, thread};
use trunkline_query::{Instance, InstanceOptions, Session, SessionCanceller, Startup};
use trunkline_sql::{SqlError, SqlState};

use crate::copy::outputs::is_inside_cluster;
use crate::data_dir;
use crate::exit::{Exit, Failure, message};
use crate::interrupt::{Cancel, Interrupt};
use crate::io_instance::IoInstance;
use crate::options::{Context, DatabaseArgs};
use crate::output;
pub(crate) use arguments::QueryArgs;
use messages::Messages;
use sink::Sink;
use statements::Runner;

/// How long we wait at the end for tasks of statements, which remove their temporary files.
const END_TIMEOUT: Duration = Duration::from_secs(1);

impl Cancel for SessionCanceller {
    /// Ends the session: a statement that is about to start must not run either.
    fn cancel(&self) {
        self.terminate();
    }
}

/// The stack of a thread, of which only what is touched takes memory. Tasks of a statement execute
/// subqueries inside each other, up to 200.
pub(crate) const STACK_BYTES: usize = 16 << 20;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &QueryArgs) -> Result<Exit, Failure> {
    let Context { global, settings, text_settings, buffers, .. } = context;
    let format = args.format(global)?;
    let text = args.text()?;
    let dir = data_dir::open(context)?;
    let temporary = args.temporary_directory();
    for path in args.output().into_iter().chain([&*temporary]) {
        if is_inside_cluster(path, &dir) {
            let text =
                format!("\"{}\" is inside the data directory or a tablespace", path.display());
            return Err(Failure::usage(text).with_hint("choose a place outside the cluster"));
        }
    }
    let interrupt = Interrupt::install()?;
    let buffers = buffers.unwrap_or_else(|| settings.shared_buffers());
    let (io, engine) = IoInstance::with_engine(settings, buffers)?;
    let cluster = engine.cluster_of(dir);
    let options =
        InstanceOptions { temporary_directory: Some(temporary), ..InstanceOptions::default() };
    let instance = Instance::new(engine, cluster, options).map_err(open_failure)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(thread::available_parallelism().max(1))
        .thread_stack_size(STACK_BYTES)
        .enable_time()
        .build()
        .map_err(|error| Failure::cannot_run(format!("could not start threads: {error}")))?;
    let opened = runtime.block_on(Session::open(&instance, startup(args, text_settings)?));
    if interrupt.requested() {
        return Err(interrupt.failure());
    }
    let session = opened.map_err(open_failure)?;
    interrupt.cancel_on_request(session.canceller());
    if args.output().is_none() && output::is_closed() {
        message("warning", "standard output is closed or discarded; the rows are lost");
    }
    let messages = Messages { json: global.json, verbose: args.verbose };
    let sink = Sink::open(args.output())?;
    let mut runner = Runner { session, sink, format, args, messages };
    let result = runtime.block_on(runner.run(&text));
    let Runner { session, sink, .. } = runner;
    let ended = match result {
        Ok(true) => sink.finish().map(|()| Exit::Good),
        // Rows that were printed before the error stay, but no file gets its name.
        Ok(false) => sink.abandon().map(|()| Exit::Findings),
        Err(failure) => Err(failure),
    };
    drop(session);
    runtime.shutdown_timeout(END_TIMEOUT);
    io.report_fallbacks();
    match ended {
        // The error of a statement that was cancelled says nothing else.
        Ok(Exit::Findings) if interrupt.requested() => Err(interrupt.failure()),
        ended => ended,
    }
}

/// The session to open.
fn startup(
    args: &QueryArgs,
    settings: &std::collections::BTreeMap<String, String>,
) -> Result<Startup, Failure> {
    let name = match &args.dbname {
        Some(name) => name.as_encoded_bytes().to_vec(),
        None => DatabaseArgs::default_name().unwrap_or_else(|| b"postgres".to_vec()),
    };
    let database = String::from_utf8(name)
        .map_err(|_| Failure::usage("the name of the database is not valid UTF-8"))?;
    let user = ["PGUSER", "USER"].into_iter().filter_map(env::var);
    let user = user.filter_map(|user| user.into_string().ok()).find(|user| !user.is_empty());
    let mut settings: Vec<(String, String)> = settings.clone().into_iter().collect();
    if !settings.iter().any(|(name, _)| name == "client_encoding") {
        settings.push(("client_encoding".to_owned(), "UTF8".to_owned()));
    }
    Ok(Startup {
        database,
        user: user.unwrap_or_else(|| "postgres".to_owned()),
        application_name: "trunkline".to_owned(),
        settings,
        addresses: None,
    })
}

/// The failure to open an instance or a session. Damage is a finding, a wrong name or setting a usage
/// error.
pub(crate) fn open_failure(error: SqlError) -> Failure {
    let failure = match error.code() {
        SqlState::DATA_CORRUPTED => Failure::findings(&error),
        SqlState::INVALID_CATALOG_NAME
        | SqlState::INVALID_PARAMETER_VALUE
        | SqlState::UNDEFINED_OBJECT
        | SqlState::INVALID_NAME
        | SqlState::CANT_CHANGE_RUNTIME_PARAM
        | SqlState::ACTIVE_SQL_TRANSACTION
        | SqlState::FEATURE_NOT_SUPPORTED => Failure::usage(&error),
        _ => Failure::cannot_run(&error),
    };
    let texts: Vec<&str> = [error.detail(), error.hint()].into_iter().flatten().collect();
    match texts.is_empty() {
        true => failure,
        false => failure.with_hint(texts.join(" ")),
    }
}
