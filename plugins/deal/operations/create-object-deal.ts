import { defineCall } from '../../../src/extension/define-call.js'
import { OBJECT_DEAL, type ObjectDealInput } from '../jobs/inputs.js'
import { dealResult } from '../jobs/settle.js'
import { requireObject } from '../jobs/subject.js'
import type { DealParts } from '../parts.js'
import { dealRequest, SOURCE } from '../request.js'
import { termAliases } from '../terms.js'

/** Backs an object up by an online deal. */
export function createObjectDeal(parts: DealParts) {
  return defineCall({
    name: 'CreateObjectDeal',
    source: SOURCE,
    summary: 'Makes a deal about an object: a storage provider keeps a copy of it.',
    on: { method: 'POST', resource: 'object', subresource: 'x-deal' },
    body: dealRequest,
    aliases: termAliases,
    result: dealResult,
    root: 'DealResult',
    job: OBJECT_DEAL,
    spends: true,
    async order({ request: { bucket, key }, body }, context) {
      const object = await requireObject(context, { bucket, key })
      const terms = await parts.termsFor(context, bucket, { request: body, metadata: object.metadata })
      const input: ObjectDealInput = { bucket, key, stamp: object.stamp, terms, cause: 'call' }
      return { resource: `/${bucket}/${key}`, input }
    },
  })
}
