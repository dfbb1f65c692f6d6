import { definePlugin, hasEnded, type Jobs, Pace, z } from 'dealgate/plugin'
import { BatchJobs } from './batch-jobs.js'
import { batchCalls } from './calls.js'
import { controlOperations } from './control-operations.js'
import { batchDefaults } from './defaults.js'
import { Live } from './live.js'
import { CHECKPOINT } from './prepare.js'
import { BatchRecords } from './records.js'
import { type BatchDeps, batchJobs } from './run.js'
import { Turns } from './turns.js'

const HOUR_SECONDS = 3600

/** Tasks of a process that work at the same time: those of two jobs. */
const MAX_WORKING = 16

/** Tasks that may take long besides, while others wait: those of sixteen jobs that read whole objects. */
const MAX_LONG = 64

/** Jobs that do one thing to many objects. */
export default definePlugin({
  name: 'batch',
  standard: true,
  summary: 'Jobs that do one thing to many objects: those of S3 Batch Operations, and deals.',
  options: z.object({
    rate: z
      .int()
      .min(1)
      .default(batchDefaults.rate)
      .describe('Requests per second that the jobs of a process make together; `--batch-rate` of the command line.'),
  }),
  create({ rate }, host) {
    const live = new Live()
    const records = new BatchRecords(host.state)
    const jobs = new BatchJobs({ records, live, decide: host.decide })
    const turns = new Turns({ most: MAX_WORKING, mostLong: MAX_LONG })
    const pace = new Pace(rate)
    const deps = (): BatchDeps => ({
      records,
      live,
      turns,
      pace,
      perform: host.perform,
      jobs: host.own.jobs,
      now: host.now,
    })
    return {
      operations: [...batchCalls(jobs, host.now), ...controlOperations(jobs)],
      jobs: [
        {
          ...batchJobs(deps),
          admitAgain: (job, request, context) => jobs.admitAgain(job, request, context),
        },
      ],
      async start() {
        host.schedule({
          name: 'sweep',
          everySeconds: HOUR_SECONDS,
          run: ({ mayGoOn }) => sweep(records, host.own.jobs, mayGoOn),
        })
      },
    }
  },
})

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
