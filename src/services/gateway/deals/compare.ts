import { createHash } from 'node:crypto'
import { NetworkError } from '../../network/network.js'
import type { GatewayContext } from '../context.js'
import type { LocalBody } from '../store/local-body.js'
import type { ObjectRow } from '../store/objects.js'
import { isMd5 } from './bring-back.js'
import type { HeldCopy } from './manifest.js'

/** Returns the epoch at which the deal ends. Throws NetworkError when it is not active now. */
export async function mustBeActive(
  { network }: Pick<GatewayContext, 'network'>,
  { dealCid }: HeldCopy,
): Promise<number> {
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
export async function mustBeTheSame(
  { network }: Pick<GatewayContext, 'network'>,
  { dealCid, minerId, file }: HeldCopy,
  { size, etag }: Pick<ObjectRow, 'size' | 'etag'>,
  local: LocalBody | undefined,
  signal: AbortSignal,
): Promise<void> {
  const md5 = isMd5(etag) ? createHash('md5') : undefined
  const differs = (): NetworkError =>
    new NetworkError(
      'NotRetrievable',
      `Provider ${minerId} delivered other bytes from the deal ${dealCid} than those of the object.`,
    )
  let position = 0
  for await (const chunk of network.retrieve(dealCid, file, signal)) {
    if (local !== undefined && !(await local.read(position, chunk.length)).equals(chunk)) throw differs()
    md5?.update(chunk)
    position += chunk.length
  }
  if (position !== size || (md5 !== undefined && md5.digest('hex') !== etag)) throw differs()
}
