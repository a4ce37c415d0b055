//! Base types of extensions, such as `citext`. If their output function is one of the server's own,
//! we print them as the server does; otherwise, we refuse them.

use crate::binary::run;
use crate::server::{Server, servers};

/// `big` and `func` show that the function decides, not the storage: a `func` has the bytes of an
/// `oid`. A `wrong` would need values of eight bytes, so even a server can only store nulls.
const OBJECTS: &str = "
create extension citext;
create extension hstore;
create type big;
create function big_in(cstring) returns big language internal immutable strict as 'int8in';
create function big_out(big) returns cstring language internal immutable strict as 'int8out';
create type big (input = big_in, output = big_out, like = int8);
create type func;
create function func_in(cstring) returns func language internal stable strict as 'regprocin';
create function func_out(func) returns cstring language internal stable strict as 'regprocout';
create type func (input = func_in, output = func_out, like = oid);
create type wrong;
create function wrong_in(cstring) returns wrong language internal immutable strict as 'int4in';
create function wrong_out(wrong) returns cstring language internal immutable strict as 'int8out';
create type wrong (input = wrong_in, output = wrong_out, like = int4);
create domain name_of as citext;
create type pair as (c citext, b big);
create table own (i int, c citext, a citext[], n name_of, b big, p pair, w func);
insert into own values
  (1, 'Tab\t', array['One', 'two \"', null]::citext[], 'Name', '-9223372036854775808',
   row('a,b', '7'), 'int4out'),
  (2, '', '{}', null, null, null, null),
  (3, repeat('Long', 5000), null, 'x', '0', row(null, null), 'array_out');
create unique index on own (c);
create table refused (i int, h hstore, x wrong);
insert into refused values (1, 'a=>1', null);
";

#[test]
fn types_with_an_output_function_of_the_server_are_printed() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.script("postgres", OBJECTS, false);
        let expected = server.sql("postgres", "copy own to stdout");
        let expected = String::from_utf8(expected).expect("text");
        let stopped = server.stop();
        let data = stopped.data();
        let copied = run(&data, &["copy", "-d", "postgres", "public.own"]);
        assert_eq!(copied, (0, expected, String::new()));
        // The values are checked too.
        let verified = run(&data, &["verify", "-d", "postgres", "public.own", "--rows"]);
        assert_eq!((verified.0, verified.2.as_str()), (0, ""), "{}", verified.1);
        for column in ["h", "x"] {
            let args = ["copy", "-d", "postgres", "public.refused", "--columns", column];
            let (code, out, err) = run(&data, &args);
            assert_eq!((code, out.as_str()), (2, ""), "{err}");
            assert!(err.contains("only the extension that defines it can print it"), "{err}");
        }
    }
}
