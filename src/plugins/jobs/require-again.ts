import type { ActionResource } from '../../api/access.js'
import type { Context } from '../../api/context.js'
import type { Job } from '../../api/jobs.js'
import type { S3Request } from '../../api/request.js'

/**
 * Throws AccessDenied unless the caller may have the job run again, or go on: it needs what a request that creates the
 * job needs, and every right that the job will use, because a job always acts with its own rights.
 */
export async function requireAgain(job: Job, request: S3Request, context: Context): Promise<void> {
  await context.checks.requireAction(job.operation, placeOf(job))
  await context.jobs.admitAgain(job, request, context)
}

/** Decides as for the call that has created the job: `authorize` of calls/prepare.ts. Throws AccessDenied. */
export function requireReading(job: Job, { checks }: Context): void {
  const { bucket, key } = placeOf(job)
  if (bucket === undefined) return
  if (key === undefined) checks.requireWholeBucket(bucket, 'read')
  else checks.requireKey(bucket, key, 'read')
}

function placeOf({ resource }: Job): ActionResource & { readonly bucket?: string | undefined } {
  const [, bucket, key] = /^\/([^/]+)(?:\/(.+))?$/s.exec(resource) ?? []
  return { bucket, key }
}
