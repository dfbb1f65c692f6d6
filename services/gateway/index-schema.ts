import { FailureTable, failureSchema } from '../failure-table.js'
import { type Connection, type Schema, Settings } from '../store/database.js'
import { RunTable } from '../store/runs.js'
import { Accounts, accountSchema } from './accounts/accounts.js'
import { Deals } from './deals/deals.js'
import { Manifest } from './deals/manifest.js'
import { OfflineTasks, offlineSchema } from './deals/offline/offline-tasks.js'
import { adaptDeals, dealSchema } from './deals/schema.js'
import { BodySums, sumsSchema } from './store/body-sums.js'
import { Buckets, Policies } from './store/buckets.js'
import { DoomedBodies } from './store/doomed.js'
import { RemovedKeys, StoreIds } from './store/fences.js'
import { HoldTable, RetainedBodies } from './store/holds.js'
import { KeyStates } from './store/key-states.js'
import { LateOrderTable } from './store/late-orders.js'
import { ObjectLocks } from './store/object-locks.js'
import { Objects } from './store/objects.js'
import { BodyFolder } from './store/open-bodies.js'
import { Quotas } from './store/quotas.js'
import {
  adaptObjects,
  bucketQuotaSchema,
  checksumSchema,
  numbersSchema,
  objectSchema,
  sharingSchema,
  versionSchema,
} from './store/schema.js'
import { Versions } from './store/versions.js'

/** The tables of the gateway, over one connection. */
export type GatewayTables = ReturnType<typeof indexSchema.tables>

export const indexSchema = {
  owner: 'the gateway',
  name: 'gateway',
  /** A released step never changes: test/services/services.test.ts has their hashes. */
  steps: [
    accountSchema + objectSchema + dealSchema + offlineSchema,
    sharingSchema + failureSchema,
    versionSchema,
    bucketQuotaSchema,
    sumsSchema,
    checksumSchema,
    numbersSchema,
  ],
  adapt: (db) => {
    adaptObjects(db)
    adaptDeals(db)
  },
  tables: (connection: Connection) => ({
    accounts: new Accounts(connection),
    quotas: new Quotas(connection),
    buckets: new Buckets(connection),
    policies: new Policies(connection),
    storeIds: new StoreIds(connection),
    objects: new Objects(connection),
    keyStates: new KeyStates(connection),
    versions: new Versions(connection),
    locks: new ObjectLocks(connection),
    removed: new RemovedKeys(connection),
    holds: new HoldTable(connection),
    retained: new RetainedBodies(connection),
    doomed: new DoomedBodies(connection),
    lateOrders: new LateOrderTable(connection),
    bodyFolder: new BodyFolder(connection),
    bodySums: new BodySums(connection),
    deals: new Deals(connection),
    manifest: new Manifest(connection),
    offlineTasks: new OfflineTasks(connection),
    runs: new RunTable(connection),
    failures: new FailureTable(connection),
    settings: new Settings(connection),
  }),
} satisfies Schema<unknown>
