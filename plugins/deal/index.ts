import { definePlugin } from '../../src/registry/plugin.js'
import { archiveClasses } from './archive/classes.js'
import { Keeper } from './archive/keeper.js'
import { restores } from './archive/restore-job.js'
import { Follower } from './follow/follower.js'
import { bucketDeals, objectDeals } from './jobs/kinds.js'
import { bucketRetrievals } from './jobs/retrieve-bucket.js'
import { dealOperations } from './operations/index.js'
import { dealOptions } from './options.js'
import { DealParts } from './parts.js'

/** What GET and HEAD tell of an object that deals are about; a client that sends these does not store them. */
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
  create(options) {
    const parts = new DealParts(options)
    let follower: Follower | undefined
    let keeper: Keeper | undefined
    return {
      operations: dealOperations(parts),
      storageClasses: archiveClasses(parts),
      jobs: [objectDeals(parts), bucketDeals(parts), restores(parts), bucketRetrievals(parts)],
      hooks: {
        objectDeleted: (event) => parts.copies.forget(event),
      },
      outputMetadata,
      async start(host) {
        parts.start(host)
        follower = new Follower(parts)
        follower.start()
        keeper = new Keeper(parts)
        keeper.start()
      },
      async stop() {
        await follower?.stop()
        await keeper?.stop()
      },
    }
  },
})
