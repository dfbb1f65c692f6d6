import { GatewayError } from '../errors.js'
import { isFence } from '../http/write-order.js'
import type { WriteOrder } from '../store/fences.js'

export interface OrderParams {
  readonly fence?: number | undefined
  readonly writeId?: string | undefined
  /** '' requires that no object exists. */
  readonly expectedGeneration?: string | undefined
}

/** Undefined when the client sends no fence. Throws GatewayError InvalidArguments. */
export function orderOf({ fence, writeId = '', expectedGeneration }: OrderParams): WriteOrder | undefined {
  if (fence === undefined) return undefined
  if (!isFence(fence) || writeId === '' || writeId.length > 128) throw new GatewayError('InvalidArguments')
  return {
    fence,
    writeId,
    ...(expectedGeneration !== undefined && { expected: expectedGeneration === '' ? null : expectedGeneration }),
  }
}
