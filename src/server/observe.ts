import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from '../../common/log.js'
import type { Metrics } from '../../common/metrics.js'
import { type AccessEntry, describeRequest, logFailure, type OnDone, type RequestFacts } from './access-log.js'
import type { BucketLogs } from './bucket-logs.js'
import { type EndedFacts, type PluginsOfRequests, requestTeller } from './ended-request.js'
import { BucketMetrics, RequestMetrics } from './metrics/request-metrics.js'
import type { ProxyOptions } from './proxy-options.js'
import { s3AccessLine } from './s3-access-line.js'
import { RequestSpans } from './tracing.js'

interface ObserveDeps {
  readonly metrics: Metrics
  readonly plugins: PluginsOfRequests
  readonly log: Logger
  readonly options: Pick<ProxyOptions, 'metricsBuckets' | 'accessFormat' | 'accessLine'>
  /** Names of all operations. */
  readonly operations: ReadonlySet<string>
  /** Whether requests are logged now. */
  readonly access: () => boolean
}

/** What is measured, traced and logged of each request. */
export interface Observation {
  /** Serves a request under observation. */
  serve(incoming: IncomingMessage, outgoing: ServerResponse, serve: () => void): void
  /** @param facts all that is known, of a request that this server has not forwarded */
  ended(...of: [...Parameters<OnDone>, facts?: EndedFacts]): void
}

export function observeRequests(deps: ObserveDeps): Observation {
  const { metrics, plugins, log, options, operations, access } = deps
  const requests = new RequestMetrics(metrics, operations)
  const buckets = new BucketMetrics(metrics, options.metricsBuckets ?? [])
  const spans = new RequestSpans()
  const logAccess = accessLogger(log, options)
  const tell = requestTeller(plugins, log)
  return {
    serve(incoming, outgoing, serve) {
      requests.began()
      spans.run(incoming, outgoing, serve)
    },
    ended(entry, incoming, outgoing, facts = { incoming }) {
      requests.ended(entry, incoming.complete)
      buckets.ended(entry, incoming.complete)
      spans.ended(entry, outgoing)
      logFailure(log, entry)
      if (access()) logAccess(entry, incoming)
      tell?.(entry, facts)
    },
  }
}

interface EndDeps extends Pick<Observation, 'ended'> {
  readonly bucketLogs: Pick<BucketLogs, 'ended'> | undefined
}

/** Records a request that has been answered, also in the log of its bucket. */
export function endRecorder({ ended, bucketLogs }: EndDeps): (facts: RequestFacts) => void {
  return (facts) => {
    const entry = describeRequest(facts)
    ended(entry, facts.incoming, facts.outgoing, facts)
    bucketLogs?.ended(entry, facts)
  }
}

function accessLogger(
  log: Logger,
  { accessFormat = 'json', accessLine }: ObserveDeps['options'],
): (entry: AccessEntry, incoming: IncomingMessage) => void {
  if (accessLine && accessFormat === 's3')
    return (entry, incoming) => accessLine(s3AccessLine(entry, incoming, Date.now()))
  return ({ cause: _, ...access }) => {
    if (accessLine) accessLine(JSON.stringify({ time: new Date().toISOString(), access }))
    else log.info({ access })
  }
}
