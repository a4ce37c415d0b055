//! **Long history** (`soak until`): a backup and a million transactions behind it, read as of ten restore points
//! that were created while the transactions ran. Every row must be what a server has after it has recovered the
//! backup to that point.
//!
//! The transactions run inside of a procedure, so their number isn't limited by messages between a client and the
//! server.

use std::path::Path;
use std::thread;

use super::arguments::{each_server, number_and_bins, program};
use super::cluster::Cluster;
use super::compare::Compared;
use super::random::Random;
use super::{backup, load};
use crate::failure::Failure;
use crate::tree::Checkout;

/// Number of transactions, if the command line has none.
const TRANSACTIONS: u64 = 1_000_000;

/// Number of restore points.
const POINTS: u64 = 10;

/// Number of sessions that execute transactions at the same time.
const SESSIONS: u64 = 4;

/// Tables, and the procedure that changes them. Each round of its loop is a transaction. Of a hundred, one is
/// rolled back, and two contain a subtransaction that is.
const SETUP: &str = "
create table accounts (id int primary key, balance int, note text) with (fillfactor = 70);
insert into accounts select i, 0, md5(i::text) from generate_series(1, 50000) i;
create index on accounts (balance);
create table events (account int, delta int, note text);
create index on events (account);
create table large (id int primary key, body text);
alter table large alter body set storage external;
create procedure work(transactions int, seed float8) language plpgsql as $$
declare
  dice int;
  key int;
begin
  perform setseed(seed);
  for number in 1 .. transactions loop
    dice := floor(random() * 100);
    key := 1 + floor(random() * 50000);
    if dice < 50 then
      update accounts set balance = balance + dice where id = key;
    elsif dice < 75 then
      insert into events values (key, dice, repeat('e', dice));
    elsif dice < 85 then
      delete from accounts where id = key;
    elsif dice < 95 then
      insert into accounts values (key, dice, 'again') on conflict (id) do update set note = 'twice';
    elsif dice < 97 then
      insert into large values (key % 300, repeat(md5(key::text), 100))
        on conflict (id) do update set body = excluded.body;
    elsif dice < 99 then
      insert into events values (key, dice, 'outside');
      begin
        update accounts set note = 'undone' where id = key;
        raise exception 'undone';
      exception when others then
        null;
      end;
    else
      update accounts set note = 'rolled back' where id = key;
      rollback;
    end if;
    commit;
  end loop;
end $$;
";

/// Runs the test with each of the servers. The first argument may be the number of transactions.
pub(in crate::soak) fn run(checkout: &Checkout, args: &[&str]) -> Result<String, Failure> {
    let (transactions, bins) = arguments(args)
        .ok_or_else(|| Failure::usage("soak until: expected [TRANSACTIONS] BIN..."))?;
    let program = program(checkout)?;
    each_server(bins, |bin, seed| {
        let (text, compared) = server(&program, (bin, seed), transactions)?;
        let Compared { tables, rows, differences, .. } = compared;
        let count = format!("{text}, {tables} tables with {rows} rows compared");
        Ok(match differences.is_empty() {
            true => (count, false),
            false => (format!("{count}, different: {}", differences.join("; ")), true),
        })
    })
}

/// The number of transactions and the folders with servers, or `None` if there is no folder.
pub(in crate::soak) fn arguments<'a>(args: &'a [&'a str]) -> Option<(u64, &'a [&'a str])> {
    number_and_bins(args, TRANSACTIONS)
}

/// Returns what was done with one server, and what was compared.
fn server(
    program: &Path,
    (bin, seed): (&str, u64),
    transactions: u64,
) -> Result<(String, Compared), Failure> {
    let mut random = Random::part(seed, 0, 1);
    let name = format!("trunkline-until-{}-{seed}", std::process::id());
    let mut cluster = Cluster::create(bin, &name, &mut random)?;
    let version = cluster.version()?;
    let settings = backup::settings(&cluster)
        + "synchronous_commit = off\nautovacuum_naptime = '1s'\nwal_compression = pglz\n";
    cluster.start("data", &settings)?;
    cluster.sql("postgres", &format!("create database {}", load::DATABASE))?;
    cluster.sql(load::DATABASE, SETUP)?;
    cluster.run("mkdir backup")?;
    backup::make_one(&cluster, "backup")?;
    let points = under_load(&mut cluster, seed, transactions)?;
    let ended = cluster.sql("postgres", "select pg_current_wal_insert_lsn() - '0/0'")?;
    cluster.stop("data", "fast")?;
    backup::complete_archive(&cluster)?;
    let compared = backup::check_points(&mut cluster, program, (&mut random, &points))?;
    let megabytes = ended.trim().parse::<u64>().unwrap_or_default() >> 20;
    let text = format!(
        "{version}, seed {seed}: {transactions} transactions, log up to {megabytes} MB, {} restore points",
        points.len()
    );
    Ok((text, compared))
}

/// Executes the transactions, and creates the restore points at even distances. Returns their names.
fn under_load(cluster: &mut Cluster, seed: u64, transactions: u64) -> Result<Vec<String>, Failure> {
    let each = transactions / SESSIONS;
    let begun = newest_xid(cluster)?;
    let mut script = String::new();
    for session in 0..SESSIONS {
        let seed = Random::part(seed, 1, session).below(1000);
        script += &format!(
            "{} -c 'set statement_timeout = 0; set lock_timeout = 0' -c 'call work({each}, 0.{seed:03})' &\n\
             sessions=\"$sessions $!\"\n",
            cluster.psql(load::DATABASE)
        );
    }
    script += "for session in $sessions; do wait $session || exit 1; done\n";
    let sessions = cluster.invocation(&script);
    thread::scope(|scope| {
        let running = scope.spawn(move || sessions.capture());
        let mut points = Vec::new();
        for number in 1..=POINTS {
            // Nearly every transaction has an xid.
            let wanted = begun + transactions * number / (POINTS + 1);
            while newest_xid(cluster)? < wanted && !running.is_finished() {
                cluster.run("sleep 0.05")?;
            }
            let name = format!("point_{number}");
            cluster.sql("postgres", &format!("select pg_create_restore_point('{name}')"))?;
            points.push(name);
        }
        let outcome = running.join().map_err(|_| Failure::new("the load panicked"))??;
        match outcome.success() {
            true => Ok(points),
            false => Err(Failure::new(format!("the load failed: {}", outcome.text.trim()))),
        }
    })
}

fn newest_xid(cluster: &Cluster) -> Result<u64, Failure> {
    let text = cluster.sql("postgres", "select pg_snapshot_xmax(pg_current_snapshot())")?;
    let text = text.trim();
    text.parse().map_err(|_| Failure::new(format!("expected a transaction ID, found {text:?}")))
}
