import { S3Error } from 'dealgate/plugin'
import pMap from 'p-map'
import type { Row } from './order.js'
import type { withEstimate } from './prepare.js'
import type { Send } from './task.js'
import type { TaskKind } from './task-kinds.js'

/**
 * Sums up what the tasks of rows would move and cost, without doing them. A task that would fail is counted.
 * @param check throws where the job goes no further
 * @throws S3Error of the gateway, or InvalidAccessKeyId
 */
export async function estimateRows(
  rows: readonly Row[],
  kind: TaskKind,
  send: Send,
  check: () => void,
): Promise<Parameters<typeof withEstimate>[1]> {
  let [bytes, failed, price] = [0, 0, 0n]
  await pMap(
    rows,
    async (row) => {
      check()
      try {
        const found = await kind.estimate(row, send)
        bytes += found.bytes
        price += found.price ?? 0n
      } catch (error) {
        if (!(error instanceof S3Error) || error.code === 'InvalidAccessKeyId' || error.status >= 500) throw error
        failed++
      }
    },
    { concurrency: kind.concurrency },
  )
  return { bytes, failed, ...(kind.spends && { price }) }
}
