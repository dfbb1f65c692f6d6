import type { Context } from '../../../src/context.js'
import { divideUp, formatAmount } from '../amounts.js'
import type { DealSubject } from '../deal-client.js'
import type { GatewayProvider } from '../deal-wire.js'
import type { DealParts } from '../parts.js'
import { askOf, whyUnfit } from '../providers.js'
import { GIB, type StatedMoney } from './quote.js'

export interface Quoted {
  readonly subject: DealSubject
  readonly money: StatedMoney
  readonly pieceSize: number
  readonly cold: number
  /** Absent where the gateway does not tell them. */
  readonly providers: readonly GatewayProvider[] | undefined
  /** Attofil. */
  readonly total: bigint | undefined
}

/** Why a deal would not be made as quoted, in sentences. */
export async function warningsFor(parts: DealParts, context: Context, quoted: Quoted): Promise<string[]> {
  const { money, cold } = quoted
  return [
    ...(money.duration === undefined ? ['No DurationEpochs is stated anywhere: there is no total.'] : []),
    ...(cold > 0 ? [`The gateway holds no copy of ${cold} of the objects: restore them first.`] : []),
    ...providerWarnings(quoted),
    ...(await capWarnings(parts, context, quoted)),
  ]
}

function providerWarnings({ money, pieceSize, providers }: Quoted): string[] {
  const { minerId, price, verified } = money
  if (!providers) return ['The gateway does not tell its storage providers: there are no candidates.']
  if (minerId === undefined) return ['No MinerId is stated anywhere: the quote is for the first candidate.']
  const provider = providers.find((one) => one.miner_id === minerId)
  if (!provider) return [`The gateway does not know the storage provider ${minerId}.`]
  const unfit = whyUnfit(provider, pieceSize)
  if (unfit) return [unfit]
  const ask = askOf(provider, verified)
  const least = ask === undefined ? 0n : divideUp(ask * BigInt(pieceSize), GIB)
  return price !== undefined && price < least
    ? [`${minerId} asks ${formatAmount(least)} fil per epoch for a piece of this size, more than the stated Price.`]
    : []
}

async function capWarnings(
  parts: DealParts,
  context: Context,
  { subject: { bucket }, total }: Quoted,
): Promise<string[]> {
  if (total === undefined) return []
  const caps = await parts.capsFor(context, bucket)
  const [all, ofBucket] = await Promise.all([parts.spending.spentToday(), parts.spending.spentToday(bucket)])
  const exceeded = [
    { cap: caps.all, spent: all, of: 'all deals together' },
    { cap: caps.bucket, spent: ofBucket, of: `the bucket ${bucket}` },
  ].filter(({ cap, spent }) => cap !== undefined && spent + total > cap)
  return exceeded.map(
    ({ cap, spent, of }) =>
      `The deal would be refused today: ${formatAmount(spent)} of the ${formatAmount(cap ?? 0n)} fil that ${of} may cost a day are spent.`,
  )
}
