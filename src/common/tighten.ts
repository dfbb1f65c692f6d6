import { chmodSync, statSync } from 'node:fs'

/**
 * Revokes the access of all accounts but the owner to one of the server's files or folders, which an earlier version or
 * a loose umask may have left open. Ignores a missing path. Changes the mode by path: closing a descriptor of a
 * database would drop the locks that SQLite holds on it (https://www.sqlite.org/howtocorrupt.html, section 2.2).
 */
export function tighten(path: string): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode
  if (mode === undefined || (mode & 0o077) === 0) return
  try {
    chmodSync(path, mode & 0o700)
  } catch (error) {
    // The file belongs to another account, which decides who may use it.
    if (!['EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

/** Tightens a SQLite database and its log: https://www.sqlite.org/tempfiles.html */
export function tightenDatabase(file: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) tighten(`${file}${suffix}`)
}
