//! **Profile**: the latency and the limits of a disk, as text.
//!
//! ```text
//!   latency=5ms                                       a fixed service time, no limits
//!   latency=2ms,rate=500MB/s,iops=10000               a disk with limits
//!   iops=300,burst_iops=3000,credit=5400000io         300 IOPS, 3,000 while there is credit
//!   rate=100MB/s,burst_rate=170MB/s,credit=10GB       the same for bandwidth
//!   gp3,latency=2ms                                   a named disk with one value changed
//! ```
//! Named profiles are in [`crate::known_disks`].

use std::fmt::{Display, Formatter};
use std::str::FromStr;
use std::time::Duration;

use crate::known_disks;
use crate::quantity::{self, Credit};

/// Longest latency of a profile. Longer waits look like a hang to the kernel and to the user.
const LATENCY_MAX: Duration = Duration::from_secs(60);

/// A limit on a rate, with an optional burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Units per second.
    pub rate: u64,
    /// Units per second while there is credit. `None` means without a limit.
    pub burst: Option<u64>,
    /// Units that may be used beyond the rate. The disk starts with all of them, and earns them
    /// back at the rate while it does less.
    pub credit: u64,
}

/// The latency and the limits of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    latency: Duration,
    bandwidth: Option<Limit>,
    iops: Option<Limit>,
    io_size: Option<u64>,
}

/// Why a profile is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// A name that isn't that of a known disk, or a part without `=`.
    #[error(
        "unknown disk \"{found}\", expected one of {known}, or values such as latency=5ms,rate=500MB/s"
    )]
    UnknownDisk {
        /// The part of the profile.
        found: String,
        /// The names of the known disks.
        known: String,
    },
    /// A key that no profile has.
    #[error(
        "unknown key \"{0}\", expected latency, rate, burst_rate, iops, burst_iops, credit or io_size"
    )]
    UnknownKey(String),
    /// A value that can't be read, or that is out of range.
    #[error("invalid value for {key}: \"{found}\", expected {expected}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        found: String,
        /// What the value should look like.
        expected: &'static str,
    },
    /// The same key twice.
    #[error("{0} is given twice")]
    Twice(String),
    /// A burst or a credit without the limit that it extends.
    #[error("{given} has no effect without {missing}")]
    Without {
        /// The key that was given.
        given: &'static str,
        /// The key that it needs.
        missing: &'static str,
    },
    /// A burst rate that isn't above the rate.
    #[error("{key} must be larger than {than}: found {found}, which is not above {rate}")]
    BurstTooLow {
        /// The key of the burst.
        key: &'static str,
        /// The key of the rate.
        than: &'static str,
        /// The burst.
        found: u64,
        /// The rate.
        rate: u64,
    },
    /// Neither a latency nor a limit.
    #[error("a profile needs a latency, a rate or iops")]
    Empty,
}

impl Profile {
    /// The service time of every request.
    pub fn latency(&self) -> Duration {
        self.latency
    }

    /// The limit on bytes per second.
    pub fn bandwidth(&self) -> Option<Limit> {
        self.bandwidth
    }

    /// The limit on I/Os per second.
    pub fn iops(&self) -> Option<Limit> {
        self.iops
    }

    /// The size above which a request counts as several I/Os.
    pub fn io_size(&self) -> Option<u64> {
        self.io_size
    }

    /// A disk with the same latency and without limits. The file system measures its accuracy on
    /// such a disk, so that the measurement doesn't use up any credit.
    pub(crate) fn without_limits(&self) -> Profile {
        Profile { latency: self.latency, bandwidth: None, iops: None, io_size: None }
    }
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Profile, ProfileError> {
        let (known, rest) = match text.split_once(',') {
            Some((first, rest)) if !first.contains('=') => (Some(first), rest),
            None if !text.contains('=') => (Some(text), ""),
            _ => (None, text),
        };
        let mut values = Values::default();
        if let Some(name) = known {
            let disk = known_disks::find(name).ok_or_else(|| ProfileError::UnknownDisk {
                found: name.to_owned(),
                known: known_disks::names(),
            })?;
            values.read(disk.values)?;
            values.given.clear();
        }
        values.read(rest)?;
        values.into_profile()
    }
}

/// The values of a profile while it is being read.
#[derive(Default)]
struct Values {
    latency: Option<Duration>,
    rate: Option<u64>,
    burst_rate: Option<u64>,
    byte_credit: Option<u64>,
    iops: Option<u64>,
    burst_iops: Option<u64>,
    io_credit: Option<u64>,
    io_size: Option<u64>,
    /// Keys so far. A later key replaces that of a known disk, but not one of the same text.
    given: Vec<String>,
}

impl Values {
    fn read(&mut self, text: &str) -> Result<(), ProfileError> {
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| ProfileError::UnknownDisk {
                found: part.to_owned(),
                known: known_disks::names(),
            })?;
            self.set(key.trim(), value.trim())?;
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ProfileError> {
        let invalid = |expected| ProfileError::Value {
            key: key.to_owned(),
            found: value.to_owned(),
            expected,
        };
        let bytes = || quantity::bytes(value).filter(|&size| size > 0);
        let per_second = || quantity::bytes_per_second(value).filter(|&rate| rate > 0);
        let count = || quantity::count(value).filter(|&count| count > 0);
        let a_rate = "a size per second, such as 500MB/s or 125MiB/s";
        let a_number = "a whole number of I/Os per second, at least 1";
        // Each kind of credit may be given once.
        let mut name = key;
        match key {
            "latency" => {
                let latency = quantity::duration(value).filter(|&time| time <= LATENCY_MAX);
                self.latency =
                    Some(latency.ok_or_else(|| invalid("a time up to 60s, such as 5ms or 500us"))?);
            }
            "rate" => self.rate = Some(per_second().ok_or_else(|| invalid(a_rate))?),
            "burst_rate" => self.burst_rate = Some(per_second().ok_or_else(|| invalid(a_rate))?),
            "iops" => self.iops = Some(count().ok_or_else(|| invalid(a_number))?),
            "burst_iops" => self.burst_iops = Some(count().ok_or_else(|| invalid(a_number))?),
            "io_size" => {
                let size = bytes().filter(|&size| size >= 512);
                self.io_size =
                    Some(size.ok_or_else(|| invalid("a size of at least 512B, such as 256KiB"))?);
            }
            "credit" => match quantity::credit(value) {
                Some(Credit::Bytes(bytes)) => {
                    name = "credit of bytes";
                    self.byte_credit = Some(bytes);
                }
                Some(Credit::Ios(count)) => {
                    name = "credit of I/Os";
                    self.io_credit = Some(count);
                }
                None => {
                    return Err(invalid("a size such as 10GB, or a number of I/Os such as 5000io"));
                }
            },
            _ => return Err(ProfileError::UnknownKey(key.to_owned())),
        }
        if self.given.iter().any(|given| given == name) {
            return Err(ProfileError::Twice(name.to_owned()));
        }
        self.given.push(name.to_owned());
        Ok(())
    }

    fn into_profile(self) -> Result<Profile, ProfileError> {
        let bandwidth = limit(
            ("rate", self.rate),
            ("burst_rate", self.burst_rate),
            ("a credit of bytes", self.byte_credit),
        )?;
        let iops = limit(
            ("iops", self.iops),
            ("burst_iops", self.burst_iops),
            ("a credit of I/Os", self.io_credit),
        )?;
        if self.io_size.is_some() && iops.is_none() {
            return Err(ProfileError::Without { given: "io_size", missing: "iops" });
        }
        let latency = self.latency.unwrap_or_default();
        if latency.is_zero() && bandwidth.is_none() && iops.is_none() {
            return Err(ProfileError::Empty);
        }
        Ok(Profile { latency, bandwidth, iops, io_size: self.io_size })
    }
}

/// Combines a rate, its burst and its credit.
fn limit(
    (name, rate): (&'static str, Option<u64>),
    (burst_name, burst): (&'static str, Option<u64>),
    (credit_name, credit): (&'static str, Option<u64>),
) -> Result<Option<Limit>, ProfileError> {
    let Some(rate) = rate else {
        return match (burst, credit) {
            (Some(_), _) => Err(ProfileError::Without { given: burst_name, missing: name }),
            (_, Some(_)) => Err(ProfileError::Without { given: credit_name, missing: name }),
            (None, None) => Ok(None),
        };
    };
    if burst.is_some() && credit.is_none() {
        return Err(ProfileError::Without { given: burst_name, missing: credit_name });
    }
    if let Some(found) = burst.filter(|&burst| burst <= rate) {
        return Err(ProfileError::BurstTooLow { key: burst_name, than: name, found, rate });
    }
    Ok(Some(Limit { rate, burst, credit: credit.unwrap_or(0) }))
}

impl Display for Profile {
    /// Writes a profile that reads back as the same profile.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "latency={}", quantity::show_duration(self.latency))?;
        if let Some(limit) = self.bandwidth {
            write!(f, ",rate={}/s", quantity::show_bytes(limit.rate))?;
            if let Some(burst) = limit.burst {
                write!(f, ",burst_rate={}/s", quantity::show_bytes(burst))?;
            }
            if limit.credit > 0 {
                write!(f, ",credit={}", quantity::show_bytes(limit.credit))?;
            }
        }
        if let Some(limit) = self.iops {
            write!(f, ",iops={}", limit.rate)?;
            if let Some(burst) = limit.burst {
                write!(f, ",burst_iops={burst}")?;
            }
            if limit.credit > 0 {
                write!(f, ",credit={}io", limit.credit)?;
            }
        }
        match self.io_size {
            Some(size) => write!(f, ",io_size={}", quantity::show_bytes(size)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_disks::KNOWN_DISKS;

    #[test]
    fn profiles_read_back_as_they_are_written() {
        for (text, shown) in [
            ("latency=5ms", "latency=5ms"),
            ("latency=2500us,rate=500MB/s", "latency=2500us,rate=500MB/s"),
            ("rate=125MiB/s,latency=1ms", "latency=1ms,rate=125MiB/s"),
            (
                "iops=300,burst_iops=3000,credit=5400io",
                "latency=0us,iops=300,burst_iops=3000,credit=5400io",
            ),
            ("rate=1GB/s,credit=10GB", "latency=0us,rate=1GB/s,credit=10GB"),
            ("latency=1.5us", "latency=1500ns"),
            ("gp3,latency=2ms", "latency=2ms,rate=125MiB/s,iops=3000,io_size=256KiB"),
        ] {
            let profile: Profile = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(profile.to_string(), shown);
            assert_eq!(shown.parse(), Ok(profile));
        }
    }

    #[test]
    fn known_disks_are_valid() {
        for disk in KNOWN_DISKS {
            let profile: Profile = disk.name.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(profile.to_string().parse(), Ok(profile), "{}", disk.name);
            assert!(disk.source.starts_with("https://"), "{}", disk.name);
        }
    }

    #[test]
    fn invalid_profiles_say_what_is_expected() {
        for (text, message) in [
            ("", "unknown disk \"\""),
            ("gp9", "unknown disk \"gp9\", expected one of gp3,"),
            ("latency=5", "invalid value for latency: \"5\", expected a time"),
            ("latency=61s", "invalid value for latency: \"61s\""),
            ("latency=-1ms", "invalid value for latency: \"-1ms\""),
            ("rate=500MB", "invalid value for rate: \"500MB\", expected a size per second"),
            ("rate=0MB/s", "invalid value for rate"),
            ("iops=0", "invalid value for iops"),
            ("iops=1.5", "invalid value for iops"),
            ("latency=1ms,latency=2ms", "latency is given twice"),
            ("iops=10,credit=5io,credit=6io", "credit of I/Os is given twice"),
            ("latency=1ms,credit=5io", "a credit of I/Os has no effect without iops"),
            ("latency=1ms,burst_rate=1GB/s", "burst_rate has no effect without rate"),
            ("iops=10,burst_iops=20", "burst_iops has no effect without a credit of I/Os"),
            ("iops=10,burst_iops=10,credit=1io", "burst_iops must be larger than iops"),
            ("latency=1ms,io_size=4KiB", "io_size has no effect without iops"),
            ("latency=0ms", "a profile needs a latency, a rate or iops"),
            ("latency=1ms,speed=5", "unknown key \"speed\""),
            ("latency=1ms,gp3", "unknown disk \"gp3\""),
            ("credit=5", "invalid value for credit"),
        ] {
            let error = text.parse::<Profile>().expect_err(text).to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}
