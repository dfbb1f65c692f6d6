import { type ProviderDocument, publicWarning } from 'dealgate/paid'
import { type Context, formatAmount, parseAmount, type RunningJob, S3Error } from 'dealgate/plugin'
import { configurationOf } from '../configuration.js'
import type { DealSubject } from '../deal-client.js'
import type { DealDeps } from '../deps.js'
import { askOf, knownProviders, whyUnfit } from '../known-providers.js'
import { everyDealHolding } from '../records/held-deals.js'
import { estimatePieceSize, GIB } from './piece-size.js'
import { PASSED_OVER, type StatedTogether } from './resolve-terms.js'
import { type DealTerms, divideUp } from './terms.js'

interface Quoted {
  readonly subject: DealSubject
  /** Revision of the object. */
  readonly revision: string | undefined
  readonly money: StatedMoney
  readonly together: StatedTogether
  readonly pieceSize: number
  readonly cold: number
  /** Absent when the gateway does not list them. */
  readonly providers: readonly ProviderDocument[] | undefined
  /** Attofil. */
  readonly total: bigint | undefined
}

/** Reasons why a deal would not be made as quoted, in sentences. */
export async function warningsFor(deps: DealDeps, context: Context, quoted: Quoted): Promise<string[]> {
  const { money, cold, together } = quoted
  return [
    ...(money.duration === undefined ? ['No DurationEpochs is stated anywhere: there is no total.'] : []),
    ...(cold > 0 ? [retrievalWarning(cold)] : []),
    ...(together.passedOver ? [PASSED_OVER] : []),
    ...providerWarnings(deps, quoted),
    ...(await capWarnings(deps, context, quoted)),
    ...(await plainWarnings(deps, context, quoted)),
  ]
}

/**
 * Resolves to the warning for a deal of an object, or of those of a bucket, that are not encrypted. Notes it with the
 * job. An object that is in a deal is public: to refuse the next deal would protect nothing, and would lose an object
 * that the gateway has no copy of. Throws S3Error ObjectNotEncrypted.
 */
export async function publicWarningOf(
  deps: DealDeps,
  context: Pick<Context, 'store' | 'settings'>,
  content: Parameters<typeof publicWarning>[1],
  job?: Pick<RunningJob<unknown>, 'note'>,
): Promise<string | undefined> {
  const rule = (await configurationOf(context, content.bucket))?.PublicNetwork
  const warning = await publicWarning(
    context,
    content,
    rule,
    async (object) => object.cold || (await everyDealHolding(deps, object)).length > 0,
  )
  if (warning !== undefined) job?.note(warning)
  return warning
}

/** A quote is given for what would be refused, too. */
async function plainWarnings(
  deps: DealDeps,
  context: Context,
  { subject: { bucket, key }, revision }: Quoted,
): Promise<string[]> {
  try {
    const warning = await publicWarningOf(deps, context, { bucket, key, revision })
    return warning === undefined ? [] : [warning]
  } catch (error) {
    if (!(error instanceof S3Error) || error.code !== 'ObjectNotEncrypted') throw error
    return [`The deal would be refused: ${error.message}`]
  }
}

/** The gateway's interface has no price for a retrieval, and the embedded network charges nothing. */
function retrievalWarning(cold: number): string {
  return (
    `The gateway holds no copy of ${cold} of the objects and takes them from their deals first. It gives no price for that. ` +
    'If no deal delivers them, the deal is refused and costs nothing.'
  )
}

function providerWarnings(
  { options: { maxTimesAsk } }: DealDeps,
  { money, together, pieceSize, providers }: Quoted,
): string[] {
  const { minerId, price, verified } = money
  if (!providers) return ['The gateway does not list its storage providers: there are no candidates.']
  if (minerId === undefined) return ['No MinerId is stated anywhere: the quote is for the first candidate.']
  const provider = providers.find((one) => one.MinerId === minerId)
  if (!provider) return [`The gateway does not know the storage provider ${minerId}.`]
  const unfit = whyUnfit(provider, pieceSize)
  if (unfit) return [unfit]
  const ask = askOf(provider, verified)
  if (ask === undefined || price === undefined) return []
  const asked = askFor(ask, pieceSize)
  const asks = `${minerId} asks ${formatAmount(asked)} fil per epoch for a piece of this size`
  if (price < asked) return [`${asks}, more than the stated Price.`]
  if (maxTimesAsk === 'none' || together.priceConfirmed || price <= asked * BigInt(maxTimesAsk)) return []
  return [`${asks}. The stated Price is more than ${maxTimesAsk} times that: the deal is refused without ConfirmPrice.`]
}

async function capWarnings(
  deps: DealDeps,
  context: Context,
  { subject: { bucket }, total }: Quoted,
): Promise<string[]> {
  if (total === undefined) return []
  const caps = await deps.capsFor(context, bucket)
  const [all, ofBucket] = await Promise.all([deps.spending.spentToday(), deps.spending.spentToday(bucket)])
  const exceeded = [
    { cap: caps.all, spent: all, of: 'all deals together' },
    { cap: caps.bucket, spent: ofBucket, of: `the bucket ${bucket}` },
  ].filter(({ cap, spent }) => cap !== undefined && spent + total > cap)
  return exceeded.map(
    ({ cap, spent, of }) =>
      `The deal would be refused today: ${formatAmount(spent)} of the ${formatAmount(cap ?? 0n)} fil that ${of} may cost a day are spent.`,
  )
}

/** Content of a deal. */
interface Packed {
  /** Bytes of all objects together. */
  readonly bytes: number
  readonly objects: number
}

/** A price, and whether a caller with the right to pay has confirmed it. */
interface AgreedPrice {
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
  deps: Pick<DealDeps, 'options' | 'host'>,
  context: Pick<Context, 'gateway' | 'log'>,
  { terms, priceConfirmed }: AgreedPrice,
  measure: () => Packed | Promise<Packed>,
): Promise<void> {
  const { maxTimesAsk } = deps.options
  const price = parseAmount(terms.price) ?? 0n
  if (priceConfirmed || maxTimesAsk === 'none' || price === 0n) return
  const provider = (await knownProviders(deps, context))?.find(({ MinerId }) => MinerId === terms.minerId)
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

/** The terms that concern the money, as far as they are stated. */
export interface StatedMoney {
  readonly minerId: string | undefined
  /** Attofil per epoch for the whole piece. */
  readonly price: bigint | undefined
  /** Epochs. */
  readonly duration: number | undefined
  readonly verified: boolean
}
