import { definePlugin } from 'dealgate'
import { archiveClasses, Keeper } from './archive/keeper.js'
import { restores } from './archive/restore-job.js'
import { Follower } from './follow/follower.js'
import { verifications } from './follow/verify.js'
import { bucketDeals, objectDeals } from './jobs/deal-jobs.js'
import { bucketRetrievals } from './jobs/retrieve-bucket.js'
import { DeepArchive } from './offline/deep-archive.js'
import { offlineDeals } from './offline/offline-job.js'
import { dealOperations } from './operations/deals.js'
import { dealOptions } from './options.js'
import { DealParts, dealGauges } from './parts.js'
import { OBJECT_DEAL } from './records/attempts.js'
import { scheduleRuns } from './schedules/run-schedule.js'
import { Scheduler } from './schedules/scheduler.js'
import { TERMS_METADATA } from './terms/resolve-terms.js'

/** Metadata that GET and HEAD report of an object with deals; a client that sends it does not store it. */
export const outputMetadata = [
  'cid',
  'deal-cid',
  'deal-count',
  'deal-provider',
  'deal-status',
  'deal-expiry',
  'task-uuid',
] as const

export default definePlugin({
  name: 'deal',
  summary: 'Deals with a decentralized storage network: backup of buckets and objects, and their retrieval.',
  options: dealOptions,
  create(options, host) {
    const parts = new DealParts(options, host)
    return {
      operations: dealOperations(parts),
      storageClasses: archiveClasses(parts),
      jobs: [
        objectDeals(parts),
        bucketDeals(parts),
        restores(parts),
        bucketRetrievals(parts),
        verifications(parts),
        scheduleRuns(parts),
        offlineDeals(parts),
      ],
      hooks: {
        objectStored: (event) => parts.waits.changed(event),
        async objectDeleted(event) {
          await parts.waits.changed(event)
          await parts.copies.forget(event)
        },
      },
      gauges: dealGauges(parts),
      outputMetadata,
      metadataActions: { [TERMS_METADATA]: OBJECT_DEAL },
      async start() {
        host.schedule(new Follower(parts).work)
        host.schedule(new Keeper(parts).work)
        host.schedule(new Scheduler(parts).work)
        host.schedule(new DeepArchive(parts).work)
      },
    }
  },
})
