import type { IncomingMessage } from 'node:http'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import { MAX_FENCE, type WriteOrder } from '../store/fences.js'

const WRITE_ID = /^[\x21-\x7e]{1,128}$/

/**
 * The order that an upload declares: the whole order; only the write id, because the rest comes with web.FenceUpload;
 * or nothing.
 */
export type AskedOrder = WriteOrder | { readonly lateFor: string } | undefined

/**
 * Reads x-cloud-fence (a number, or `late`), x-cloud-write-id and x-cloud-expected-generation (`none`, or a
 * generation). Throws GatewayError InvalidHeader.
 */
export function readWriteOrder(
  { names, features }: Pick<GatewayContext, 'names' | 'features'>,
  { headers }: IncomingMessage,
): AskedOrder {
  const fence = headers[`${names.header}fence`]
  if (!features.has('write-fences') || fence === undefined) return undefined
  const writeId = headers[`${names.header}write-id`]
  if (typeof writeId !== 'string' || !WRITE_ID.test(writeId))
    throw new GatewayError('InvalidHeader', { value: `${names.header}write-id` })
  if (fence === 'late') return { lateFor: writeId }
  const number = Number(fence)
  if (!isFence(number)) throw new GatewayError('InvalidHeader', { value: `${names.header}fence` })
  const expected = headers[`${names.header}expected-generation`]
  return {
    fence: number,
    writeId,
    ...(typeof expected === 'string' && { expected: expected === 'none' ? null : expected }),
  }
}

export function isFence(number: number): boolean {
  return Number.isSafeInteger(number) && number > 0 && number <= MAX_FENCE
}

/** True when the client has closed its side of the connection and will not learn the outcome of its request. */
export function hasGone({ socket }: IncomingMessage): boolean {
  return socket.destroyed || socket.readableEnded
}
