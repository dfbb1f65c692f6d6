import type { DealClient } from '../deal-client.js'
import type { GatewayDealState } from '../deal-wire.js'
import type { LiveState } from '../records/deal-record.js'

/**
 * Queries the present state of a deal; undefined when the gateway does not know the deal.
 * @param now ms since 1970
 * @param before the state of the query before: its expiry is kept unless it has really changed
 */
export async function askState(
  client: DealClient,
  dealCid: string,
  now: number,
  epochSeconds: number | undefined,
  before: LiveState | undefined,
): Promise<LiveState | undefined> {
  const told = await client.state(dealCid)
  return told && steady(liveOf(told, now, epochSeconds), before, (told.epochSeconds ?? epochSeconds ?? 0) * 1000)
}

/**
 * Keeps the expiry of the query before if it differs by no more than rounding: the network counts whole epochs and the
 * answer takes time, so that an expiry computed from the current epoch differs by up to an epoch and the time of a
 * call.
 * @param epochMs length of an epoch
 */
export function steady(live: LiveState, before: LiveState | undefined, epochMs: number): LiveState {
  if (live.expires === undefined || before?.expires === undefined || live.endEpoch !== before.endEpoch) return live
  const same = Math.abs(live.expires - before.expires) <= 2 * epochMs + SLACK_MS
  return same ? { ...live, expires: before.expires } : live
}

/** Longest time that an answer is assumed to take, ms. */
const SLACK_MS = 5000

function liveOf(told: GatewayDealState, now: number, configured: number | undefined): LiveState {
  const { startEpoch, endEpoch, epoch } = told
  const epochSeconds = told.epochSeconds ?? configured
  const span = (from: number | undefined, to: number | undefined) =>
    from === undefined || to === undefined || epochSeconds === undefined
      ? undefined
      : safe((to - from) * epochSeconds * 1000)
  const left = span(epoch, endEpoch)
  const lasts = span(startEpoch, endEpoch)
  return {
    state: told.state,
    asked: now,
    ...(told.message && { message: told.message }),
    ...(told.pieceCid && { pieceCid: told.pieceCid }),
    ...(told.pieceSize && { pieceSize: told.pieceSize }),
    ...(startEpoch !== undefined && { startEpoch }),
    ...(endEpoch !== undefined && { endEpoch }),
    ...(left !== undefined && { expires: now + left }),
    ...(lasts !== undefined && { lasts }),
  }
}

/** Undefined for a span that is too long for a date. */
function safe(ms: number): number | undefined {
  return Math.abs(ms) <= 4e15 ? Math.round(ms) : undefined
}
