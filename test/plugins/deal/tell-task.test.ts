import t from 'tap'
import type { OfflineDealInput } from '../../../plugins/deal/jobs/inputs.js'
import { type TaskRecord, tellTask } from '../../../plugins/deal/offline/task-records.js'
import type { RunningJob } from '../../../src/api/context.js'
import type { JobProgress } from '../../../src/api/jobs.js'

const keys = Array.from({ length: 250 }, (_, n) => `key-${1000 + n}`)

/** A job whose methods need their object, as those of a server do. */
class Telling {
  readonly #reports: Partial<JobProgress>[] = []
  readonly told = new Map<string, unknown>()
  readonly input = { bucket: 'photos' }
  readonly signal = new AbortController().signal
  readonly context = {
    store: {
      list: async (_bucket: string, { after, limit }: { after: string; limit: number }) => {
        const found = keys.filter((key) => key > after)
        const entries = found
          .slice(0, limit)
          .map((key) => ({ kind: 'object', key, lastModified: '2026-01-01T00:00:00Z' }))
        return { entries, truncated: found.length > limit }
      },
      find: async (_bucket: string, key: string) => ({ key, stamp: 's', lastModified: '2026-01-01T00:00:00Z' }),
      annotate: async (_bucket: string, key: string, _stamp: string, change: (archive: undefined) => object) => {
        this.told.set(key, change(undefined))
        return true
      },
    },
  }

  report(progress: Partial<JobProgress>): void {
    this.#reports.push(progress)
  }

  get last() {
    return this.#reports.at(-1)
  }
}

t.test('all objects of a task are told it, on every page of the listing', async (t) => {
  const job = new Telling()
  const record = { sent: Date.parse('2026-02-01T00:00:00Z'), task: { uuid: 'u-1' } }
  await tellTask(job as unknown as RunningJob<OfflineDealInput>, record as TaskRecord)
  t.same([...job.told.keys()].sort(), keys)
  t.same(job.told.get('key-1249'), { facts: { 'task-uuid': 'u-1' } })
  t.match(job.last, { phase: 'Telling', tasks: { total: 250, succeeded: 250 } })
})
