import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'

/** Turns the index of this version into that of the one before accounts. */
export function toFormerSchema(data: string, pair: { accessKey: string; secretKey: string }): void {
  const db = new DatabaseSync(join(data, 'gateway', 'index.db'))
  db.exec(FORMER_SCHEMA)
  db.close()
  writeFileSync(join(data, 'gateway', 'account.json'), JSON.stringify({ ...pair, configured: null }), { mode: 0o600 })
}

const FORMER_DEALS = `id INTEGER PRIMARY KEY AUTOINCREMENT, reference TEXT NOT NULL UNIQUE, network TEXT NOT NULL,
  bucket INTEGER NOT NULL, bucket_name TEXT NOT NULL, key BLOB NOT NULL, token TEXT UNIQUE, terms TEXT NOT NULL,
  asked TEXT NOT NULL, files INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0, record TEXT,
  dropped INTEGER NOT NULL DEFAULT 0, ends INTEGER`

const FORMER_SCHEMA = `
  DROP INDEX buckets_of_owner;
  ALTER TABLE buckets DROP COLUMN owner;
  DROP TABLE accounts;
  CREATE TABLE epochs (epoch TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  INSERT INTO epochs SELECT epoch FROM state_epochs;
  DROP TABLE state_epochs;
  ALTER TABLE epochs RENAME TO state_epochs;
  CREATE TABLE former_deals (${FORMER_DEALS}) STRICT;
  INSERT INTO former_deals SELECT id, reference, network, bucket, bucket_name, key, token, terms, asked, files, bytes,
    record, dropped, ends FROM deals;
  DROP TABLE deals;
  ALTER TABLE former_deals RENAME TO deals;
`
