//! The state of a cluster, as its control file records it.

use std::fmt;

/// `DBState`: the state of the cluster when the control file was last updated. The data files are
/// complete only if the state is [`Self::ShutDown`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ClusterState {
    /// Starting up (0).
    StartingUp,
    /// Shut down cleanly (1).
    ShutDown,
    /// A standby that was shut down cleanly (2). Its data files contain only the changes up to the
    /// last restartpoint, so we would still have to replay WAL to bring them up to date.
    ShutDownInRecovery,
    /// Writing the shutdown checkpoint (3).
    ShuttingDown,
    /// Replaying WAL after a crash (4).
    InCrashRecovery,
    /// Replaying WAL from an archive or a primary (5).
    InArchiveRecovery,
    /// The server is running, or it crashed, or the files were copied while it was running (6). We
    /// can't distinguish these cases, because a running server does not change the state until it
    /// is shut down cleanly.
    InProduction,
    /// An undefined state number.
    Unrecognized(u32),
}

impl ClusterState {
    /// The states by number, in the wording of `pg_controldata`.
    const KNOWN: [(Self, &'static str); 7] = [
        (Self::StartingUp, "starting up"),
        (Self::ShutDown, "shut down"),
        (Self::ShutDownInRecovery, "shut down in recovery"),
        (Self::ShuttingDown, "shutting down"),
        (Self::InCrashRecovery, "in crash recovery"),
        (Self::InArchiveRecovery, "in archive recovery"),
        (Self::InProduction, "in production"),
    ];

    pub(super) fn from_bits(bits: u32) -> Self {
        Self::KNOWN.get(bits as usize).map_or(Self::Unrecognized(bits), |&(state, _)| state)
    }

    pub(super) fn to_bits(self) -> u32 {
        match self {
            Self::Unrecognized(bits) => bits,
            known => Self::KNOWN.iter().take_while(|(state, _)| *state != known).count() as u32,
        }
    }
}

/// The wording of `pg_controldata`.
impl fmt::Display for ClusterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Self::KNOWN.iter().find(|(state, _)| state == self);
        f.pad(known.map_or("unrecognized status code", |(_, name)| name))
    }
}
