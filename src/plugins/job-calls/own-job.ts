import type { Context } from '../../server/context.js'
import type { Job } from '../jobs/job.js'
import { noSuchJob } from '../jobs/records/record.js'

type Asking = Pick<Context, 'caller' | 'jobs'>

/**
 * The access key id whose jobs the caller may see; '' for all. An identity with rights or a gateway account of its own
 * sees only its own jobs, as it sees only its own keys.
 */
export function seenBy({ caller }: Pick<Context, 'caller'>): string {
  const identity = caller?.identity
  const limited = identity?.rights || identity?.policies || identity?.session?.policy || identity?.account
  return identity && limited ? identity.accessKeyId : ''
}

/** Throws NoSuchJob, also for a job that the caller may not see. */
export async function jobOf(id: string, context: Asking): Promise<Job> {
  const job = await context.jobs.get(id)
  const whose = seenBy(context)
  if (!job || (whose !== '' && job.accessKeyId !== whose)) throw noSuchJob(id)
  return job
}
