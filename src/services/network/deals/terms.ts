import { type DealTerms, NetworkError, type Provider } from '../network.js'
import { formatFil, parseFil, priceOfPiece } from '../units/fil.js'

/** Allowed durations of deals in epochs: 180 to 540 days of 2880 epochs. */
const MIN_DURATION = 518_400
const MAX_DURATION = 1_555_200

/** Longest duration that a proposal can encode: about 2000 years. */
const MAX_EPOCHS = 2 ** 31 - 1

/** The conditions of a provider. */
export type Ask = Pick<Provider, 'minerId' | 'price' | 'verifiedPrice' | 'minPieceSize' | 'maxPieceSize'>

/**
 * Returns the price in attoFIL per epoch for the whole piece. Throws NetworkError TermsRefused when the terms are
 * invalid for every provider.
 */
export function checkTerms(terms: DealTerms): bigint {
  const price = parseFil(terms.price)
  if (price === undefined) {
    throw new NetworkError(
      'TermsRefused',
      `The price "${terms.price.slice(0, 64)}" is not a decimal number in fil, such as 0.000005, with at most 18 digits behind the point.`,
    )
  }
  if (!Number.isSafeInteger(terms.duration) || terms.duration < 1 || terms.duration > MAX_EPOCHS) {
    throw new NetworkError('TermsRefused', 'The duration is not a whole number of epochs above 0.')
  }
  return price
}

/** Returns why a provider with this ask rejects the deal, as a sentence; undefined when it accepts. */
export function reasonToReject(ask: Ask, terms: DealTerms, price: bigint, pieceSize: number): string | undefined {
  const rejects = `Provider ${ask.minerId} rejects the deal:`
  if (terms.verifiedDeal && ask.verifiedPrice === '') return `${rejects} it takes no verified deals.`
  if (terms.duration < MIN_DURATION || terms.duration > MAX_DURATION) {
    return `${rejects} its duration of ${terms.duration} epochs is not within ${MIN_DURATION} to ${MAX_DURATION}.`
  }
  if (pieceSize < ask.minPieceSize) {
    return `${rejects} its piece of ${pieceSize} bytes is smaller than ${ask.minPieceSize}.`
  }
  if (pieceSize > ask.maxPieceSize) {
    return `${rejects} its piece of ${pieceSize} bytes is larger than ${ask.maxPieceSize}.`
  }
  const perGiB = terms.verifiedDeal ? ask.verifiedPrice : ask.price
  const asked = priceOfPiece(parseFil(perGiB) ?? 0n, pieceSize)
  if (price < asked) {
    return `${rejects} ${terms.price} fil per epoch is below ${formatFil(asked)}, its price for a piece of ${pieceSize} bytes.`
  }
  return undefined
}
