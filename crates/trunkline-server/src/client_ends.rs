//! Notices that clients go, while their sessions are busy.
//!
//! A session reads its socket itself, so it learns nothing while it executes a statement. The thread of
//! the network asks the kernel for one thing about each socket: that its other side was closed. What
//! clients send doesn't wake it, so this costs nothing until a client goes.
//!
//! ```text
//!   socket ──────▶ the session, in a thread of its own
//!      │ closed by the client
//!      └─────────▶ ClientEnds ──▶ SessionCanceller, while a statement runs
//! ```

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use trunkline_aio::facade::Mutex;
use trunkline_query::SessionCanceller;

use crate::socket::{RawSocket, register};

/// How many ends are taken from the kernel at once.
const EVENTS: usize = 64;

/// The sockets of all clients.
#[derive(Debug, Clone)]
pub(crate) struct ClientEnds(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Readable when a client has gone.
    epoll: AsyncFd<OwnedFd>,
    clients: Mutex<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    ends: BTreeMap<u64, Arc<End>>,
    last: u64,
}

#[derive(Debug, Default)]
struct End(Mutex<EndState>);

#[derive(Debug, Default)]
struct EndState {
    has_gone: bool,
    /// The session to terminate when the client goes.
    watcher: Option<SessionCanceller>,
}

impl ClientEnds {
    /// Without clients. The current runtime will wait for their ends.
    ///
    /// # Errors
    /// The system has no room for it.
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let epoll = register(epoll, Interest::READABLE)?;
        Ok(Self(Arc::new(Shared { epoll, clients: Mutex::default() })))
    }

    /// Adds a client.
    ///
    /// # Errors
    /// The system has no room for it.
    pub(crate) fn add(&self, socket: &Arc<RawSocket>) -> io::Result<ClientEnd> {
        let end = Arc::<End>::default();
        let mut clients = self.0.clients.lock();
        clients.last += 1;
        let number = clients.last;
        clients.ends.insert(number, Arc::clone(&end));
        drop(clients);
        let (shared, socket) = (Arc::clone(&self.0), Arc::clone(socket));
        let client = ClientEnd { shared, socket, number, end };
        // Errors of the socket are reported as well.
        let events = epoll::EventFlags::RDHUP | epoll::EventFlags::ONESHOT;
        let number = epoll::EventData::new_u64(number);
        epoll::add(client.shared.epoll.get_ref(), &client.socket, number, events)?;
        Ok(client)
    }

    /// Notices ends. This returns only if that fails.
    ///
    /// # Errors
    /// The kernel doesn't report them.
    pub(crate) async fn run(&self) -> io::Result<()> {
        loop {
            let mut ready = self.0.epoll.readable().await?;
            if !self.0.take_ends()? {
                ready.clear_ready();
            }
        }
    }
}

impl Shared {
    /// Notices the ends that the kernel has to report. Returns false if there were none.
    fn take_ends(&self) -> io::Result<bool> {
        let mut events = Vec::with_capacity(EVENTS);
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match epoll::wait(self.epoll.get_ref(), spare_capacity(&mut events), Some(&now)) {
            Ok(0) => return Ok(false),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events {
            let found = self.clients.lock().ends.get(&event.data.u64()).map(Arc::clone);
            if let Some(end) = found {
                end.reached();
            }
        }
        Ok(true)
    }
}

impl End {
    /// The client has gone.
    fn reached(&self) {
        let mut state = self.0.lock();
        state.has_gone = true;
        let watcher = state.watcher.take();
        drop(state);
        if let Some(watcher) = watcher {
            watcher.terminate();
        }
    }
}

/// The end of one client, which is looked for until this is dropped.
#[derive(Debug)]
pub(crate) struct ClientEnd {
    shared: Arc<Shared>,
    socket: Arc<RawSocket>,
    number: u64,
    end: Arc<End>,
}

impl ClientEnd {
    /// Terminates the session if the client goes before the result is dropped, or has gone already.
    pub(crate) fn watch(&self, session: &SessionCanceller) -> Watch {
        let mut state = self.end.0.lock();
        let has_gone = state.has_gone;
        state.watcher = Some(session.clone());
        drop(state);
        if has_gone {
            session.terminate();
        }
        Watch(Arc::clone(&self.end))
    }
}

impl Drop for ClientEnd {
    fn drop(&mut self) {
        // If it isn't there, it couldn't be added.
        let _deleted = epoll::delete(self.shared.epoll.get_ref(), &self.socket);
        self.shared.clients.lock().ends.remove(&self.number);
    }
}

/// While this exists, a session ends with its client.
#[derive(Debug)]
pub(crate) struct Watch(Arc<End>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.0.lock().watcher = None;
    }
}
