import { isCode } from '../../../common/errors/codes.js'
import type { Count, Counter, Distribution, Histogram, Metrics } from '../../../common/metrics.js'
import type { AccessEntry } from '../access-log.js'

/** Most codes of plugins that have a series of their own: some come from services behind them. */
const MAX_OWN_CODES = 100
const CODE = /^[A-Za-z][A-Za-z0-9]{0,63}$/

/** The series of one operation, so that a request looks nothing up but them. */
interface OperationSeries {
  readonly seconds: Distribution
  readonly received: Count
  readonly sent: Count
  readonly outcomes: Map<string, Count>
}

/** Counts requests. */
export class RequestMetrics {
  readonly #known: ReadonlySet<string>
  readonly #requests: Counter
  readonly #seconds: Histogram
  readonly #received: Counter
  readonly #sent: Counter
  readonly #series = new Map<string, Map<string, OperationSeries>>()
  readonly #ownCodes = new Set<string>()
  #begun = 0
  #ended = 0

  /** @param operations the names of all operations */
  constructor(metrics: Metrics, operations: ReadonlySet<string>) {
    this.#known = operations
    const labels = ['operation', 'plugin']
    this.#requests = metrics.counter({
      name: 'dealgate_requests_total',
      help: 'Requests that have ended, by operation, plugin, HTTP status and S3 error code (OK, Cut if the client left, or Other beyond 100 codes of plugins).',
      labels: [...labels, 'status', 'code'],
    })
    this.#seconds = metrics.histogram({
      name: 'dealgate_request_duration_seconds',
      help: 'Time from the head of a request to the end of its response.',
      labels,
    })
    this.#received = metrics.counter({
      name: 'dealgate_request_bytes_total',
      help: 'Bytes of request bodies that have arrived whole.',
      labels,
    })
    this.#sent = metrics.counter({
      name: 'dealgate_response_bytes_total',
      help: 'Bytes of response bodies that were passed to the connection.',
      labels,
    })
    metrics.gauge({
      name: 'dealgate_requests_in_flight',
      help: 'Requests that have not ended.',
      read: () => this.#begun - this.#ended,
    })
  }

  began(): void {
    this.#begun++
  }

  /** @param complete the whole request has arrived */
  ended(entry: AccessEntry, complete: boolean): void {
    this.#ended++
    const series = this.#of(entry)
    series.seconds.observe(entry.ms / 1000)
    // A client may declare much and send nothing.
    if (complete) series.received.value += entry.bytesIn
    series.sent.value += entry.bytesOut
    const code = entry.error === undefined ? (entry.cut ? 'Cut' : 'OK') : this.#bounded(entry.error)
    const outcome = `${entry.status} ${code}`
    let count = series.outcomes.get(outcome)
    if (count === undefined) {
      count = this.#requests.of(...this.#labels(entry), String(entry.status), code)
      series.outcomes.set(outcome, count)
    }
    count.value++
  }

  #bounded(code: string): string {
    if (isCode(code) || this.#ownCodes.has(code)) return code
    if (this.#ownCodes.size === MAX_OWN_CODES || !CODE.test(code)) return 'Other'
    this.#ownCodes.add(code)
    return code
  }

  #of(entry: AccessEntry): OperationSeries {
    const [operation, plugin] = this.#labels(entry)
    let series = this.#series.get(plugin)?.get(operation)
    if (series === undefined) {
      series = {
        seconds: this.#seconds.of(operation, plugin),
        received: this.#received.of(operation, plugin),
        sent: this.#sent.of(operation, plugin),
        outcomes: new Map(),
      }
      this.#series.set(plugin, (this.#series.get(plugin) ?? new Map()).set(operation, series))
    }
    return series
  }

  /** The name of a forwarded call comes from the client. */
  #labels({ operation, plugin = 's3' }: AccessEntry): [operation: string, plugin: string] {
    if (this.#known.has(operation) || operation === 'Unknown') return [operation, plugin]
    return ['Passthrough', 'gateway']
  }
}

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
