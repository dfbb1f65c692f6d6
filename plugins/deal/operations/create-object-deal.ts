import { defineCall } from 'dealgate'
import { dealResult } from '../jobs/record-deal.js'
import type { DealParts } from '../parts.js'
import { refuseDearPrice } from '../quote/price-limit.js'
import { OBJECT_DEAL, type ObjectDealInput } from '../records/inputs.js'
import { dealRequest, SOURCE } from '../request.js'
import { requireObject } from '../subject.js'
import { termAliases } from '../terms/terms.js'

/** Backs up an object by an online deal. */
export function createObjectDeal(parts: DealParts) {
  return defineCall({
    name: 'CreateObjectDeal',
    source: SOURCE,
    summary: 'Makes a deal for an object: a storage provider keeps a copy of it.',
    access: 'owner',
    on: { method: 'POST', resource: 'object', subresource: 'x-deal' },
    body: dealRequest,
    aliases: termAliases,
    result: dealResult,
    root: 'DealResult',
    job: OBJECT_DEAL,
    spends: true,
    async order({ request: { bucket, key }, body }, context) {
      const object = await requireObject(context, { bucket, key })
      const agreed = await parts.termsFor(context, bucket, { request: body, object })
      await refuseDearPrice(parts, context, agreed, () => ({ bytes: object.size, objects: 1 }))
      const force = body.Force && { force: true as const }
      const input: ObjectDealInput = { bucket, key, stamp: object.stamp, ...agreed, cause: 'call', ...force }
      return { resource: `/${bucket}/${key}`, input }
    },
  })
}
