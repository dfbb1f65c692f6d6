import type { Database } from '../database.js'

/**
 * Brings a schema up to date, or makes it: one step per version, of which the database remembers the number. A released
 * step never changes; a new version appends one. A crash leaves the version before a step or after it. Throws
 * RangeError when a later version of this program wrote the database.
 * @param owner for the message, such as `the task platform`
 */
export function applySteps(db: Database, steps: readonly string[], owner: string): void {
  const version = db.prepare('PRAGMA user_version').get().user_version as number
  if (version > steps.length) {
    throw new RangeError(`A later version of dealgate has written the data of ${owner}: start that version.`)
  }
  for (const [n, step] of steps.entries()) {
    if (n >= version) db.exec(`BEGIN IMMEDIATE; ${step}; PRAGMA user_version = ${n + 1}; COMMIT;`)
  }
}
