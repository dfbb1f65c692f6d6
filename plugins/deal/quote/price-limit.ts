import { type Context, S3Error } from 'dealgate'
import { knownProviders } from '../known-providers.js'
import type { DealParts } from '../parts.js'
import { estimatePieceSize, GIB } from '../piece-size.js'
import { askOf } from '../providers.js'
import { divideUp, formatAmount, parseAmount } from '../terms/amounts.js'
import type { DealTerms } from '../terms/terms.js'

/** Content of a deal. */
export interface Packed {
  /** Of all objects together. */
  readonly bytes: number
  readonly objects: number
}

/** A price, and whether a caller with the right to pay has confirmed it. */
export interface AgreedPrice {
  readonly terms: DealTerms
  readonly priceConfirmed?: boolean | undefined
}

/**
 * Refuses a deal whose price is more than `maxTimesAsk` times what its provider asks for a piece of this size, unless
 * the price is confirmed. The piece size is estimated. If the gateway lists no providers, or not this one, there is
 * nothing to compare with and the deal passes.
 * @param measure called only when there is something to compare with
 * @throws S3Error DealPriceTooHigh, and what DealClient.providers throws
 */
export async function refuseDearPrice(
  parts: Pick<DealParts, 'options' | 'host'>,
  context: Pick<Context, 'gateway' | 'log'>,
  { terms, priceConfirmed }: AgreedPrice,
  measure: () => Packed | Promise<Packed>,
): Promise<void> {
  const { maxTimesAsk } = parts.options
  const price = parseAmount(terms.price) ?? 0n
  if (priceConfirmed || maxTimesAsk === 'none' || price === 0n) return
  const provider = (await knownProviders(parts, context))?.find(({ miner_id }) => miner_id === terms.minerId)
  const ask = provider && askOf(provider, terms.verifiedDeal)
  if (ask === undefined) return
  const { bytes, objects } = await measure()
  const pieceSize = estimatePieceSize(bytes, objects)
  const asked = askFor(ask, pieceSize)
  if (price <= asked * BigInt(maxTimesAsk)) return
  const text = formatAmount(asked)
  throw new S3Error('DealPriceTooHigh', {
    message:
      `The price of ${terms.price} fil per epoch is more than ${maxTimesAsk} times what ${terms.minerId} asks for a piece of about ${pieceSize} bytes, which is ${text}. ` +
      'State a lower Price; or confirm this one, by ConfirmPrice where the price is stated or in the request.',
    fields: { MinerId: terms.minerId, Price: terms.price, AskedPrice: text, PieceSize: pieceSize },
  })
}

/**
 * Attofil per epoch that a provider asks for a piece.
 * @param ask attofil per GiB and epoch
 * @param pieceSize bytes
 */
export function askFor(ask: bigint, pieceSize: number): bigint {
  return divideUp(ask * BigInt(pieceSize), GIB)
}
