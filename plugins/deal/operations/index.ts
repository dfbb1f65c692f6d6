import type { AnyOperation } from 'dealgate'
import type { DealParts } from '../parts.js'
import { createBucketDeal } from './create-bucket-deal.js'
import { createObjectDeal } from './create-object-deal.js'
import { getBucketDealConfiguration, setBucketDealConfiguration } from './deal-configuration.js'
import { getDeal, listMadeDeals } from './deals.js'
import { listBucketDeals, listObjectDeals } from './list-deals.js'
import { listProviders } from './list-providers.js'
import { createBucketOfflineDeal, listBucketOfflineDeals } from './offline-deals.js'
import { quoteBucketDeal, quoteObjectDeal } from './quote-deal.js'
import { retrieveBucket } from './retrieve-bucket.js'
import { retrieveObject } from './retrieve-object.js'

/** The operations of this plugin. */
export function dealOperations(parts: DealParts): readonly AnyOperation[] {
  return [
    createObjectDeal(parts),
    createBucketDeal(parts),
    createBucketOfflineDeal(),
    listObjectDeals(parts),
    listBucketDeals(parts),
    listBucketOfflineDeals(parts),
    retrieveObject(parts),
    retrieveBucket(),
    quoteObjectDeal(parts),
    quoteBucketDeal(parts),
    getBucketDealConfiguration(),
    setBucketDealConfiguration(parts),
    listMadeDeals(parts),
    getDeal(parts),
    listProviders(parts),
  ]
}
