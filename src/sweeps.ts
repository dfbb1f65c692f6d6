import type { Logger } from './log.js'
import type { State } from './state/state.js'
import { partChecksumRecords } from './store/part-checksums.js'

const EVERY_MS = 60 * 60 * 1000

/**
 * Removes what nobody needs any more from the state, now and every hour. Returns what ends it.
 * @param uploadExpiryMs age at which an unfinished multipart upload is given up; 0 for never
 */
export function startSweeps(state: State, uploadExpiryMs: number, log: Logger): () => void {
  const partChecksums = partChecksumRecords(state)
  const sweep = (what: string, run: () => Promise<number>) => {
    run().then(
      (count) => count > 0 && log.info({ count }, `removed ${what}`),
      (err) => log.error({ err }, `removing ${what} failed`),
    )
  }
  const sweepAll = () => {
    sweep('abandoned multipart uploads', () =>
      state.uploads.sweep(uploadExpiryMs > 0 ? Date.now() - uploadExpiryMs : 0),
    )
    sweep('checksums of parts of objects that are gone', () => partChecksums.sweep())
  }
  sweepAll()
  const timer = setInterval(sweepAll, EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}
