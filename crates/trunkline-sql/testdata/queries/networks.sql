-- name: every type
select * from hosts order by id;
-- name: parts of an address
select id, host(address), masklen(address), network(address), netmask(address), broadcast(address), family(address), abbrev(network), text(address) from hosts order by id;
-- name: containment
select id from hosts where address << '10.0.0.0/8' or network >>= '192.168.1.7' order by id;
-- name: arithmetic
select id, address + 10, address - inet '10.0.0.0', ~address, address & '255.255.0.0' from hosts where id <= 2 order by id;
-- name: group by network
select set_masklen(address, 16)::cidr as net, count(*) from customers where family(address) = 4 group by 1 order by 1 limit 8;
-- name: hardware addresses
select id, card, card8, trunc(card), card > '10:00:00:00:00:00', card::macaddr8 from hosts order by id;
-- name: bad address
select '300.1.2.3'::inet;
-- name: cidr with host bits
select '10.0.0.1/8'::cidr;
-- name: points and boxes
select id, place, place[0], area, area[0] from hosts order by id;
-- name: hosts and masks
select host('10.1.2.3/8'::inet), host('::1'), family('::1'), family('10.0.0.0/8'), masklen('10.1.2.3/8'), masklen('10.1.2.3'), text('10.1.2.3'::inet), '10.1.2.3'::inet::text, text('10.0.0.0/8'::cidr), host(null);
-- name: hosts of other addresses
select text('::ffff:1.2.3.4'::inet), host('fe80::1/64'), family(null);
