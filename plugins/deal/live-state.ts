import type { DealClient } from './deal-client.js'
import type { GatewayDealState } from './deal-wire.js'
import type { LiveState } from './records/deal-record.js'

/** What the network says of a deal now; undefined where the gateway does not know it. @param now ms since 1970 */
export async function askState(
  client: DealClient,
  dealCid: string,
  now: number,
  epochSeconds: number | undefined,
): Promise<LiveState | undefined> {
  const told = await client.state(dealCid)
  return told && liveOf(told, now, epochSeconds)
}

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

/** Undefined for a number of ms that no date can be made of. */
function safe(ms: number): number | undefined {
  return Math.abs(ms) <= 4e15 ? Math.round(ms) : undefined
}
