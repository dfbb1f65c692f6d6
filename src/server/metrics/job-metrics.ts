import type { Metrics } from '../../common/metrics/metrics.js'
import type { JobsOverview } from '../../plugins/jobs/overview.js'
import { remembered } from './remembered.js'

/** The jobs by kind and state. All processes on one state see the same jobs. */
export function jobMetrics(metrics: Metrics, overview: () => Promise<JobsOverview>): void {
  const read = remembered(overview)
  metrics.gauge({
    name: 'dealgate_jobs',
    help: 'Jobs by kind and state, those that have ended as long as they are kept.',
    aggregator: 'max',
    read: async () =>
      (await read()).counts.map(({ kind, status, count }) => ({ labels: { kind, status }, value: count })),
  })
  metrics.gauge({
    name: 'dealgate_jobs_oldest_age_seconds',
    help: 'Age of the oldest job of a kind that has not ended.',
    aggregator: 'max',
    read: async () => (await read()).oldest.map(({ kind, ageMs }) => ({ labels: { kind }, value: ageMs / 1000 })),
  })
}
