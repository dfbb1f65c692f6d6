import { mustOwnBucket } from '../../bucket-name.js'
import { evict } from '../../deals/evict.js'
import { GatewayError } from '../../errors.js'
import { parsePlace } from '../place.js'
import { dealEndpoint } from './envelope.js'
import { TextMembers } from './text-members.js'

/**
 * POST evict/<bucket>/<object>: evicts the local copy of one generation after comparing it with a retrieval from the
 * deal of `DealCid`, or from any deal.
 */
export const evictObject = dealEndpoint({
  nothing: () => null,
  async run(exchange, rest) {
    const { context, account } = exchange
    const place = parsePlace(context, rest)
    const bucket = mustOwnBucket(context, account, place.bucket)
    const members = await TextMembers.read(exchange)
    const generation = members.get('Generation')
    const meant = { generation, dealCid: members.get('DealCid') || undefined }
    if (generation === '') {
      throw new GatewayError('InvalidBody', { value: 'Generation must name the generation to evict.' })
    }
    const { copy, size } = await context.tasks.run((signal) =>
      context.evictionSlots(() => evict(context, bucket, place.key, meant, signal), signal),
    )
    const { dealCid, minerId } = copy
    const file_name = place.key.toString()
    return {
      data: { bucket_name: place.bucket, file_name, generation, dealCid, minerId, size },
      message: 'The local copy has been evicted: the object is in the deal.',
    }
  },
})
