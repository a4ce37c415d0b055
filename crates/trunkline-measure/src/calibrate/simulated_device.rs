//! **A simulated device** for tests: the disk model of `trunkline slow-disk` with a simulated clock.
//!
//! Minutes of I/O take milliseconds, and every run is the same. A page cache and a second session
//! aren't modelled, so loads that need them are refused.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use trunkline_aio::MethodKind;
use trunkline_aio::clock::Time;
use trunkline_slow_disk::{DiskModel, Profile};

use super::load::{Device, DeviceError, Load, Window, Work};
use crate::error::MeasureError;

/// A disk and its clock.
pub(super) struct SimulatedDevice {
    disk: DiskModel,
    now: Time,
    file_bytes: u64,
    file_bytes_max: u64,
    /// Every nth I/O takes longer by this time.
    pub(super) hiccup: Option<(u64, Duration)>,
    count: u64,
    /// Another program takes a quarter of the disk during every run that is longer than this.
    pub(super) neighbour: Option<Duration>,
    /// This work fails.
    pub(super) fails: Option<Work>,
    /// Everything takes longer by this time after the first mixed load or write without a sync, other
    /// than the fill.
    pub(super) wear: Option<Duration>,
    is_worn: bool,
    /// Bytes of all I/Os.
    pub(super) bytes: u64,
}

impl SimulatedDevice {
    pub(super) fn new(profile: &str, file_bytes_max: u64) -> Self {
        let profile: Profile = profile.parse().expect("a profile");
        let (disk, now) = (DiskModel::new(&profile), Time::from_nanos(0));
        Self {
            disk,
            now,
            file_bytes: 0,
            file_bytes_max,
            hiccup: None,
            count: 0,
            neighbour: None,
            fails: None,
            wear: None,
            is_worn: false,
            bytes: 0,
        }
    }

    /// Starts an I/O now. Returns when it completes.
    fn start(&mut self, load: &Load) -> Time {
        let done = self.disk.admit(self.now, load.size.into());
        self.count += 1;
        self.bytes += u64::from(load.size);
        let done = if self.is_worn { done.after(self.wear.unwrap_or_default()) } else { done };
        let is_disturbed = self.neighbour.is_some_and(|time| load.duration > time);
        if is_disturbed && self.count.is_multiple_of(3) {
            self.disk.admit(self.now, load.size.into());
        }
        match self.hiccup {
            Some((every, time)) if self.count.is_multiple_of(every) => done.after(time),
            _ => done,
        }
    }
}

fn seconds(time: Time) -> f64 {
    time.nanos() as f64 / 1e9
}

impl Device for SimulatedDevice {
    fn now(&self) -> f64 {
        seconds(self.now)
    }

    fn is_direct(&self) -> bool {
        true
    }

    fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    fn run(
        &mut self,
        load: &Load,
        each: &mut dyn FnMut(Window) -> bool,
    ) -> Result<(), DeviceError> {
        if self.fails == Some(load.work) {
            return Err(MeasureError::Thread("a read failed".into()).into());
        }
        if matches!(load.work, Work::Flush(_)) {
            return Err(DeviceError::Unsupported("the simulation has no page cache".into()));
        }
        self.is_worn |=
            matches!(load.work, Work::Mixed(_) | Work::RandomWrite | Work::SequentialWrite);
        // An I/O method executes as many I/Os at a time as it has threads.
        let depth = match load.method {
            Some(MethodKind::Sync) => 1,
            Some(MethodKind::Worker) => load.depth.min(load.workers as u32),
            _ => load.depth,
        };
        // When an I/O completes, when it was started, and whether a flush follows.
        let is_durable = matches!(load.work, Work::Durable(_));
        let mut pending = BinaryHeap::new();
        let end = self.now.after(load.duration);
        for _ in 0..depth {
            pending.push(Reverse((self.start(load), self.now, is_durable)));
        }
        let mut window = Window::new(self.now());
        let mut boundary = self.now.after(load.window);
        let mut goes_on = true;
        while let Some(Reverse((done, started, is_flushed_next))) = pending.pop() {
            self.now = done;
            if is_flushed_next {
                pending.push(Reverse((self.disk.admit(done, 0), started, false)));
                continue;
            }
            window.record(load.size.into(), done.since(started));
            if load.work == Work::Fill {
                self.file_bytes += u64::from(load.size);
                goes_on &= self.file_bytes < self.file_bytes_max;
            }
            if goes_on && done >= boundary {
                window.seconds = seconds(done) - window.begin;
                boundary = done.after(load.window);
                let whole = std::mem::replace(&mut window, Window::new(seconds(done)));
                goes_on = each(whole) && done < end;
            }
            if goes_on {
                self.now = done.after(load.pause);
                pending.push(Reverse((self.start(load), self.now, is_durable)));
            }
        }
        if window.count > 0 {
            window.seconds = seconds(self.now) - window.begin;
            window.is_tail = true;
            each(window);
        }
        Ok(())
    }
}
