import { NetworkError } from '../../network/network.js'
import { type OpenBody, PieceReader } from '../../store/bodies.js'
import type { GatewayCore } from '../core.js'
import { GatewayError } from '../errors.js'
import type { BucketRow } from '../store/buckets.js'
import { openLocalBody, refused } from '../store/local-copies.js'
import { isLocked } from '../store/object-locks.js'
import { isMd5, type ObjectRow } from '../store/object-row.js'
import { findVersion } from '../store/version-reads.js'
import { firstThatDoes, verified } from './bring-back.js'
import { endsSoon } from './locked-bodies.js'
import type { HeldCopy } from './manifest.js'

type EvictionContext = Pick<GatewayCore, 'db' | 'network' | 'log' | 'bodies' | 'copies'>

interface Evicted {
  /** The copy in a deal that was compared with the evicted local copy. */
  readonly copy: HeldCopy
  readonly size: number
}

interface WhatToEvict {
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
  const row = await context.copies.mustBeHere(bucket, key, generation)
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
  if (endsSoon(context.network, { ...copy, endEpoch }) && (await isLocked(context.db.read, generation)))
    throw refused(`The version is locked, and the deal ${copy.dealCid} ends soon. Nothing was removed.`)
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

/** Returns the epoch at which the deal ends. Throws NetworkError when it is not active now. */
async function mustBeActive({ network }: Pick<GatewayCore, 'network'>, { dealCid }: HeldCopy): Promise<number> {
  const { state, message, unconfirmed, endEpoch } = await network.status(dealCid)
  if (state !== 'StorageDealActive') {
    throw new NetworkError('NotRetrievable', `The deal ${dealCid} is not active, but ${state}. ${message}`.trim())
  }
  if (unconfirmed) throw new NetworkError('Unavailable', message)
  return endEpoch
}

/**
 * Retrieves all bytes of an object from the provider of a deal and verifies each block against its CID. Compares the
 * bytes with the local copy, if there is one, and their MD5 with the ETag, if that is an MD5. Throws NetworkError
 * NotRetrievable when they differ.
 */
async function mustBeTheSame(
  { network }: Pick<GatewayCore, 'network'>,
  { dealCid, minerId, file }: HeldCopy,
  row: ObjectRow,
  local: OpenBody | undefined,
  signal: AbortSignal,
): Promise<void> {
  const differs = (): NetworkError =>
    new NetworkError(
      'NotRetrievable',
      `Provider ${minerId} delivered other bytes from the deal ${dealCid} than those of the object.`,
    )
  const here = local && new PieceReader(await local.stream(0, row.size - 1))
  try {
    for await (const chunk of verified(network.retrieve(dealCid, file, signal), row, differs)) {
      if (here !== undefined && !(await here.next(chunk.length)).equals(chunk)) throw differs()
    }
  } finally {
    await here?.close()
  }
}

type VerificationContext = Pick<GatewayCore, 'db' | 'network' | 'log' | 'bodies'>

/**
 * Retrieves all of an object from one deal and compares it with the local copy. Without a local copy, it compares with
 * the ETag if that is an MD5, else with the CID that another deal records for the object, against which each block is
 * verified. Changes nothing.
 * Throws GatewayError NoSuchKey; VerificationFailed when this deal does not deliver the object; NetworkUnavailable when
 * the network cannot answer now.
 */
export async function verify(
  context: VerificationContext,
  bucket: BucketRow,
  key: Buffer,
  { generation, dealCid }: { readonly generation: string; readonly dealCid: string },
  signal: AbortSignal,
): Promise<HeldCopy> {
  const { objects, manifest } = context.db.read
  const row = await findVersion(context.db.read, bucket.id, key, generation)
  if (row === undefined) {
    if ((await objects.find(bucket.id, key)) === undefined) throw new GatewayError('NoSuchKey')
    throw failed('The object has been overwritten and has another generation now.')
  }
  const copies = await manifest.copiesOf(generation)
  const copy = copies.find((held) => held.dealCid === dealCid)
  if (copy === undefined) throw failed(`The deal ${dealCid} does not hold the current generation of this object.`)
  const local = await openLocalBody(context, generation)
  try {
    if (local === undefined) mustBeComparable(row, copy, copies)
    await mustBeActive(context, copy)
    await mustBeTheSame(context, copy, row, local, signal)
    return copy
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error
    if (error.code === 'Unavailable') throw new GatewayError('NetworkUnavailable', { value: error.message }, error)
    throw failed(error.message)
  } finally {
    await local?.close()
  }
}

function mustBeComparable({ etag }: ObjectRow, copy: HeldCopy, copies: readonly HeldCopy[]): void {
  const others = copies.filter(({ dealCid }) => dealCid !== copy.dealCid)
  if (isMd5(etag) || others.some(({ file }) => file.cid === copy.file.cid)) return
  throw failed(`There is no copy or digest to compare the content of the deal ${copy.dealCid} with.`)
}

function failed(value: string): GatewayError {
  return new GatewayError('VerificationFailed', { value })
}
