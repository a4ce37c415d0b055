//! Functions and relations that directories lack, by name and by OID.

use trunkline_sql::SqlState;

use crate::answers::versions;
use crate::cluster::open;
use crate::queries::rows;

#[test]
fn a_function_of_the_overlay_is_found_and_sees_the_server() {
    for (_, directory) in versions() {
        let context = open(&directory.join("../../data"), "shop");
        let query = |sql: &str| rows(&context, sql).map(Option::unwrap_or_default);
        // The catalog's own table has a known name in every directory.
        let relation = context.database.resolve(b"pg_catalog.pg_class").expect("pg_class");
        let files = context.database.files(relation).expect("files");
        let blocks = files.blocks().expect("a length").to_string();
        for call in [
            "pg_prewarm('pg_class')",
            "pg_catalog.pg_prewarm('pg_class', 'buffer')",
            "pg_prewarm('pg_class', 'read', 'main')",
            "pg_prewarm('pg_class', 'prefetch', 'main', null, null)",
        ] {
            assert_eq!(query(&format!("select {call}")), Ok(vec![blocks.clone()]), "{call}");
        }
        let error = query("select pg_prewarm('pg_views')").expect_err("a view");
        assert_eq!(error.code(), SqlState::WRONG_OBJECT_TYPE);
        assert_eq!(error.message(), "relation \"pg_views\" does not have storage");
        let error = query("select public.pg_prewarm('pg_class')").expect_err("another schema");
        assert_eq!(error.code(), SqlState::UNDEFINED_FUNCTION);
        assert_eq!(context.engine.pool().permits(), 0);
    }
}

#[test]
fn a_relation_of_the_overlay_has_an_oid_unless_it_is_stored() {
    for (major, directory) in versions() {
        let context = open(&directory.join("../../data"), "shop");
        let oid = |name: &str| {
            let sql = format!("select '{name}'::regclass::oid");
            let found = rows(&context, &sql).map(Option::unwrap_or_default);
            found.expect("an OID").concat()
        };
        assert_eq!(oid("pg_buffercache"), "9802");
        assert_eq!(oid("pg_aios") == "9800", major < 18);
        assert_eq!(oid("pg_stat_io") == "9801", major < 16);
    }
}

#[test]
fn relations_of_the_overlay_are_queried_like_others() {
    for (major, directory) in versions() {
        let context = open(&directory.join("../../data"), "shop");
        let query = |sql: &str| {
            let found = rows(&context, sql).map(Option::unwrap_or_default);
            found.unwrap_or_else(|error| panic!("{major}: {sql}: {error}"))
        };
        query("select * from pg_buffercache_evict_relation('pg_class')");
        let blocks = query("select pg_prewarm('pg_class')").concat();
        let in_pool = "select count(*) from pg_buffercache b, pg_database d \
                       where d.datname = 'shop' and b.reldatabase = d.oid \
                       and b.relblocknumber >= 0 and b.relforknumber = 0";
        assert_ne!(query(in_pool), ["0"]);
        let sql = "select pool_blocks from trunkline_residency \
                   where relid = 'pg_class'::regclass and fork = 'main'";
        assert_eq!(query(sql), [blocks]);
        let sql = "select buffers_evicted > 0, buffers_flushed, buffers_skipped \
                   from pg_buffercache_evict_relation('pg_class')";
        assert_eq!(query(sql), ["t\t0\t0"]);
        // In a select list, the row is a value.
        query("select pg_prewarm('pg_class')");
        let found = query("select pg_buffercache_evict_relation('pg_class')").concat();
        assert!(
            found.starts_with('(') && found.ends_with(",0,0)") && found != "(0,0,0)",
            "{found}"
        );
        assert_eq!(query("select pg_buffercache_evict_relation('pg_class')"), ["(0,0,0)"]);
        let sql = "select (pg_buffercache_evict_relation(x)).buffers_evicted \
                   from (values ('pg_class'::regclass), (null)) v(x)";
        assert_eq!(query(sql), ["0", "\\N"]);
        // As in the thread that introduced the function, with fewer blocks.
        let sql = "select count(*), min(blockoff), max(blockoff), count(distinct blocknum) \
                   from read_stream_for_blocks('pg_class', array[0, 1, 2, 1, 2, 3, 2, 3, 4])";
        assert_eq!(query(sql), ["9\t0\t8\t5"]);
        let sql = "select blockoff, blocknum from read_stream_for_blocks('pg_class', '{2,0,2}')";
        assert_eq!(query(sql), ["0\t2", "1\t0", "2\t2"]);
        assert_eq!(query("select count(*) from pg_get_aios()"), ["0"]);
        let sql = "select count(*) from pg_stat_get_io() where reads > 0 and context = 'normal'";
        assert_ne!(query(sql), ["0"]);
        assert_eq!(query("select count(*) > 0 from trunkline_io_histogram"), ["t"]);
        assert_eq!(query("select sum(buffers) from pg_buffercache_usage_counts()"), ["256"]);
        let sql = "select buffers_used + buffers_unused from pg_buffercache_summary()";
        assert_eq!(query(sql), ["256"]);
        if major < 18 {
            assert_eq!(query("select a.state from pg_aios a where a.pid = 0"), [""; 0]);
        }
        assert_eq!(context.engine.pool().permits(), 0);
    }
}
