/**
 * Versions of objects, and what locks them. `objects` has the current object of each key, and nothing of a key whose
 * newest version is a delete marker; `versions` has all other versions, and every marker. So the newest version of a
 * key is its row in `objects`, or else the first one here. `id` is a time, counted down, and random digits: the texts
 * sort from the newest to the oldest. It is also the id that clients know, unless `is_null` is 1: that version was
 * written while the bucket was not versioned, and its id is `null`, as of a row of `objects` without `version`. `since`
 * says when another version took its place (when a marker was made), and `fence` and `write_id` are those of the write
 * that stored it. A marker has a generation of its own and no body. Bodies, records and locks go by the generation, and
 * stay where they are when a version becomes another row.
 *
 * `versioning` of a bucket is null until it is enabled for the first time. `lock_rule` is null without object lock, and
 * else the retention of new objects, in JSON. `answer` is that of the last removal, for the case that it is repeated.
 * `object_locks` has a row for each version with a lock; `ends` is ms since 1970. `lock_clock` has the latest time that
 * was ever seen, in ms: no clock that is set back lets a lock begin earlier.
 */
export const versionSchema = `
  ALTER TABLE buckets ADD COLUMN versioning TEXT;
  ALTER TABLE buckets ADD COLUMN lock_rule TEXT;
  ALTER TABLE objects ADD COLUMN version TEXT;
  ALTER TABLE removed ADD COLUMN answer TEXT;
  CREATE TABLE versions (
    bucket INTEGER NOT NULL,
    key BLOB NOT NULL,
    id TEXT NOT NULL,
    is_null INTEGER NOT NULL DEFAULT 0,
    marker INTEGER NOT NULL DEFAULT 0,
    since TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified TEXT NOT NULL,
    generation TEXT NOT NULL,
    etag TEXT NOT NULL,
    content_type TEXT NOT NULL,
    headers TEXT,
    body_at INTEGER NOT NULL,
    fence INTEGER NOT NULL DEFAULT 0,
    write_id TEXT,
    body_name TEXT,
    body_mark TEXT,
    PRIMARY KEY (bucket, key, id)
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX versions_by_generation ON versions (generation);
  CREATE UNIQUE INDEX null_versions ON versions (bucket, key) WHERE is_null = 1;
  CREATE INDEX versions_by_write ON versions (bucket, key, write_id) WHERE write_id IS NOT NULL;
  CREATE INDEX versions_in_store ON versions (bucket) WHERE body_mark IS NOT NULL;
  CREATE TABLE object_locks (
    generation TEXT PRIMARY KEY,
    mode TEXT,
    ends INTEGER,
    hold INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE lock_clock (
    id INTEGER PRIMARY KEY,
    seen INTEGER NOT NULL
  ) STRICT;
`
