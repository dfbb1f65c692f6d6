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
  const expires =
    endEpoch !== undefined && epoch !== undefined && epochSeconds !== undefined
      ? now + (endEpoch - epoch) * epochSeconds * 1000
      : undefined
  return {
    state: told.state,
    asked: now,
    ...(told.message && { message: told.message }),
    ...(told.pieceCid && { pieceCid: told.pieceCid }),
    ...(told.pieceSize && { pieceSize: told.pieceSize }),
    ...(startEpoch !== undefined && { startEpoch }),
    ...(endEpoch !== undefined && { endEpoch }),
    ...(expires !== undefined && Number.isSafeInteger(Math.round(expires)) && { expires: Math.round(expires) }),
  }
}
