import type { Context } from '../../context.js'
import type { Job } from '../job.js'
import { noSuchJob } from '../record.js'

type Asking = Pick<Context, 'caller' | 'jobs'>

/**
 * Whose jobs the caller sees: '' for those of everybody. Whoever has rights or a gateway account of his own is told of his own jobs alone, as he is of his own keys.
 */
export function seenBy({ caller }: Pick<Context, 'caller'>): string {
  const identity = caller?.identity
  return identity?.rights || identity?.account ? identity.accessKeyId : ''
}

/** Throws NoSuchJob also for one that the caller is not to know of. */
export async function jobOf(id: string, context: Asking): Promise<Job> {
  const job = await context.jobs.get(id)
  const whose = seenBy(context)
  if (!job || (whose !== '' && job.accessKeyId !== whose)) throw noSuchJob(id)
  return job
}
