import type { Job, JobQuery } from '../job.js'
import type { IndexEntry } from './job-index.js'
import type { JobStore } from './job-store.js'
import { hasEnded, type JobRecord } from './record.js'

/** Number of records that are read concurrently. */
const BATCH = 32

/** Lists jobs, newest first. Jobs that the index rules out are skipped without reading their records. */
export async function listJobs(
  store: JobStore,
  query: JobQuery,
  present: (record: JobRecord) => JobRecord,
): Promise<Job[]> {
  const found: Job[] = []
  const ids = wanted(store, query)
  while (found.length < query.limit) {
    const batch = take(ids, BATCH)
    if (batch.length === 0) break
    const records = await Promise.all(batch.map((id) => store.read(id)))
    for (const record of records) {
      if (!record) continue
      const { job } = present(record)
      if (query.status !== undefined && job.status !== query.status) continue
      if (query.matches?.(job) !== false) found.push(job)
    }
  }
  return found.slice(0, query.limit)
}

function* wanted({ index }: JobStore, query: JobQuery): Generator<string> {
  for (const [id, entry] of index.newestFirst(query.before)) if (mayBe(entry, query)) yield id
}

function mayBe({ kind, accessKeyId, end }: IndexEntry, query: JobQuery): boolean {
  if (query.accessKeyId !== undefined && query.accessKeyId !== accessKeyId) return false
  if (query.plugin !== undefined && !kind.startsWith(`${query.plugin}:`)) return false
  if (query.status === undefined) return true
  return hasEnded(query.status) ? end?.status === query.status : end === undefined
}

function take<T>(items: Generator<T>, count: number): T[] {
  const taken: T[] = []
  for (let next = items.next(); !next.done; next = items.next()) {
    taken.push(next.value)
    if (taken.length === count) break
  }
  return taken
}
