import { mustFindBucket } from '../../bucket-name.js'
import { evict } from '../../deals/evict.js'
import { GatewayError } from '../../errors.js'
import { parsePlace } from '../place.js'
import { dealEndpoint } from './envelope.js'
import { TextMembers } from './text-members.js'

/** POST evict/<bucket>/<object>: gives up the local copy of one generation, once a retrieval of it has been compared. */
export const evictObject = dealEndpoint({
  nothing: () => null,
  async run(exchange, rest) {
    const { context } = exchange
    const place = parsePlace(context, rest)
    const bucket = mustFindBucket(context, place.bucket)
    const generation = (await TextMembers.read(exchange)).get('Generation')
    if (generation === '') {
      throw new GatewayError('InvalidBody', { value: 'Generation must name the generation to be given up.' })
    }
    const { copy, size } = await context.tasks.run((signal) =>
      context.evictions.run(() => evict(context, bucket, place.key, generation, signal), signal),
    )
    const { dealCid, minerId } = copy
    const file_name = place.key.toString()
    return {
      data: { bucket_name: place.bucket, file_name, generation, dealCid, minerId, size },
      message: 'The local copy has been given up: the object is in the deal.',
    }
  },
})
