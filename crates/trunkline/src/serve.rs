//! `trunkline serve`: serves SQL to psql and drivers.
//!
//! ```text
//!   serve -D DIR                                    a unix socket on port 5432
//!   serve -D DIR -p 5433 --socket-dir /tmp          psql -h /tmp -p 5433
//!   serve -D DIR --listen 127.0.0.1 --password-file users
//!   serve -D DIR --listen 0.0.0.0 --password-file users --tls-cert cert.pem --tls-key key.pem
//! ```
//! The first SIGINT or SIGTERM ends all sessions, with the error that a server sends when it is shut
//! down, and then the command. A second one ends it at once.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueHint;
use rustix::fs::Access;
use tokio::signal::unix::{Signal, SignalKind, signal};
use trunkline_aio::facade::{env, thread};
use trunkline_query::{Instance, InstanceOptions, configure_engine};
use trunkline_server::{PasswordFile, Server, ServerError, ServerOptions, TlsIdentity};

use crate::copy::outputs::is_inside_cluster;
use crate::data_dir;
use crate::exit::{Exit, Failure, message};
use crate::io_instance::IoInstance;
use crate::number::number;
use crate::options::Context;
use crate::output;
use crate::query::{STACK_BYTES, open_failure};

/// Where the socket is if this directory exists: Debian's choice.
const SOCKET_DIRECTORY: &str = "/var/run/postgresql";

/// PostgreSQL's port.
const PORT: u16 = 5432;

/// How long we wait at the end for tasks of statements, which remove their temporary files.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Threads for blocking work besides those of sessions, at tokio's default.
const BLOCKING_THREADS: usize = 512;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Port, which is also part of the socket's name [default: $PGPORT, or else 5432].
    #[arg(short = 'p', long, value_name = "PORT", value_parser = number(1..=u16::MAX))]
    port: Option<u16>,

    /// Directory of the unix socket [default: /var/run/postgresql if it can be written, or else /tmp].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    socket_dir: Option<PathBuf>,

    /// IP address to listen on for TCP connections; may be repeated. Requires --password-file; and
    /// also --tls-cert and --tls-key, if it isn't a loopback address.
    #[arg(long, value_name = "ADDRESS", requires = "password_file")]
    listen: Vec<IpAddr>,

    /// Users of TCP connections: lines of the form user:SCRAM-SHA-256$..., as in pg_authid.
    /// Other users must not be able to read it.
    #[arg(long, value_name = "FILE", requires = "listen", value_hint = ValueHint::FilePath)]
    password_file: Option<PathBuf>,

    /// Certificate of TCP connections, in PEM.
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "listen"])]
    #[arg(value_hint = ValueHint::FilePath)]
    tls_cert: Option<PathBuf>,

    /// Private key of the certificate, in PEM. Other users must not be able to read it.
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    tls_key: Option<PathBuf>,

    /// Largest number of connections.
    #[arg(long, value_name = "N", default_value = "100", value_parser = number(1..=10_000_usize))]
    max_connections: usize,

    /// File that ALTER SYSTEM writes, and whose settings are in force unless the command line has
    /// others [default: trunkline/SYSTEM_IDENTIFIER.conf in $XDG_CONFIG_HOME, or else in ~/.config].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config_file: Option<PathBuf>,

    /// Directory for temporary files of statements that exceed work_mem [default: $TMPDIR, or else
    /// /tmp].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    temporary_directory: Option<PathBuf>,
}

impl ServeArgs {
    fn port(&self) -> Result<u16, Failure> {
        if let Some(port) = self.port {
            return Ok(port);
        }
        let Some(text) = env::var("PGPORT").filter(|text| !text.is_empty()) else {
            return Ok(PORT);
        };
        let port = text.to_str().and_then(|text| text.parse().ok()).filter(|port| *port > 0);
        port.ok_or_else(|| Failure::usage(format!("invalid PGPORT: \"{}\"", text.display())))
    }

    fn socket_directory(&self) -> PathBuf {
        let is_usable = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
        match &self.socket_dir {
            Some(directory) => directory.clone(),
            None if is_usable(SOCKET_DIRECTORY.as_ref()) => SOCKET_DIRECTORY.into(),
            None => "/tmp".into(),
        }
    }

    fn temporary_directory(&self) -> PathBuf {
        let of_environment = || env::var("TMPDIR").filter(|path| !path.is_empty());
        let given = self.temporary_directory.clone();
        given.or_else(|| of_environment().map(PathBuf::from)).unwrap_or_else(|| "/tmp".into())
    }

    /// Where ALTER SYSTEM writes; `None` if there is no home directory.
    fn config_file(&self, system_identifier: u64) -> Option<PathBuf> {
        let of_environment = |name| env::var(name).filter(|path| !path.is_empty());
        let directory = || {
            let home = || Some(PathBuf::from(of_environment("HOME")?).join(".config"));
            of_environment("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home)
        };
        let default = || Some(directory()?.join(format!("trunkline/{system_identifier}.conf")));
        self.config_file.clone().or_else(default)
    }

    fn options(&self) -> Result<ServerOptions, Failure> {
        let passwords = self.password_file.as_deref().map(PasswordFile::read);
        let tls = self.tls_cert.as_deref().zip(self.tls_key.as_deref());
        let tls = tls.map(|(certificate, key)| TlsIdentity::read(certificate, key));
        Ok(ServerOptions {
            socket_directory: Some(self.socket_directory()),
            port: self.port()?,
            addresses: self.listen.clone(),
            passwords: passwords.transpose().map_err(start_failure)?,
            tls: tls.transpose().map_err(start_failure)?,
            max_connections: self.max_connections,
        })
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &ServeArgs) -> Result<Exit, Failure> {
    let Context { global, settings, text_settings, buffers, given } = context;
    let options = args.options()?;
    let temporary = args.temporary_directory();
    let dir = data_dir::open(context)?;
    let config_file = args.config_file(dir.control().system_identifier);
    let written = options.socket_directory.iter().chain([&temporary]).chain(&config_file);
    for path in written {
        if is_inside_cluster(path, &dir) {
            let text =
                format!("\"{}\" is inside the data directory or a tablespace", path.display());
            return Err(Failure::usage(text).with_hint("choose a place outside the cluster"));
        }
    }
    let data = dir.path().to_owned();
    let mut settings = (*settings).clone();
    // What the command line hasn't set is the file's.
    let is_given = |name: &str| given.contains(&name.to_ascii_lowercase());
    if let Some(file) = &config_file {
        configure_engine(file, &mut settings, is_given).map_err(open_failure)?;
    }
    let buffers = buffers.unwrap_or_else(|| settings.shared_buffers());
    let (io, engine) = IoInstance::with_engine(&settings, buffers)?;
    let cluster = engine.cluster_of(dir);
    let instance = InstanceOptions {
        temporary_directory: Some(temporary),
        configuration_file: config_file,
        settings: text_settings.clone().into_iter().collect(),
        engine_settings: given.iter().cloned().collect(),
    };
    let instance = Instance::new(engine, cluster, instance).map_err(open_failure)?;
    let no_threads = |error| Failure::cannot_run(format!("could not start threads: {error}"));
    let statements = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(thread::available_parallelism().max(1))
        // Each session has one.
        .max_blocking_threads(BLOCKING_THREADS.saturating_add(args.max_connections))
        .thread_stack_size(STACK_BYTES)
        .thread_name("statements")
        .enable_all()
        .build()
        .map_err(no_threads)?;
    // Clients, signals and cancel requests have this thread, however busy the statements are.
    let network =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_threads)?;
    let served = network.block_on(async {
        // Signals are caught before clients can connect.
        let signals = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
        let [interrupt, terminate] = signals;
        let caught = |result: Result<Signal, std::io::Error>| {
            result.map_err(|error| Failure::cannot_run(format!("could not catch signals: {error}")))
        };
        let (interrupt, terminate) = (caught(interrupt)?, caught(terminate)?);
        let server = Server::bind(instance, options).await.map_err(start_failure)?;
        report_start(&server, &data, io.method_name(), global.json)?;
        server.warnings().iter().for_each(|warning| message("warning", warning));
        let stopper = server.stopper();
        tokio::spawn(async move {
            let (mut interrupt, mut terminate) = (interrupt, terminate);
            next_signal(&mut interrupt, &mut terminate).await;
            stopper.stop();
            let number = next_signal(&mut interrupt, &mut terminate).await;
            // This doesn't return, unless the signal is ignored.
            let _raised = signal_hook::low_level::emulate_default_handler(number);
        });
        let cut_off = server.run(statements.handle().clone()).await;
        if cut_off > 0 {
            message(
                "warning",
                format!("{cut_off} connections did not end in time and were cut off"),
            );
        }
        Ok::<_, Failure>(())
    });
    statements.shutdown_timeout(END_TIMEOUT);
    io.report_fallbacks();
    served.map(|()| Exit::Good)
}

/// Waits for a signal and returns its number.
async fn next_signal(interrupt: &mut Signal, terminate: &mut Signal) -> i32 {
    tokio::select! {
        _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
        _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
    }
}

/// Prints where clients can connect.
fn report_start(server: &Server, data: &Path, method: &str, json: bool) -> Result<(), Failure> {
    let socket = server.socket().map(|path| path.display().to_string());
    let addresses: Vec<String> = server.addresses().iter().map(ToString::to_string).collect();
    let data = data.display().to_string();
    if json {
        output::print_json(&output::object! {
            socket: socket,
            addresses: addresses,
            data_directory: data,
            io_method: method,
        })?;
    } else {
        let places = socket.into_iter().chain(addresses).collect::<Vec<_>>().join(", ");
        output::print(&format!("serving {data} on {places}, io_method {method}\n"))?;
    }
    message(
        "note",
        "roles and privileges of the cluster are not enforced: every user reads all data",
    );
    Ok(())
}

/// The failure to start. What the options can change is a usage error.
fn start_failure(error: ServerError) -> Failure {
    match error {
        ServerError::Socket { .. }
        | ServerError::LockFile { .. }
        | ServerError::Address { .. }
        | ServerError::SocketInUse(_) => Failure::cannot_run(error),
        _ => Failure::usage(error),
    }
}
