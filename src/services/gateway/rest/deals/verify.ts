import { mustOwnBucket } from '../../bucket-name.js'
import { verify } from '../../deals/verify.js'
import { parsePlace } from '../place.js'
import { dealEndpoint } from './envelope.js'
import { TextMembers } from './text-members.js'

/** POST verify/<bucket>/<object>: retrieves one generation from one deal and compares it. Changes nothing. */
export const verifyObject = dealEndpoint({
  nothing: () => null,
  async run(exchange, rest) {
    const { context, account } = exchange
    const place = parsePlace(context, rest)
    const bucket = mustOwnBucket(context, account, place.bucket)
    const members = await TextMembers.read(exchange)
    const meant = { generation: members.get('Generation'), dealCid: members.get('DealCid') }
    const { dealCid, minerId, file } = await context.tasks.run((signal) =>
      context.evictionSlots(() => verify(context, bucket, place.key, meant, signal), signal),
    )
    const { size } = file
    const names = { bucket_name: place.bucket, file_name: place.key.toString() }
    return {
      data: { ...names, generation: meant.generation, dealCid, minerId, size },
      message: 'The deal has delivered the object, byte for byte.',
    }
  },
})
