import { type Context, S3Error, type StoredObject } from 'dealgate/plugin'
import type { DealDeps } from '../deps.js'

/** Largest difference between the clocks of gateway and server, ms: the one that signatures allow. */
const MAX_SKEW_MS = 15 * 60_000

/** Versions per page. */
const PAGE = 100

interface NamedJob {
  readonly id: string
  /** ms since 1970. */
  readonly created: number
}

type Looks = Pick<Context, 'store' | 'gateway'>

/**
 * The version of an object that names a job, which is created before the version is stored: the current one, or one
 * that was overwritten or hidden at once. Undefined when there is none.
 */
export async function versionNaming(
  { host }: Pick<DealDeps, 'host'>,
  context: Looks,
  { bucket, key }: { readonly bucket: string; readonly key: string },
  job: NamedJob,
): Promise<StoredObject | undefined> {
  const current = await context.store.findToWrite(bucket, key)
  if (current?.archive?.jobId === job.id) return current
  if ((current && current.versionId === undefined) || !(await context.gateway.features()).versions) return undefined
  return lookFor(context, bucket, key, job).catch((error) => {
    // A caller who may write an object need not be able to list its versions.
    if (!(error instanceof S3Error) || error.code !== 'AccessDenied') throw error
    return lookFor(host.own, bucket, key, job)
  })
}

/** Looks from the newest version to the first one that is older than the job. */
async function lookFor(
  { store }: Pick<Looks, 'store'>,
  bucket: string,
  key: string,
  { id, created }: NamedJob,
): Promise<StoredObject | undefined> {
  for (let keyMarker = '', versionMarker = ''; ; ) {
    const query = { prefix: key, delimiter: '', keyMarker, versionMarker, limit: PAGE }
    const { entries, truncated, nextKey, nextVersion } = await store.listVersions(bucket, query)
    for (const entry of entries) {
      if (entry.kind === 'prefix') return undefined
      const found = entry.kind === 'version' ? entry.object : entry
      if (found.key !== key || Date.parse(found.lastModified) < created - MAX_SKEW_MS) return undefined
      if (entry.kind === 'version' && entry.object.archive?.jobId === id) return entry.object
    }
    if (!truncated || nextKey !== key || nextVersion === undefined) return undefined
    keyMarker = nextKey
    versionMarker = nextVersion
  }
}
