import type { Connection } from './database.js'
import { Changes } from './kept-rows.js'
import { openReader } from './sqlite-files.js'
import { connectionOf } from './sqlite-statements.js'

/** Most memory for pages of the database, KiB. Each thread that reads has as much. */
const CACHE_KIB = 8192

/** A connection that reads, and what closes it. */
interface SqliteReader {
  readonly connection: Connection
  close(): void
}

/**
 * Opens a database that another thread or process writes, to read it there where its rows are wanted.
 *
 * Each statement is a transaction of its own, and holds no lock when it has returned: a checkpoint waits for none of
 * them. It sees every commit that was acknowledged before it began: a commit ends with the new header of the index of
 * the log, in memory that all connections share, and each transaction begins with reading that header
 * (https://www.sqlite.org/walformat.html#the_wal_index_file_format).
 *
 * It sees nothing that a power failure could take back. With `synchronous = FULL`, which every writer has, a commit
 * syncs the log before it writes that header: `sqlite3WalFrames` calls `sqlite3OsSync` first and `walIndexWriteHdr`
 * last, and not at all where the sync fails (https://www.sqlite.org/src/file/src/wal.c;
 * https://www.sqlite.org/pragma.html#pragma_synchronous). What a killed process has left of a commit without its sync
 * is synced by the next `openWriter`, before anyone reads it.
 */
export function followSqlite(file: string): SqliteReader {
  const reader = openReader(file, CACHE_KIB)
  const changes = new Changes(reader.prepare('PRAGMA data_version'))
  return { connection: connectionOf(reader, undefined, changes), close: () => reader.close() }
}
