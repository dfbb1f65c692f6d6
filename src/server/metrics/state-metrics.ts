import type { Metrics } from '../../common/metrics/metrics.js'

/** Returns what takes the time of each call to the store of records, seconds. */
export function stateMetrics(metrics: Metrics): (seconds: number) => void {
  const calls = metrics
    .histogram({
      name: 'dealgate_state_call_duration_seconds',
      help: 'Time of calls to the store of records: SQLite, Redis or PostgreSQL.',
    })
    .of()
  return (seconds) => calls.observe(seconds)
}
