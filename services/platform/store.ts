import { FailureTable, failureSchema } from '../failure-table.js'
import { type Connection, type Schema, Settings } from '../store/database.js'
import { ApiKeys, apiKeySchema } from './api-keys.js'
import { BidTable } from './bids.js'
import { FetchTable } from './daemon/fetch-queue.js'
import { ImportTable } from './daemon/importer.js'
import { MailTable } from './mailer.js'
import { Miners, minerSchema } from './miner-table.js'
import { DealTable } from './tasks/deal-table.js'
import { assignmentSchema, importSchema, stateIndexSchema, taskSchema } from './tasks/schema.js'
import { TaskTable } from './tasks/task-table.js'
import { passwordChangesSchema, Users, userSchema } from './users.js'

/** The tables of the platform, over one connection. */
export type PlatformTables = ReturnType<typeof platformSchema.tables>

export const platformSchema = {
  owner: 'the task platform',
  name: 'platform',
  /** A released step never changes: test/services/services.test.ts has their hashes. */
  steps: [
    userSchema,
    apiKeySchema,
    minerSchema,
    taskSchema,
    importSchema,
    passwordChangesSchema,
    assignmentSchema,
    stateIndexSchema,
    failureSchema,
  ],
  tables: (connection: Connection) => ({
    settings: new Settings(connection),
    users: new Users(connection),
    apiKeys: new ApiKeys(connection),
    failures: new FailureTable(connection),
    miners: new Miners(connection),
    tasks: new TaskTable(connection),
    deals: new DealTable(connection),
    bids: new BidTable(connection),
    mails: new MailTable(connection),
    fetches: new FetchTable(connection),
    imports: new ImportTable(connection),
  }),
} satisfies Schema<unknown>
