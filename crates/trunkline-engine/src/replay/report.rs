//! What was replayed, for the user: how much, from where to where, and why the log ended there.

use std::fmt;
use std::time::Duration;

use trunkline_format::Lsn;

/// What was replayed.
#[derive(Debug, Clone)]
pub struct ReplayReport {
    /// Where replay started.
    pub start: Lsn,
    /// The start of the last record; the start of the replay if there is none.
    pub last: Lsn,
    /// The end of the last record.
    pub end: Lsn,
    /// Why it ended there.
    pub reason: String,
    /// Whether logs usually end like this: there is no further file, or nothing was written there.
    /// Anything else, such as a wrong CRC, may be damage.
    pub is_usual_end: bool,
    /// The end of the record at which the files became consistent. `None` if the log ends before that.
    pub consistent: Option<Lsn>,
    /// The number of records.
    pub records: u64,
    /// The number of pages that they changed.
    pub pages: u64,
    /// The most memory that the list of changes took when it was checked, in bytes. The checks that made it go to a
    /// scratch file don't count, so this is at most the limit.
    pub memory: u64,
    /// The bytes of that list which were written to a scratch file.
    pub spilled: u64,
    /// How long the scan took.
    pub elapsed: Duration,
    /// The timeline of the last record, if it isn't that of the start.
    pub other_timeline: Option<u32>,
    /// Whether, before a crash, `full_page_writes` was off at some time. A page that was torn when the server's machine
    /// crashed is then the base of its changes.
    pub lacks_images: bool,
    /// What `allow_incomplete` has let pass.
    pub warning: Option<String>,
}

impl ReplayReport {
    /// That the end of the log may be damage, if it may be, in one line.
    pub fn doubt(&self) -> Option<String> {
        let Self { end, reason, .. } = self;
        let is_doubtful = !self.is_usual_end && self.warning.is_none();
        is_doubtful.then(|| {
            format!(
                "the log ends at {end} in an invalid record, left by a crash or by damage: {reason}"
            )
        })
    }

    /// Nothing was replayed yet.
    pub(super) fn from_start(start: Lsn) -> Self {
        Self {
            start,
            last: start,
            end: start,
            reason: String::new(),
            is_usual_end: true,
            consistent: None,
            records: 0,
            pages: 0,
            memory: 0,
            spilled: 0,
            elapsed: Duration::ZERO,
            other_timeline: None,
            lacks_images: false,
            warning: None,
        }
    }
}

/// One line: how much, from where to where, how long.
impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.end.0.saturating_sub(self.start.0);
        let mb = bytes as f64 / f64::from(1 << 20);
        let Self { start, end, records, pages, .. } = self;
        let seconds = self.elapsed.as_secs_f64();
        write!(
            f,
            "replayed {mb:.1} MB of log from {start} to {end} in {seconds:.2} s: {records} records, \
             {pages} pages; nothing was written"
        )?;
        if self.spilled > 0 {
            let mb = self.spilled as f64 / f64::from(1 << 20);
            write!(f, " but {mb:.1} MB of scratch, for lack of --replay-memory")?;
        }
        if let Some(timeline) = self.other_timeline {
            write!(f, "; timeline {timeline} was followed")?;
        }
        Ok(())
    }
}
