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
-- name: masks
select id, network(address), netmask(address), hostmask(address), broadcast(address), network::inet, address::cidr, set_masklen(address, 12), set_masklen(network, -1) from hosts order by id;
-- name: a mask that is too long
select set_masklen('10.0.0.1'::inet, 33);
-- name: abbreviated networks
select abbrev(n), abbrev(n::inet) from (values ('10.0.0.0/8'::cidr), ('10.1.0.0/16'), ('0.0.0.0/0'), ('192.168.1.128/25'), ('10.1.2.3'), ('::/0'), ('2001:db8::/32'), ('2001:db8:0:1::/64'), ('::1'), ('::ffff:1.2.3.4'), ('::1.2.3.0/120'), ('fe80::/10'), ('1:0:0:2:0:0:0:3'), ('ff00::/8')) v(n);
-- name: families
select inet_same_family('10.0.0.1', '::1'), inet_same_family('10.0.0.1', '10.0.0.2/8'), inet_merge('192.168.1.5/24', '192.168.2.5/24'), inet_merge('10.0.0.1', '10.0.0.1'), inet_merge('2001:db8::1', '2001:db8::2');
-- name: a merge of different families
select inet_merge('10.0.0.1', '::1');
-- name: networks within networks
select a.n, b.n, a.n << b.n, a.n <<= b.n, a.n >> b.n, a.n >>= b.n, a.n && b.n from (values (inet '10.0.0.1'), ('10.0.0.0/8'), ('10.1.0.0/16'), ('::1'), ('0.0.0.0/0')) a(n), (values (inet '10.0.0.0/8'), ('10.1.0.0/16'), ('192.168.0.0/16'), ('::/0')) b(n) order by a.n, b.n;
-- name: addresses as numbers
select inet '10.0.0.255' + 1, inet '10.0.1.0/24' - 1, 5 + inet '::1', inet '::ffff:ffff:ffff' + 1, inet '10.0.0.1' - inet '10.0.1.1', inet '10.0.1.1' - inet '10.0.0.1', inet '2001:db8::5' - inet '2001:db8::1', ~inet '10.0.0.1/24', inet '10.1.2.3' & '255.255.0.0', inet '10.1.2.3/8' | '0.0.255.255/16', ~inet '::1';
-- name: an address beyond the last one
select inet '255.255.255.255' + 1;
-- name: an address before the first one
select inet '0.0.0.0' - 1;
-- name: a distance that is too large
select inet '2001:db8::1' - inet '::1';
-- name: bits of addresses of different families
select inet '10.1.2.3' & '::1';
-- name: bits of hardware addresses
select ~card, card & 'ff:ff:ff:00:00:00', card | '00:00:00:ff:ff:ff', trunc(card), ~card8, card8 & 'ff:ff:ff:ff:00:00:00:00', card8 | '00:00:00:00:ff:ff:ff:ff', trunc(card8), macaddr8_set7bit(card8), card::macaddr8 from hosts order by id;
-- name: hardware addresses of six bytes
select '08:00:2b:ff:fe:01:02:03'::macaddr8::macaddr;
-- name: hardware addresses of eight bytes
select '08:00:2b:01:02:03:04:05'::macaddr8::macaddr;
-- name: parts of geometric values
select ('(1,2)'::point)[0], ('(1,2)'::point)[1], ('(1,2)'::point)[2], ('(1,2)'::point)[-1], ('(1,2)'::point)[null], ('(1,2),(3,4)'::box)[1], ('{1,2,3}'::line)[2], ('[(1,2),(3,4)]'::lseg)[0], ('(1,2)'::point)[0][0];
-- name: a slice of a point
select ('(1,2)'::point)[0:1];
