import { withinDeadline } from '../../common/deadline.js'

/** Time for which a value that costs reads of records is shown again, ms: scrapes come every few seconds. */
const KEPT_MS = 10_000
/** Longest wait for such a value, ms. Prometheus waits ten seconds for the whole scrape. */
const PATIENCE_MS = 3_000

/** Reads at most every ten seconds, one read at a time. A failure is not kept. */
export function remembered<T>(read: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | undefined
  let until = Number.NEGATIVE_INFINITY
  return () => {
    if (!current || performance.now() > until) {
      const reading = read()
      current = reading
      until = Number.POSITIVE_INFINITY
      reading.then(
        () => {
          until = performance.now() + KEPT_MS
        },
        () => {
          if (current === reading) current = undefined
        },
      )
    }
    return withinDeadline(current, PATIENCE_MS)
  }
}
