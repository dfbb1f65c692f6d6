import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { BucketRow } from '../store/buckets.js'
import { openLocalBody } from '../store/local-body.js'
import { mustBeActive, mustBeTheSame } from './compare.js'
import { firstThatDoes } from './copies-in-deals.js'
import type { HeldCopy } from './manifest.js'

type EvictionContext = Pick<GatewayContext, 'manifest' | 'network' | 'log' | 'objects' | 'blobs' | 'holds' | 'copies'>

export interface Evicted {
  /** The copy in a deal that was compared with the evicted local copy. */
  readonly copy: HeldCopy
  readonly size: number
}

export interface WhatToEvict {
  readonly generation: string
  /** The only deal whose copy may be compared; default any deal. */
  readonly dealCid: string | undefined
}

/**
 * Evicts the local copy of an object, after this call has retrieved all of it from the provider of an active deal and
 * found it identical byte for byte. Throws GatewayError, most often EvictionRefused; then nothing has changed.
 */
export async function evict(
  context: EvictionContext,
  bucket: BucketRow,
  key: Buffer,
  { generation, dealCid }: WhatToEvict,
  signal: AbortSignal,
): Promise<Evicted> {
  const row = context.copies.mustBeHere(bucket, key, generation)
  const local = await openLocalBody(context, generation)
  if (local === undefined) {
    throw refused('The object was overwritten or removed during the comparison. Nothing was removed.')
  }
  let compared: Compared
  try {
    const compare = async (copy: HeldCopy): Promise<Compared> => {
      await mustBeActive(context, copy)
      await mustBeTheSame(context, copy, row, local, signal)
      // The deal may end during a long comparison.
      return { copy, endEpoch: await mustBeActive(context, copy) }
    }
    compared = await firstThatDoes(context, generation, compare, dealCid)
  } catch (error) {
    if (error instanceof GatewayError && error.kind === 'RetrievalFailed') {
      throw refused(`Nothing was removed: ${error.message}`)
    }
    throw error
  } finally {
    await local.close()
  }
  const { copy, endEpoch } = compared
  await context.copies.evict(bucket, key, generation, () => {
    // The network may have answered long ago.
    if (context.network.epoch() >= endEpoch) throw refused(`The deal ${copy.dealCid} has ended. Nothing was removed.`)
  })
  return { copy, size: row.size }
}

interface Compared {
  readonly copy: HeldCopy
  readonly endEpoch: number
}

function refused(value: string): GatewayError {
  return new GatewayError('EvictionRefused', { value })
}
