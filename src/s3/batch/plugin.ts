import { Pace } from '../../../common/pace.js'
import { HOUR_MS } from '../../../common/time.js'
import type { Decide, Perform } from '../../api/child-request.js'
import type { Jobs } from '../../api/context.js'
import type { Plugin } from '../../api/plugin.js'
import { hasEnded } from '../../plugins/jobs/record.js'
import { BatchJobs } from './batch-jobs.js'
import { batchCalls } from './calls.js'
import { controlOperations } from './control-operations.js'
import { Live } from './live.js'
import { CHECKPOINT } from './prepare.js'
import { BatchRecords } from './records.js'
import { type BatchDeps, batchJobs } from './run.js'
import { Turns } from './turns.js'

/** Tasks of a process that work at the same time: those of two jobs. */
const MAX_WORKING = 16

/** Tasks that may take long besides, while others wait: those of sixteen jobs that read whole objects. */
const MAX_LONG = 64

interface BatchPluginDeps {
  readonly perform: Perform
  readonly decide: Decide
  /** Requests per second that the jobs of a process make. */
  readonly rate: number
}

/** The plugin of jobs that do one thing to many objects. */
export function batchPlugin({ perform, decide, rate }: BatchPluginDeps): Plugin {
  const live = new Live()
  let started: { readonly deps: BatchDeps; readonly jobs: BatchJobs } | undefined
  const running = () => {
    if (!started) throw new Error('the plugin is not started')
    return started
  }
  return {
    name: 'batch',
    operations: [
      ...batchCalls(
        () => running().jobs,
        () => running().deps.now(),
      ),
      ...controlOperations(() => running().jobs),
    ],
    jobs: [
      {
        ...batchJobs(() => running().deps),
        admitAgain: (job, request, context) => running().jobs.admitAgain(job, request, context),
      },
    ],
    async start(host) {
      const records = new BatchRecords(host.state)
      const own = {
        jobs: host.own.jobs,
        now: host.now,
        turns: new Turns({ most: MAX_WORKING, mostLong: MAX_LONG }),
        pace: new Pace(rate),
      }
      started = { deps: { records, perform, live, ...own }, jobs: new BatchJobs({ records, live, decide }) }
      host.schedule({
        name: 'sweep',
        everySeconds: HOUR_MS / 1000,
        run: ({ mayGoOn }) => sweep(records, host.own.jobs, mayGoOn),
      })
    },
  }
}

/** Removes what jobs have left: the rows of those that have ended otherwise than by their own run, and old records. */
async function sweep(records: BatchRecords, jobs: Pick<Jobs, 'get'>, mayGoOn: () => boolean): Promise<void> {
  for await (const [id, { listing, cleared }] of records.jobs.entries()) {
    if (!mayGoOn()) return
    const job = await jobs.get(id)
    if (job && !hasEnded(job.status)) continue
    if (!cleared) {
      // A chunk may have been written behind the last checkpoint.
      await records.clear(id, listing.chunks + CHECKPOINT)
      await records.change(id, (record) => ({ ...record, cleared: true }))
    }
    if (!job) await records.jobs.delete(id)
  }
}
