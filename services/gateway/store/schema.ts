import type { EarlyDatabase } from '../../store/database.js'
import { FIRST } from '../accounts/accounts.js'

export const INDEX_FILE = 'index.db'

/**
 * The index. Keys are BLOBs: they sort in the order of UTF-8 bytes, and NUL is a byte like any other. `objects` is
 * clustered by key, so a page of a listing is one contiguous range. `body_at` says where a body is stored: 0 in the
 * `Bodies` of the gateway, by `body_name`, or by the generation if that is null; 1 in `bodies`, a table of its own that
 * keeps that range short; 2 in deals only, from which it can be restored, under another name. `retained` names bodies
 * without an object that a pending deal still reads; their bytes count for the `account` that owned the bucket, which
 * may be gone. `fence` and `write_id` are those of the last write to the key. `removed` holds them for keys without an
 * object, except for fences that `fence_floor` covers, which has a row per account. `owner` is the account of a bucket.
 * `object_records` holds what clients keep with an object, by its generation: a table of its own, for the sake of that
 * range. `body_mark` is what a store knows a body by; null for a file. `body_folder` has the name of the folder of the
 * store that is of this index alone, and the claim of it (ClaimRecord). `bucket_changes` has what the numbers of a
 * bucket have grown by since they were folded.
 */
export const objectSchema = `
  CREATE TABLE IF NOT EXISTS buckets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    created TEXT NOT NULL,
    changed TEXT NOT NULL,
    objects INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    owner INTEGER NOT NULL DEFAULT ${FIRST}
  ) STRICT;
  CREATE INDEX IF NOT EXISTS buckets_of_owner ON buckets (owner, name);
  CREATE TABLE IF NOT EXISTS bucket_changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    bucket INTEGER NOT NULL,
    objects INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS changes_of_bucket ON bucket_changes (bucket);
  CREATE TABLE IF NOT EXISTS objects (
    bucket INTEGER NOT NULL,
    key BLOB NOT NULL,
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
    PRIMARY KEY (bucket, key)
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX IF NOT EXISTS object_files ON objects (generation) WHERE body_at = 0;
  CREATE INDEX IF NOT EXISTS objects_in_store ON objects (bucket) WHERE body_mark IS NOT NULL;
  CREATE TABLE IF NOT EXISTS body_folder (
    name TEXT NOT NULL,
    run TEXT NOT NULL DEFAULT '',
    orphans_from INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE IF NOT EXISTS bodies (
    generation TEXT PRIMARY KEY,
    body BLOB NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS retained (
    generation TEXT PRIMARY KEY,
    bucket INTEGER NOT NULL,
    body_at INTEGER NOT NULL,
    account INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    body_name TEXT,
    body_mark TEXT
  ) STRICT;
  CREATE INDEX IF NOT EXISTS retained_of_bucket ON retained (bucket, generation);
  CREATE TABLE IF NOT EXISTS removed (
    bucket INTEGER NOT NULL,
    key BLOB NOT NULL,
    fence INTEGER NOT NULL,
    write_id TEXT,
    PRIMARY KEY (bucket, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS removed_by_fence ON removed (fence);
  CREATE TABLE IF NOT EXISTS fence_floor (
    id INTEGER PRIMARY KEY, -- of the account
    fence INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS object_records (
    generation TEXT PRIMARY KEY,
    record TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS state_epochs (
    epoch TEXT NOT NULL,
    account INTEGER NOT NULL DEFAULT ${FIRST},
    mark INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account, epoch)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS policies (
    bucket INTEGER NOT NULL,
    prefix BLOB NOT NULL,
    policy TEXT NOT NULL,
    PRIMARY KEY (bucket, prefix)
  ) STRICT, WITHOUT ROWID;
`

/**
 * What several processes must know of one another. `holds` says whose bodies a deal in the making reads: those of the
 * files of `deal`, or all of the bucket (0); the rows of one `hold` end together. `run` names the process at work (see
 * `Run`), and `progress` is what it says of it. `doomed` names bodies without a row that others may still read, by the
 * time (ms since 1970) at which they became so. `late_orders` has the orders of uploads that another process receives;
 * `expected` is '' when no object may exist.
 */
export const sharingSchema = `
  CREATE TABLE holds (
    hold TEXT NOT NULL,
    deal INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    run TEXT NOT NULL,
    PRIMARY KEY (hold, deal)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX holds_of_bucket ON holds (bucket);
  CREATE TABLE doomed (
    name TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    mark TEXT,
    since INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX doomed_by_age ON doomed (since);
  CREATE TABLE late_orders (
    account INTEGER NOT NULL,
    write_id TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    key BLOB NOT NULL,
    fence INTEGER NOT NULL,
    expected TEXT,
    since INTEGER NOT NULL,
    PRIMARY KEY (account, write_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX late_orders_by_age ON late_orders (account, since);
  CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
  ) STRICT;
  ALTER TABLE deals ADD COLUMN run TEXT;
  ALTER TABLE deals ADD COLUMN progress TEXT;
  ALTER TABLE offline_tasks ADD COLUMN run TEXT;
  ALTER TABLE offline_tasks ADD COLUMN progress TEXT;
`

/** Most bytes and objects that a bucket may have, with all versions; NULL: no bound. */
export const bucketQuotaSchema = `
  ALTER TABLE buckets ADD COLUMN quota_bytes INTEGER;
  ALTER TABLE buckets ADD COLUMN quota_objects INTEGER;
`

/**
 * The checksum that the writer of an object has verified, as its algorithm and its value in Base64: `CRC64NVME kFL6…`.
 * Null: the writer has stated none.
 */
export const checksumSchema = `
  ALTER TABLE objects ADD COLUMN checksum TEXT;
  ALTER TABLE versions ADD COLUMN checksum TEXT;
`

/**
 * What is in a bucket, wherever the bytes are: current objects and their bytes, delete markers, and the bytes of
 * versions that are not current. `objects` has the number of all three, and `bytes` what is here. One pass over each
 * table counts what there is.
 */
export const numbersSchema = `
  ALTER TABLE buckets ADD COLUMN current_objects INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE buckets ADD COLUMN current_bytes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE buckets ADD COLUMN markers INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE buckets ADD COLUMN version_bytes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE bucket_changes ADD COLUMN current_objects INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE bucket_changes ADD COLUMN current_bytes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE bucket_changes ADD COLUMN markers INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE bucket_changes ADD COLUMN version_bytes INTEGER NOT NULL DEFAULT 0;
  UPDATE buckets SET current_objects = found.number, current_bytes = found.bytes
    FROM (SELECT bucket, count(*) AS number, sum(size) AS bytes FROM objects GROUP BY bucket) AS found
    WHERE found.bucket = buckets.id;
  UPDATE buckets SET markers = found.markers, version_bytes = found.bytes
    FROM (SELECT bucket, sum(marker) AS markers, sum(size) AS bytes FROM versions GROUP BY bucket) AS found
    WHERE found.bucket = buckets.id;
`

/**
 * Adapts earlier schemas: `body_at` was the flag `inline`, rows had no fences, and everything belonged to one account.
 */
export function adaptObjects(db: EarlyDatabase): void {
  const columns = db.columns('objects')
  if (columns.length === 0) return
  if (columns.includes('inline')) db.exec('ALTER TABLE objects RENAME COLUMN inline TO body_at')
  if (!columns.includes('fence')) {
    db.exec(
      'ALTER TABLE objects ADD COLUMN fence INTEGER NOT NULL DEFAULT 0; ALTER TABLE objects ADD COLUMN write_id TEXT',
    )
  }
  const add = (table: string, column: string, type: string) => {
    const present = db.columns(table)
    if (present.length > 0 && !present.includes(column)) db.exec(`ALTER TABLE ${table} ADD COLUMN ${column} ${type}`)
  }
  add('objects', 'body_name', 'TEXT')
  add('objects', 'body_mark', 'TEXT')
  add('body_folder', 'run', "TEXT NOT NULL DEFAULT ''")
  add('body_folder', 'orphans_from', 'INTEGER NOT NULL DEFAULT 0')
  add('buckets', 'owner', `INTEGER NOT NULL DEFAULT ${FIRST}`)
  add('retained', 'account', 'INTEGER NOT NULL DEFAULT 0')
  add('retained', 'bytes', 'INTEGER NOT NULL DEFAULT 0')
  add('retained', 'body_name', 'TEXT')
  add('retained', 'body_mark', 'TEXT')
  add('quotas', 'uploads', 'INTEGER')
  const epochs = db.columns('state_epochs')
  if (epochs.length > 0 && !epochs.includes('account')) db.exec(EPOCHS_WITH_ACCOUNT)
  add('state_epochs', 'mark', 'INTEGER NOT NULL DEFAULT 0')
}

const EPOCHS_WITH_ACCOUNT = `
  ALTER TABLE state_epochs RENAME TO state_epochs_before;
  CREATE TABLE state_epochs (
    epoch TEXT NOT NULL,
    account INTEGER NOT NULL DEFAULT ${FIRST},
    PRIMARY KEY (account, epoch)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO state_epochs (epoch) SELECT epoch FROM state_epochs_before;
  DROP TABLE state_epochs_before;
`

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
