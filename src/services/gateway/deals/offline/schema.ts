/**
 * Offline deals. An offline task is one request: the CARs that the bucket was packed into, and the task on the platform
 * that has them stored. Its `state` is `packing` until all CARs are on the disk and recorded, `packed` until the
 * platform has the task, `posted` while the CARs may be fetched, and `ended` when none of them is needed any more.
 * `form` holds the fields of the task. Each CAR is a deal of the table `deals`, which gets its record when it is
 * proposed. `secret` is the part of the CAR's URL that cannot be guessed, `present` is 0 once its file is removed; the
 * last members are what the platform said last.
 */
export const offlineSchema = `
  CREATE TABLE IF NOT EXISTS offline_tasks (
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
  CREATE INDEX IF NOT EXISTS offline_tasks_open ON offline_tasks (id) WHERE state <> 'ended';
  CREATE TABLE IF NOT EXISTS offline_cars (
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
  CREATE INDEX IF NOT EXISTS offline_cars_of_task ON offline_cars (task, deal);
`
