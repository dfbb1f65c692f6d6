import { NetworkError } from '../../network/network.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { BucketRow } from '../store/buckets.js'
import { openLocalBody } from '../store/local-body.js'
import type { ObjectRow } from '../store/objects.js'
import { isMd5 } from './bring-back.js'
import { mustBeActive, mustBeTheSame } from './compare.js'
import type { HeldCopy } from './manifest.js'

type VerificationContext = Pick<GatewayContext, 'manifest' | 'network' | 'log' | 'objects' | 'blobs' | 'holds'>

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
  const row = context.objects.find(bucket.id, key)
  if (row === undefined) throw new GatewayError('NoSuchKey')
  if (row.generation !== generation) throw failed('The object has been overwritten and has another generation now.')
  const copies = context.manifest.copiesOf(generation)
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
