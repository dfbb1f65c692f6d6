import type { Database } from '../../database.js'
import { applySteps } from '../../store/apply-steps.js'
import { apiKeySchema } from '../api-keys/schema.js'
import { minerSchema } from '../miners/schema.js'
import { assignmentSchema, importSchema, taskSchema } from '../tasks/schema.js'
import { passwordChangesSchema, userSchema } from '../users/schema.js'

const steps: readonly string[] = [
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
