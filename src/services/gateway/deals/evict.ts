import { createHash } from 'node:crypto'
import { NetworkError } from '../../network/network.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { BucketRow } from '../store/buckets.js'
import { type LocalBody, openLocalBody } from '../store/local-body.js'
import type { ObjectRow } from '../store/objects.js'
import { isMd5 } from './bring-back.js'
import { firstThatDoes } from './copies-in-deals.js'
import type { HeldCopy } from './manifest.js'

type Tools = Pick<GatewayContext, 'manifest' | 'network' | 'log' | 'objects' | 'blobs' | 'holds' | 'copies'>

export interface Evicted {
  /** The deal whose copy was compared with the one that is gone now. */
  readonly copy: HeldCopy
  readonly size: number
}

/**
 * Gives up the local copy of an object, after this very call has had all of it from the provider of an active deal and found it byte for byte the same.
 * Throws GatewayError, most often EvictionRefused; then nothing has changed.
 */
export async function evict(
  tools: Tools,
  bucket: BucketRow,
  key: Buffer,
  generation: string,
  signal: AbortSignal,
): Promise<Evicted> {
  const row = tools.copies.mustBeHere(bucket, key, generation)
  const local = await openLocalBody(tools, generation)
  if (local === undefined) {
    throw refused('The object has been overwritten or removed meanwhile. Nothing was removed.')
  }
  let compared: Compared
  try {
    compared = await firstThatDoes(tools, generation, async (copy) => {
      await mustBeActive(tools, copy)
      await mustBeTheSame(tools, copy, row, local, signal)
      // A long comparison may outlast the deal.
      return { copy, endEpoch: await mustBeActive(tools, copy) }
    })
  } catch (error) {
    if (error instanceof GatewayError && error.kind === 'RetrievalFailed') {
      throw refused(`Nothing was removed: ${error.message}`)
    }
    throw error
  } finally {
    await local.close()
  }
  const { copy, endEpoch } = compared
  await tools.copies.evict(bucket, key, generation, () => {
    // The answer of the network may have been long on its way.
    if (tools.network.epoch() >= endEpoch) throw refused(`The deal ${copy.dealCid} has ended. Nothing was removed.`)
  })
  return { copy, size: row.size }
}

interface Compared {
  readonly copy: HeldCopy
  readonly endEpoch: number
}

/** The epoch at which the deal ends. */
async function mustBeActive({ network }: Tools, { dealCid }: HeldCopy): Promise<number> {
  const { state, message, unconfirmed, endEpoch } = await network.status(dealCid)
  if (state !== 'StorageDealActive') {
    throw new NetworkError('NotRetrievable', `The deal ${dealCid} is not active, but ${state}. ${message}`.trim())
  }
  if (unconfirmed) throw new NetworkError('Unavailable', message)
  return endEpoch
}

async function mustBeTheSame(
  { network }: Tools,
  { dealCid, minerId, file }: HeldCopy,
  { size, etag }: ObjectRow,
  local: LocalBody,
  signal: AbortSignal,
): Promise<void> {
  const md5 = isMd5(etag) ? createHash('md5') : undefined
  const differs = (): NetworkError =>
    new NetworkError('NotRetrievable', `What provider ${minerId} delivered of the deal ${dealCid} is not the object.`)
  let position = 0
  for await (const chunk of network.retrieve(dealCid, file, signal)) {
    const here = await local.read(position, chunk.length)
    if (!here.equals(chunk)) throw differs()
    md5?.update(chunk)
    position += chunk.length
  }
  if (position !== size || (md5 !== undefined && md5.digest('hex') !== etag)) throw differs()
}

function refused(value: string): GatewayError {
  return new GatewayError('EvictionRefused', { value })
}
