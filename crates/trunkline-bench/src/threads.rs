//! **Concurrent sessions**: one thread for each, joined before the run ends.

use crate::failure::Result;

/// Calls the `body` closure for each item, each time in a new thread, while the calling thread runs
/// `meanwhile`. Returns the results in the order of the items.
pub(crate) fn beside<I: Send, T: Send>(
    items: impl Iterator<Item = I>,
    body: impl Fn(I) -> Result<T> + Sync,
    meanwhile: impl FnOnce() -> Result<()>,
) -> Result<Vec<T>> {
    let body = &body;
    std::thread::scope(|scope| {
        let threads: Vec<_> = items.map(|item| scope.spawn(move || body(item))).collect();
        let done = meanwhile();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<T>>| {
            thread.join().map_err(|_| "a thread panicked")?
        };
        let results = threads.into_iter().map(join).collect::<Result<Vec<T>>>();
        done.and(results)
    })
}

/// Calls `body` for each item in a separate thread; a single item runs in the calling thread.
pub(crate) fn in_threads<I: Send, T: Send>(
    items: impl Iterator<Item = I>,
    body: impl Fn(I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let items: Vec<I> = items.collect();
    if items.len() == 1 {
        return items.into_iter().map(body).collect();
    }
    beside(items.into_iter(), body, || Ok(()))
}
