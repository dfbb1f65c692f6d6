import { createHash } from 'node:crypto'
import { type MadeDeal, type Network, NetworkError, type OfflineDeals, type PackedCar } from '../../network/network.js'
import { formatFil, parseFil, priceOfPiece } from '../../network/units/fil.js'
import type { DealToImport } from './import-table.js'

/**
 * Proposes a deal for a CAR that a task of another program brings, without one that the network knows. The provider
 * stores it at the price of its bid, or else at its usual price, and signs for the client. The same deal for a repeated
 * call. Throws NetworkError.
 */
export async function proposeOwn(
  network: Network,
  offline: OfflineDeals,
  deal: DealToImport,
  car: PackedCar,
  signal: AbortSignal,
): Promise<MadeDeal> {
  const { minerId, isVerified, duration, fastRetrieval, bidPrice } = deal
  const provider = (await network.providers()).find((one) => one.minerId === minerId)
  const perGiB = bidPrice ?? parseFil((isVerified ? provider?.verifiedPrice : provider?.price) ?? '')
  if (perGiB === undefined) throw new NetworkError('TermsRefused', `Provider ${minerId} takes no such deals.`)
  const price = formatFil(priceOfPiece(perGiB, car.pieceSize))
  const terms = { minerId, price, duration, verifiedDeal: isVerified, fastRetrieval }
  const wallet = createHash('sha256').update(`provider ${minerId}`).digest('hex')
  return offline.propose({ reference: `task ${deal.uuid} ${deal.id}`, terms, wallet, car, signal })
}
