//! **Backup rounds** of the crash soak: base backups that are made under load, read as of restore points.
//!
//! ```text
//! stream/    pg_basebackup with the log of the backup: read as of its end
//! backup/    without a log: read with the archive, as of restore points behind its end
//! restored/  a copy of one of them, which a server recovers to the same moment
//! ```
//! A server without `pg_basebackup` is copied between `pg_backup_start` and `pg_backup_stop`.

use super::cluster::Cluster;
use super::compare::{self, Compared, Reader};
use super::random::Random;
use crate::failure::Failure;
use std::path::Path;

/// Settings of the server that is backed up.
pub(super) fn settings(cluster: &Cluster) -> String {
    let home = cluster.home.display();
    format!(
        "wal_level = replica\nmax_wal_senders = 4\nwal_keep_size = '1GB'\narchive_mode = on\n\
         archive_command = 'cp %p {home}/archive/.new && mv {home}/archive/.new {home}/archive/%f'\n"
    )
}

/// Makes both backups and the restore points while the sessions run. Returns the names of the points.
pub(super) fn make(
    cluster: &Cluster,
    random: &mut Random,
    round: u64,
) -> Result<Vec<String>, Failure> {
    cluster.run("rm -rf stream backup && mkdir stream backup")?;
    for name in ["stream", "backup"] {
        make_one(cluster, name)?;
    }
    let mut points = Vec::new();
    for number in 0..random.below(3) + 1 {
        let name = format!("point_{round}_{number}");
        // The sessions go on between the points.
        cluster.run(&format!("sleep 0.{}", random.below(10)))?;
        cluster.sql("postgres", &format!("select pg_create_restore_point('{name}')"))?;
        points.push(name);
    }
    Ok(points)
}

/// Makes one backup, in an empty directory of the home. `stream` contains its log.
pub(super) fn make_one(cluster: &Cluster, name: &str) -> Result<(), Failure> {
    if !cluster.has("pg_basebackup") {
        return copy(cluster, name);
    }
    let home = cluster.home.display();
    let method = if name == "stream" { "stream" } else { "none" };
    cluster.run(&format!(
        "{} -h {home} -U postgres -D {name}/data -X {method} -c fast --no-sync -T {home}/space={home}/{name}/space",
        cluster.program("pg_basebackup")
    ))?;
    Ok(())
}

/// Copies the directory while the server runs, with the log of the backup for `stream`.
fn copy(cluster: &Cluster, name: &str) -> Result<(), Failure> {
    // Files disappear during the copy, which is no failure.
    let log = if name == "stream" { "\\! cp data/pg_wal/0* stream/data/pg_wal/\n" } else { "" };
    cluster.sql(
        "postgres",
        &format!(
            "select pg_backup_start('{name}', true);\n\
             \\! cp -a data space {name}/ 2>/dev/null; rm -rf {name}/data/postmaster.* {name}/data/pg_wal/*\n\
             \\o {name}/data/backup_label\n\
             select trim(trailing E'\\n' from labelfile) from pg_backup_stop(false);\n\\o\n{log}"
        ),
    )?;
    cluster.relink(name)
}

/// Compares both backups with a server that recovers them. The cluster's own server is stopped.
pub(super) fn check(
    cluster: &mut Cluster,
    program: &Path,
    (random, points): (&mut Random, &[String]),
) -> Result<Compared, Failure> {
    complete_archive(cluster)?;
    let reader = Reader { program, copy: "stream", options: String::new() };
    let mut compared = recovered(cluster, &reader, ("", "stream"), "")?;
    compared.add(check_points(cluster, program, (random, points))?);
    let archive = cluster.home.join("archive").display().to_string();
    let reader = Reader { program, copy: "backup", options: format!("--wal {archive}") };
    let settings = format!("restore_command = 'cp {archive}/%f %p'\n");
    compared.add(recovered(cluster, &reader, ("end of the archive", "backup"), &settings)?);
    Ok(compared)
}

/// Copies segments that were not archived, such as the last one, which isn't finished.
pub(super) fn complete_archive(cluster: &Cluster) -> Result<(), Failure> {
    let script =
        "for file in data/pg_wal/0*; do test -f archive/${file##*/} || cp $file archive/; done";
    cluster.run(script)?;
    Ok(())
}

/// Compares `backup` as of each restore point with a server that recovers it up to that point.
pub(super) fn check_points(
    cluster: &mut Cluster,
    program: &Path,
    (random, points): (&mut Random, &[String]),
) -> Result<Compared, Failure> {
    let mut compared = Compared::default();
    let archive = cluster.home.join("archive").display().to_string();
    for point in points {
        let options = format!("--wal {archive} --until name:{point}");
        let reader = Reader { program, copy: "backup", options };
        let action = random.pick(&["pause", "promote"]);
        let settings = format!(
            "restore_command = 'cp {archive}/%f %p'\nrecovery_target_name = '{point}'\n\
             recovery_target_action = {action}\nhot_standby = on\n"
        );
        compared.add(recovered(cluster, &reader, (point, "backup"), &settings)?);
    }
    Ok(compared)
}

/// Lets a server recover a copy of a backup, and compares. `settings` are those of the recovery; without them, the
/// log of the backup itself is recovered.
fn recovered(
    cluster: &mut Cluster,
    reader: &Reader<'_>,
    (moment, name): (&str, &str),
    settings: &str,
) -> Result<Compared, Failure> {
    cluster.run(&format!("rm -rf restored && cp -a {name} restored"))?;
    cluster.relink("restored")?;
    let mut text = String::from("wal_level = replica\nautovacuum = off\n");
    if !settings.is_empty() {
        cluster.run("touch restored/data/recovery.signal")?;
        text.push_str(settings);
    }
    let before = cluster.fingerprint(name)?;
    cluster.start("restored/data", &text)?;
    // Recovery has reached its target if it is paused, or if it is over.
    let state = "select case when pg_is_in_recovery() then pg_get_wal_replay_pause_state() else 'paused' end";
    while cluster.sql("postgres", state)?.trim() != "paused" {
        cluster.run("sleep 0.05")?;
    }
    let mut compared = match compare::compare(cluster, reader) {
        // While recovery is paused, transactions that are running at its target still hold their locks. They are
        // aborted, and the rows are the same, as soon as the target action is over.
        Err(failure) if failure.to_string().contains("lock timeout") => {
            cluster.sql("postgres", "select pg_wal_replay_resume()")?;
            while cluster.sql("postgres", "select pg_is_in_recovery()")?.trim() == "t" {
                cluster.run("sleep 0.05")?;
            }
            compare::compare(cluster, reader)?
        }
        compared => compared?,
    };
    cluster.stop("restored/data", "immediate")?;
    if cluster.fingerprint(name)? != before {
        compared.differences.push(format!("the files of {name} have changed"));
    }
    for text in &mut compared.differences {
        *text = format!("{name} {moment}: {text}");
    }
    Ok(compared)
}
