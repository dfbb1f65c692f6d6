import type { Counter } from '../../common/metrics/counter.js'
import type { Metrics } from '../../common/metrics/metrics.js'
import type { AccessEntry } from '../access-log.js'

const LABELS = ['bucket'] as const

/** Counts the requests to the buckets that the operator has named. No other name of a bucket becomes a label. */
export class BucketMetrics {
  readonly #buckets: ReadonlySet<string>
  readonly #requests: Counter
  readonly #received: Counter
  readonly #sent: Counter

  constructor(metrics: Metrics, buckets: readonly string[]) {
    this.#buckets = new Set(buckets)
    const counter = (name: string, help: string, labels: readonly string[] = LABELS) =>
      metrics.counter({ name, help, labels })
    this.#requests = counter('dealgate_bucket_requests_total', 'Requests to a bucket of --metrics-buckets.', [
      ...LABELS,
      'operation',
      'status',
    ])
    this.#received = counter(
      'dealgate_bucket_request_bytes_total',
      'Bytes of request bodies to that bucket that have arrived whole.',
    )
    this.#sent = counter('dealgate_bucket_response_bytes_total', 'Bytes of response bodies from that bucket.')
  }

  /** @param complete the whole request has arrived */
  ended({ bucket, operation, status, bytesIn, bytesOut }: AccessEntry, complete: boolean): void {
    if (bucket === undefined || !this.#buckets.has(bucket)) return
    this.#requests.of(bucket, operation, String(status)).value++
    if (complete) this.#received.of(bucket).value += bytesIn
    this.#sent.of(bucket).value += bytesOut
  }
}
