import { NetworkError, type OfflineDeals } from '../../../network/network.js'
import { formatFil, parseFil, priceOfPiece } from '../../../network/units/fil.js'
import { GatewayError } from '../../errors.js'
import { type DealMakerContext, walletOf } from '../deal-maker.js'
import type { CompleteDeal } from '../deals.js'
import type { OfflineCar, OfflineTask } from './offline-tasks.js'
import { providersOf } from './providers-of.js'
import { termsOf } from './task-form.js'

/** Who stores a CAR, and for how much. */
export interface Bidder {
  readonly minerId: string
  /** Attofil per GiB and epoch. */
  readonly price: bigint
}

/**
 * Proposes the deal of a CAR, unless that has been done. Durable, with its record, when the promise resolves. Throws
 * GatewayError OfflineDealRefused, and NetworkUnavailable.
 */
export async function proposeCar(
  context: DealMakerContext,
  offline: OfflineDeals,
  task: OfflineTask,
  car: OfflineCar,
  { minerId, price: perGiB }: Bidder,
  signal: AbortSignal,
): Promise<CompleteDeal> {
  const { deals, writer } = context
  const deal = deals.mustFind(car.deal)
  if (deal.record !== undefined) return { ...deal, record: deal.record }
  const { maxPrice } = termsOf(task.form)
  if (maxPrice !== null && perGiB > maxPrice) {
    const value = `The storage provider ${minerId} asks ${formatFil(perGiB)} fil per GiB and epoch, more than Max_Price.`
    throw new GatewayError('OfflineDealRefused', { value })
  }
  const { dataCid, carSize, pieceCid, pieceSize } = car
  const price = formatFil(priceOfPiece(perGiB, pieceSize))
  try {
    const record = await offline.propose({
      reference: deal.reference,
      terms: { ...deal.terms, minerId, price },
      ...walletOf(context, task.account),
      car: { dataCid, carSize, pieceCid, pieceSize },
      signal,
    })
    await writer.run(() => deals.complete(deal.id, record))
    return { ...deal, record }
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error
    const passing = error.code === 'Unavailable' || error.code === 'ProviderOffline'
    throw new GatewayError(passing ? 'NetworkUnavailable' : 'OfflineDealRefused', { value: error.message }, error)
  }
}

/** The provider of a private task at its usual price, or the least one that the client offers if that is higher. */
export async function askOfProvider({ network }: DealMakerContext, { form }: OfflineTask, minerId: string) {
  const { type, minPrice } = termsOf(form)
  const provider = (await providersOf(network)).find((one) => one.minerId === minerId)
  const asked = parseFil((type === 'verified' ? provider?.verifiedPrice : provider?.price) ?? '')
  if (asked === undefined) {
    const value = `The storage provider ${minerId} takes no ${type === 'verified' ? 'verified ' : ''}deals.`
    throw new GatewayError('OfflineDealRefused', { value })
  }
  return { minerId, price: minPrice !== null && minPrice > asked ? minPrice : asked }
}
