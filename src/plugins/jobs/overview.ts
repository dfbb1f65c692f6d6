import type { JobStatus } from './job.js'
import type { JobStore } from './records/job-store.js'
import { timeOfUlid } from './ulid.js'

/** How many jobs there are. */
export interface JobsOverview {
  readonly counts: readonly { readonly kind: string; readonly status: JobStatus | 'Open'; readonly count: number }[]
  /** The oldest job of each kind that has not ended. */
  readonly oldest: readonly { readonly kind: string; readonly ageMs: number }[]
}

/** Most records of jobs that are read; further jobs that have not ended are `Open`. */
const MAX_READ = 500

/** Counts the jobs. The index tells how jobs have ended; the state of the others is in their records. */
export async function jobsOverview(store: JobStore, now: number): Promise<JobsOverview> {
  const counts = new Map<string, Map<JobStatus | 'Open', number>>()
  const oldest = new Map<string, number>()
  let read = 0
  for (const [id, { kind, end }] of store.index.oldestFirst()) {
    let status: JobStatus | 'Open' = end?.status ?? 'Open'
    if (!end) {
      if (!oldest.has(kind)) oldest.set(kind, now - timeOfUlid(id.slice(2)))
      if (read++ < MAX_READ) status = (await store.read(id))?.job.status ?? 'Open'
    }
    const ofKind = counts.get(kind) ?? new Map()
    counts.set(kind, ofKind.set(status, (ofKind.get(status) ?? 0) + 1))
  }
  return {
    counts: [...counts].flatMap(([kind, statuses]) =>
      [...statuses].map(([status, count]) => ({ kind, status, count })),
    ),
    oldest: [...oldest].map(([kind, ageMs]) => ({ kind, ageMs: Math.max(0, ageMs) })),
  }
}
