import { HOUR_MS } from '../common/durations.js'
import { isTold } from '../common/errors/told-already.js'
import type { Logger } from '../common/log.js'
import { PeriodicTask } from '../common/periodic-task.js'
import { partChecksumRecords } from '../objects/part-checksums.js'
import type { State } from '../state/state.js'

/**
 * Removes abandoned multipart uploads and part checksums of deleted objects from the state, now and every hour.
 * @param uploadExpiryMs age at which an incomplete multipart upload is aborted, ms; 0 for never
 * @returns a function that stops the sweeps without waiting for one under way
 */
export function startSweeps(state: State, uploadExpiryMs: number, log: Logger): () => void {
  const partChecksums = partChecksumRecords(state)
  const sweep = async (what: string, run: () => Promise<number>) => {
    try {
      // Everything looks abandoned in a store that has lost its records.
      await state.requireIntact()
      const count = await run()
      if (count > 0) log.info({ count }, `removed ${what}`)
    } catch (err) {
      if (!isTold(err, log)) log.error({ err }, `removing ${what} failed`)
    }
  }
  const sweepAll = () =>
    Promise.all([
      sweep('abandoned multipart uploads', () =>
        state.uploads.sweep(uploadExpiryMs > 0 ? Date.now() - uploadExpiryMs : 0),
      ),
      sweep('part checksums of deleted objects', () => partChecksums.sweep()),
    ])
  const task = new PeriodicTask(sweepAll, (err) => log.error({ err }, 'the sweeps failed'))
  task.start(HOUR_MS)
  return () => task.stopTimer()
}
