import { type RunningJob, S3Error } from 'dealgate'
import pMap from 'p-map'
import type { OfflineDealInput } from '../records/inputs.js'
import type { TaskRecord } from './task-records.js'

const PAGE = 100
const AT_ONCE = 8

/**
 * Tells the objects of an offline deal its task, as `task-uuid` of their metadata: those that were there when the deal
 * was requested. Idempotent. Throws ServiceUnavailable.
 */
export async function tellTask(job: RunningJob<OfflineDealInput>, { task, sent }: TaskRecord): Promise<void> {
  if (!task?.uuid) return
  const { context, input, signal, log } = job
  const { bucket, prefix = '' } = input
  let told = 0
  for (let after = ''; ; ) {
    signal.throwIfAborted()
    const page = await context.store.list(bucket, { prefix, delimiter: '', after, limit: PAGE })
    const objects = page.entries.flatMap((entry) => (entry.kind === 'object' ? [entry] : []))
    await pMap(
      objects.filter(({ lastModified }) => Date.parse(lastModified) <= sent),
      async ({ key }) => {
        try {
          const object = await context.store.find(bucket, key)
          if (!object || Date.parse(object.lastModified) > sent) return
          await context.store.annotate(bucket, key, object.stamp, (archive) => ({
            ...archive,
            facts: { ...archive?.facts, 'task-uuid': task.uuid },
          }))
        } catch (err) {
          if (!(err instanceof S3Error) || err.status >= 500) throw err
          log.info({ err, bucket, key }, 'an object could not be told its task')
        }
      },
      { concurrency: AT_ONCE },
    )
    told += objects.length
    job.report({ phase: 'Telling', tasks: { total: told, succeeded: told, failed: 0 } })
    const last = objects.at(-1)
    if (!page.truncated || !last) return
    after = last.key
  }
}
