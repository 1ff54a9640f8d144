-- Tables, indexes, joins, windows, JSON, full text, blobs, deletes and VACUUM; nothing random.
PRAGMA page_size = 4096;
PRAGMA cache_size = -8000;
CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL, size INTEGER, data BLOB);
WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 150000)
INSERT INTO item
SELECT n, printf('item-%06x', (n * 2654435761) % 16777213), (n * 48271) % 1009,
       CASE WHEN n % 10 = 0 THEN zeroblob(n % 3000) ELSE printf('%.*c', n % 80, 'x') END FROM number;
CREATE INDEX item_name ON item (name);
CREATE INDEX item_size ON item (size, length(data));
CREATE TABLE link (a INTEGER, b INTEGER, weight REAL);
INSERT INTO link SELECT id, (id * 7919) % 150000 + 1, size / 3.0 FROM item WHERE id % 3 = 0;
CREATE INDEX link_b ON link (b);
SELECT count(*), sum(size), min(name), max(name), total(length(data)) FROM item;
SELECT i.size % 17 AS bucket, count(*), round(avg(l.weight), 6), max(j.name)
  FROM link l JOIN item i ON i.id = l.a JOIN item j ON j.id = l.b GROUP BY bucket ORDER BY bucket;
SELECT size, group_concat(name, ',') FROM (SELECT * FROM item WHERE id <= 40000 ORDER BY name) GROUP BY size ORDER BY size LIMIT 60;
SELECT id, rank, running FROM (
  SELECT id, rank() OVER (PARTITION BY size ORDER BY name) AS rank, sum(length(data)) OVER (ORDER BY id ROWS 500 PRECEDING) AS running
  FROM item) WHERE id % 997 = 0;
SELECT json_group_array(json_object('id', id, 'name', name)) FROM item WHERE id % 301 = 0;
SELECT count(*), sum(json_extract(value, '$.n') * 2) FROM (
  SELECT json_object('n', id, 'list', json_array(id, size, name)) AS value FROM item WHERE id <= 30000);
CREATE VIRTUAL TABLE words USING fts5(body);
INSERT INTO words SELECT name || ' ' || replace(name, '-', ' of ') || ' size ' || size FROM item WHERE id <= 20000;
SELECT count(*), min(rowid), max(rowid) FROM words WHERE words MATCH 'item AND size NOT 5';
SELECT rowid, highlight(words, 0, '[', ']') FROM words WHERE words MATCH '"size 77"' ORDER BY rowid LIMIT 20;
DELETE FROM item WHERE id % 4 = 1;
UPDATE item SET data = x'00ff' || name, size = size + 1 WHERE id % 5 = 2;
SAVEPOINT change;
UPDATE link SET weight = weight * 2;
ROLLBACK TO change;
RELEASE change;
VACUUM;
PRAGMA integrity_check;
SELECT name, hex(substr(data, 1, 8)), size FROM item WHERE id % 211 = 0 ORDER BY name DESC LIMIT 400;
