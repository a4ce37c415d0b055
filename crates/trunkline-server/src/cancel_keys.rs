//! Cancel requests: a client that knows a session's number and key may cancel its statement, over a
//! connection of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_aio::facade::{Mutex, random};
use trunkline_query::SessionCanceller;

/// The length of a key in protocol 3.0.
const SHORT: usize = 4;
/// And in 3.2, where it may be up to 256 bytes long. PostgreSQL 18 uses 32.
const LONG: usize = 32;

/// The keys of all sessions.
#[derive(Debug, Clone, Default)]
pub(crate) struct CancelKeys(Arc<Mutex<BTreeMap<i32, Entry>>>);

#[derive(Debug)]
struct Entry {
    key: Vec<u8>,
    canceller: SessionCanceller,
}

/// The registration of a session. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct CancelKey {
    keys: CancelKeys,
    pid: i32,
    pub(crate) key: Vec<u8>,
}

impl CancelKeys {
    /// Registers a session. `minor` is the minor version of its protocol.
    pub(crate) fn register(&self, pid: i32, minor: u16, canceller: SessionCanceller) -> CancelKey {
        let length = if minor >= 2 { LONG } else { SHORT };
        let key: Vec<u8> = random_bytes().take(length).collect();
        self.0.lock().insert(pid, Entry { key: key.clone(), canceller });
        CancelKey { keys: self.clone(), pid, key }
    }

    /// Cancels the statement of a session. Nothing happens if the key is wrong, as the client isn't
    /// answered anyway.
    pub(crate) fn cancel(&self, pid: i32, key: &[u8]) {
        let keys = self.0.lock();
        // All bytes are compared, so that the time doesn't tell how many are right.
        let found = keys.get(&pid).filter(|entry| {
            let pairs = entry.key.iter().zip(key);
            entry.key.len() == key.len() && pairs.fold(0, |wrong, (a, b)| wrong | (a ^ b)) == 0
        });
        let canceller = found.map(|entry| entry.canceller.clone());
        drop(keys);
        if let Some(canceller) = canceller {
            canceller.cancel();
        }
    }

    /// Ends all sessions.
    pub(crate) fn terminate_all(&self) {
        let all: Vec<_> = self.0.lock().values().map(|entry| entry.canceller.clone()).collect();
        all.iter().for_each(SessionCanceller::terminate);
    }
}

impl Drop for CancelKey {
    fn drop(&mut self) {
        self.keys.0.lock().remove(&self.pid);
    }
}

/// Random bytes of the kernel's.
pub(crate) fn random_bytes() -> impl Iterator<Item = u8> {
    std::iter::repeat_with(random::seed).flat_map(u64::to_le_bytes)
}
