-- The index of the gateway as it was released: it does not change.
CREATE TABLE accounts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  access_key TEXT NOT NULL UNIQUE,
  secret_key TEXT NOT NULL,
  canonical_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  iam INTEGER NOT NULL,
  created TEXT NOT NULL,
  configured TEXT,
  user TEXT UNIQUE
) STRICT;
CREATE TABLE bodies (
  generation TEXT PRIMARY KEY,
  body BLOB NOT NULL
) STRICT;
CREATE TABLE buckets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  created TEXT NOT NULL,
  changed TEXT NOT NULL,
  objects INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0,
  owner INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE TABLE deal_files (
  deal INTEGER NOT NULL,
  key BLOB NOT NULL,
  generation TEXT NOT NULL,
  size INTEGER NOT NULL,
  etag TEXT NOT NULL,
  path TEXT,
  cid TEXT,
  PRIMARY KEY (deal, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE deals (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  reference TEXT NOT NULL UNIQUE,
  network TEXT NOT NULL,
  bucket INTEGER NOT NULL,
  bucket_name TEXT NOT NULL,
  key BLOB NOT NULL,
  token TEXT,
  terms TEXT NOT NULL,
  asked TEXT NOT NULL,
  files INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0,
  record TEXT,
  dropped INTEGER NOT NULL DEFAULT 0,
  ends INTEGER,
  account INTEGER NOT NULL DEFAULT 1,
  task INTEGER,
  UNIQUE (account, token)
) STRICT;
CREATE TABLE fence_floor (
  id INTEGER PRIMARY KEY, -- of the account
  fence INTEGER NOT NULL
) STRICT;
CREATE TABLE object_records (
  generation TEXT PRIMARY KEY,
  record TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE objects (
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
  PRIMARY KEY (bucket, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE offline_cars (
  deal INTEGER PRIMARY KEY,
  task INTEGER NOT NULL,
  secret TEXT NOT NULL UNIQUE,
  md5 TEXT NOT NULL,
  data_cid TEXT NOT NULL,
  piece_cid TEXT NOT NULL,
  piece_size INTEGER NOT NULL,
  car_size INTEGER NOT NULL,
  present INTEGER NOT NULL DEFAULT 1,
  platform_deal INTEGER,
  status TEXT,
  note TEXT,
  miner_id TEXT
) STRICT;
CREATE TABLE offline_tasks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid TEXT NOT NULL UNIQUE,
  account INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  bucket_name TEXT NOT NULL,
  prefix BLOB NOT NULL,
  token TEXT,
  form TEXT NOT NULL,
  asked TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'packing',
  file_name TEXT,
  message TEXT,
  task_status TEXT,
  UNIQUE (account, token)
) STRICT;
CREATE TABLE policies (
  bucket INTEGER NOT NULL,
  prefix BLOB NOT NULL,
  policy TEXT NOT NULL,
  PRIMARY KEY (bucket, prefix)
) STRICT, WITHOUT ROWID;
CREATE TABLE quotas (
  account INTEGER PRIMARY KEY,
  bytes INTEGER, -- NULL: no bound
  objects INTEGER,
  uploads INTEGER
) STRICT;
CREATE TABLE removed (
  bucket INTEGER NOT NULL,
  key BLOB NOT NULL,
  fence INTEGER NOT NULL,
  write_id TEXT,
  PRIMARY KEY (bucket, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE retained (
  generation TEXT PRIMARY KEY,
  bucket INTEGER NOT NULL,
  body_at INTEGER NOT NULL,
  account INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE state_epochs (
  epoch TEXT NOT NULL,
  account INTEGER NOT NULL DEFAULT 1,
  mark INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (account, epoch)
) STRICT, WITHOUT ROWID;
CREATE INDEX buckets_of_owner ON buckets (owner, name);
CREATE INDEX deal_files_of_generation ON deal_files (generation);
CREATE INDEX deal_history ON deals (bucket, key, id) WHERE record IS NOT NULL;
CREATE INDEX deals_by_cid ON deals (json_extract(record, '$.dealCid')) WHERE record IS NOT NULL;
CREATE INDEX deals_by_end ON deals (ends) WHERE ends IS NOT NULL;
CREATE INDEX deals_of_task ON deals (task, id) WHERE task IS NOT NULL;
CREATE INDEX deals_pending ON deals (id) WHERE record IS NULL;
CREATE UNIQUE INDEX object_files ON objects (generation) WHERE body_at = 0;
CREATE INDEX offline_cars_of_task ON offline_cars (task, deal);
CREATE INDEX offline_tasks_open ON offline_tasks (id) WHERE state <> 'ended';
CREATE INDEX removed_by_fence ON removed (fence);
CREATE INDEX retained_of_bucket ON retained (bucket, generation);
