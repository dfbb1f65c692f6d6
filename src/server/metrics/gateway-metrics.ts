import type { Count } from '../../common/metrics/counter.js'
import type { Distribution } from '../../common/metrics/histogram.js'
import type { Metrics } from '../../common/metrics/metrics.js'
import type { CallOutcome, GatewayWatch } from '../../gateway/watch.js'

const NO_HEADERS = Object.freeze({})

/** Counts the calls to the gateway. */
export function gatewayMetrics(metrics: Metrics): GatewayWatch {
  const calls = metrics.counter({
    name: 'dealgate_gateway_calls_total',
    help: 'Requests to the gateway, by method and outcome; `token` is repeated with another log-in. Log-ins are `web.Login`.',
    labels: ['method', 'outcome'],
  })
  const seconds = metrics.histogram({
    name: 'dealgate_gateway_call_duration_seconds',
    help: 'Time until the gateway answered: for downloads the head, for all others the whole answer.',
    labels: ['method'],
  })
  const known = new Map<string, MethodSeries>()
  const seriesOf = (method: string): MethodSeries => {
    const found = known.get(method) ?? { seconds: seconds.of(method), outcomes: {} }
    known.set(method, found)
    return found
  }
  return {
    begin(method) {
      const series = seriesOf(method)
      const began = performance.now()
      let ended = false
      return {
        headers: NO_HEADERS,
        end(outcome) {
          if (ended) return
          ended = true
          series.seconds.observe((performance.now() - began) / 1000)
          series.outcomes[outcome] ??= calls.of(method, outcome)
          series.outcomes[outcome].value++
        },
      }
    },
  }
}

interface MethodSeries {
  readonly seconds: Distribution
  readonly outcomes: { [Outcome in CallOutcome]?: Count }
}
