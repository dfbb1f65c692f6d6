import { definePlugin } from 'dealgate/plugin'
import { restores } from './archive/restore-job.js'
import { archiveClasses, LocalCopyUpkeep } from './archive/upkeep.js'
import { configurationOf } from './configuration.js'
import { DealDeps, dealGauges } from './deps.js'
import { dealInventory } from './inventory.js'
import { bucketDeals, objectDeals } from './jobs/deal-jobs.js'
import { OBJECT_DEAL } from './jobs/inputs.js'
import { bucketRetrievals } from './jobs/retrieve-bucket.js'
import { DeepArchive } from './offline/deep-archive.js'
import { offlineDeals } from './offline/offline-job.js'
import { dealOperations } from './operations/deals.js'
import { historyExpansion } from './operations/history.js'
import { dealOptions } from './options.js'
import { Follower } from './periodic/follower.js'
import { scheduleRuns } from './periodic/run-schedule.js'
import { Scheduler } from './periodic/scheduler.js'
import { verifications } from './periodic/verify.js'
import { TERMS_METADATA } from './terms/resolve-terms.js'

/** Metadata that GET and HEAD report of an object with deals; a client that sends it does not store it. */
const outputMetadata = [
  'cid',
  'deal-cid',
  'deal-count',
  'deal-provider',
  'deal-status',
  'deal-expiry',
  'task-uuid',
] as const

/** The setting `deal` of a bucket, which limits what other plugins spend for it, too. */
export type { DealConfiguration } from './configuration.js'

export default definePlugin({
  name: 'deal',
  summary: 'Deals with a decentralized storage network: backup of buckets and objects, and their retrieval.',
  options: dealOptions,
  create(options, host) {
    const deps = new DealDeps(options, host)
    return {
      operations: dealOperations(deps),
      storageClasses: archiveClasses(deps),
      expansions: [historyExpansion(deps)],
      inventory: dealInventory(deps),
      jobs: [
        objectDeals(deps),
        bucketDeals(deps),
        restores(deps),
        bucketRetrievals(deps),
        verifications(deps),
        scheduleRuns(deps),
        offlineDeals(deps),
      ],
      hooks: {
        objectStored: (event) => deps.waits.changed(event),
        async objectDeleted(event) {
          await deps.waits.changed(event)
          // In a bucket without versions, their upkeep forgets the plan for an object that is gone.
          const { bucket, key, revision } = event
          if (revision !== undefined) await deps.copies.forget({ bucket, key, revision })
        },
      },
      gauges: dealGauges(deps),
      outputMetadata,
      demandsEncryption: async (bucket) => (await configurationOf(host, bucket))?.PublicNetwork === 'encrypted-only',
      metadataActions: { [TERMS_METADATA]: OBJECT_DEAL },
      async start() {
        host.schedule(new Follower(deps).work)
        host.schedule(new LocalCopyUpkeep(deps).work)
        host.schedule(new Scheduler(deps).work)
        host.schedule(new DeepArchive(deps).work)
      },
    }
  },
})
