import { applySteps, type Database } from '../database.js'
import { apiKeySchema } from './api-keys.js'
import { minerSchema } from './miner-table.js'
import { assignmentSchema, importSchema, taskSchema } from './tasks/schema.js'
import { passwordChangesSchema, userSchema } from './users.js'

/** A released step never changes: test/services/services.test.ts has their hashes. */
export const steps: readonly string[] = [
  userSchema,
  apiKeySchema,
  minerSchema,
  taskSchema,
  importSchema,
  passwordChangesSchema,
  assignmentSchema,
]

/** Brings the schema up to date, or makes it. Throws as `applySteps` does. */
export function migrate(db: Database): void {
  applySteps(db, steps, 'the task platform')
}
