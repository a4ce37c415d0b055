//! **Known disks**: profiles of disks whose vendor publishes their limits.
//!
//! The limits are the vendor's. None of them publishes an exact latency, only "single-digit
//! milliseconds" or "less than 1 ms", so ours is 1 ms for all of them. Add `latency=...` to use what
//! was measured on a disk.
//!
//! Some disks are left out on purpose:
//!
//! - Hard disks, because a seek takes longer than a sequential read, and our service time is fixed.
//! - Disks with provisioned IOPS (io1, io2, Hyperdisk, Ultra Disk), because each has its own limits;
//!   give them as values.
//! - Google's Persistent Disks, because their limits depend on the size of the disk and on the
//!   machine type together.
//! - Local NVMe drives: their latency of less than 0.1 ms is below what FUSE itself adds.

/// A disk with published limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownDisk {
    /// The name in a profile.
    pub name: &'static str,
    /// What it is.
    pub description: &'static str,
    /// The values of the profile.
    pub values: &'static str,
    /// Where the limits are published.
    pub source: &'static str,
}

/// The known disks, in the order in which they are listed.
pub const KNOWN_DISKS: &[KnownDisk] = &[
    KnownDisk {
        name: "gp3",
        description: "Amazon EBS gp3 as delivered: 3,000 IOPS, 125 MiB/s, no burst",
        values: "latency=1ms,rate=125MiB/s,iops=3000,io_size=256KiB",
        source: EBS_GENERAL_PURPOSE,
    },
    KnownDisk {
        name: "gp2-100",
        description: "Amazon EBS gp2 of 100 GiB: 300 IOPS, 3,000 while its credit lasts, 128 MiB/s",
        values: "latency=1ms,rate=128MiB/s,iops=300,burst_iops=3000,credit=5400000io,io_size=256KiB",
        source: EBS_GENERAL_PURPOSE,
    },
    KnownDisk {
        name: "azure-p10",
        description: "Azure Premium SSD P10 (128 GiB): 500 IOPS and 100 MB/s, 3,500 and 170 MB/s for 30 min",
        values: "latency=1ms,rate=100MB/s,burst_rate=170MB/s,credit=126GB,\
                 iops=500,burst_iops=3500,credit=5400000io,io_size=256KiB",
        source: AZURE_DISK_TYPES,
    },
    KnownDisk {
        name: "azure-p30",
        description: "Azure Premium SSD P30 (1 TiB): 5,000 IOPS, 200 MB/s",
        values: "latency=1ms,rate=200MB/s,iops=5000,io_size=256KiB",
        source: AZURE_DISK_TYPES,
    },
    KnownDisk {
        name: "azure-premium-v2",
        description: "Azure Premium SSD v2 as delivered: 3,000 IOPS, 125 MB/s",
        values: "latency=1ms,rate=125MB/s,iops=3000",
        source: AZURE_DISK_TYPES,
    },
];

const EBS_GENERAL_PURPOSE: &str =
    "https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html";

/// The page about bursts that it links to says that a full credit lasts 30 minutes at the burst
/// rate. From this we compute the credit: (3,500 - 500) IOPS and (170 - 100) MB/s for 1,800 s.
const AZURE_DISK_TYPES: &str =
    "https://learn.microsoft.com/en-us/azure/virtual-machines/disks-types";

/// The known disk with this name.
pub(crate) fn find(name: &str) -> Option<&'static KnownDisk> {
    KNOWN_DISKS.iter().find(|disk| disk.name == name)
}

/// The names of all known disks.
pub(crate) fn names() -> String {
    KNOWN_DISKS.iter().map(|disk| disk.name).collect::<Vec<_>>().join(", ")
}
