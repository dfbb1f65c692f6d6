import type { Database } from '../../database.js'
import { apiKeySchema } from '../api-keys/schema.js'
import { minerSchema } from '../miners/schema.js'
import { taskSchema } from '../tasks/schema.js'
import { userSchema } from '../users/schema.js'

/**
 * The schema, one step per version: a database remembers how many of them it has. A released step never changes; a new
 * version appends one.
 */
const steps: readonly string[] = [userSchema, apiKeySchema, minerSchema, taskSchema]

/**
 * Brings the schema up to date, or makes it; a crash leaves the version before a step or after it. Throws RangeError
 * when a later version of this program wrote the database.
 */
export function migrate(db: Database): void {
  const version = db.prepare('PRAGMA user_version').get().user_version as number
  if (version > steps.length) {
    throw new RangeError('A later version of dealgate has written the data of the task platform: start that version.')
  }
  for (const [n, step] of steps.entries()) {
    if (n >= version) db.exec(`BEGIN IMMEDIATE; ${step}; PRAGMA user_version = ${n + 1}; COMMIT;`)
  }
}
