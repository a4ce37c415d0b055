//! The server of `bench --postgres`: prepares it and its tables.

use std::path::Path;

use trunkline_aio::facade::Arc;
use trunkline_engine::Engine;
use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_engine::prewarm::{Choice, select};
use trunkline_format::Fork;
use trunkline_measure::{
    GuideTable, Peer, Plan, Server, ServerHandle, ServerLines, Sizes, Table, TablePlan, Watcher,
    bytes_needed,
};
use trunkline_sample::room;

use super::arguments::BenchArgs;
use crate::config_file::read_assignments;
use crate::exit::{Failure, message};
use crate::interrupt::{Cancel, Interrupt};
use crate::options::Global;
use crate::output::human_bytes;

/// Asks the server to shut down when a signal arrives, so that what waits for it ends.
#[derive(Debug)]
struct Shutdown(ServerHandle);

impl Cancel for Shutdown {
    fn cancel(&self) {
        self.0.interrupt();
    }
}

/// Ends the server when this is dropped, even if a thread that uses it hangs.
pub(super) struct EndServer(ServerHandle);

impl Drop for EndServer {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The lines of `--postgres-settings`, if it is given.
pub(super) fn lines(args: &BenchArgs) -> Result<Option<ServerLines>, Failure> {
    let Some(path) = &args.postgres_settings else { return Ok(None) };
    let found = read_assignments(path).map_err(Failure::cannot_run)?;
    let lines = ServerLines::new(found).map_err(|error| {
        Failure::usage(format!("\"{}\": {error}", path.display()))
            .with_hint("remove these lines from the file")
    })?;
    if lines.is_empty() {
        let text =
            format!("\"{}\" has no settings, so there is nothing to compare", path.display());
        return Err(Failure::usage(text)
            .with_hint("comments are ignored; calibrate comments out what keeps its default"));
    }
    Ok(Some(lines))
}

/// A server that isn't running, and whose cluster has the tables.
pub(super) struct Prepared {
    pub(super) server: Server,
    pub(super) end: EndServer,
}

/// Creates the cluster and its tables in the scratch directory.
pub(super) fn prepare(
    args: &BenchArgs,
    bin: &Path,
    (scratch, plan, buffers): (&Path, &Plan, u32),
    lines: Option<ServerLines>,
    global: &Global,
    (interrupt, watcher): (&Interrupt, Arc<dyn Watcher>),
) -> Result<Prepared, Failure> {
    let (needed, free) = (bytes_needed(args.scale()), room(scratch).unwrap_or(u64::MAX));
    if free < needed {
        let text = format!(
            "not enough disk space for the server's tables: {} needed, and at most half of the free \
             space, {}, is used",
            human_bytes(needed),
            human_bytes(free)
        );
        return Err(Failure::cannot_run(text).with_hint("use a smaller --scale"));
    }
    let largest = |values: &[u32]| values.iter().copied().max().unwrap_or(1);
    let sizes = Sizes {
        buffers,
        concurrency_max: largest(&plan.concurrencies),
        combine_max: largest(&plan.combines),
    };
    let user = args.postgres_user.as_deref();
    let mut server = Server::find(bin, user, scratch, sizes, watcher).map_err(failure)?;
    let end = EndServer(server.handle());
    interrupt.cancel_on_request(Shutdown(server.handle()));
    if global.shows_progress() {
        let text = format!("creating a cluster of {} with its tables", server.name());
        message("info", format_args!("{text}, {}", human_bytes(needed)));
    }
    let tables = TablePlan {
        scale: args.scale(),
        seed: plan.seed,
        selectivities: plan.selectivities.clone(),
    };
    let created = interrupt.wait_for("server", move || {
        server.create(&tables, lines)?;
        Ok(server)
    });
    match created? {
        Ok(server) => Ok(Prepared { server, end }),
        Err(_) if interrupt.requested() => Err(interrupt.failure()),
        Err(error) => Err(failure(error)),
    }
}

/// Opens the server's tables for our engine. The first one is `uniform`.
pub(super) fn open(engine: &Engine, server: Server) -> Result<(Table, Peer), Failure> {
    let dir = DataDir::open(server.cluster(), OpenOptions::default())?;
    let table = |guide: &GuideTable| -> Result<Table, Failure> {
        let choice = Choice { names: vec![(&guide.relation).into()], ..Choice::default() };
        let found = select(&dir, &choice)?.targets;
        let target = found.into_iter().find(|target| target.fork == Fork::Main);
        let target = target.ok_or_else(|| {
            Failure::cannot_run(format_args!("the server's table {} has no file", guide.relation))
        })?;
        Ok(Table::of_server(engine, &dir, target, guide)?)
    };
    let [uniform, linear_10] = server.tables() else {
        return Err(Failure::cannot_run("the server has no tables"));
    };
    let (uniform, linear_10) = (table(uniform)?, table(linear_10)?);
    Ok((uniform, Peer { server, linear_10 }))
}

fn failure(error: trunkline_measure::ServerError) -> Failure {
    trunkline_measure::MeasureError::from(error).into()
}
