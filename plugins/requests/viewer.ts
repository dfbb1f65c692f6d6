import { type Context, S3Error, z } from 'dealgate/plugin'
import type { Entry } from './entry.js'

/** What a caller may see of the requests. Each bucket has the time since which it is the caller's, ms since 1970. */
export const viewerSchema = z.object({
  /** Sees every request. */
  all: z.boolean(),
  /** Canonical id of the account whose requests it sees; absent for a key pair that sees its own alone. */
  account: z.string().optional(),
  accessKeyId: z.string(),
  /** Name of the session, where a policy limits it: it sees its own requests, and not those of its key pair. */
  session: z.string().optional(),
  buckets: z.array(z.tuple([z.string(), z.number()])),
})

type Viewer = z.infer<typeof viewerSchema>

/** Times of buckets may be whole seconds: what happened in the first one may have been in a former bucket. */
const FORMER_MS = 1000

/** @param checks for a key pair with limits: a bucket that it may not list is none of its own */
export async function viewerOf(context: Context): Promise<Viewer> {
  const { caller, gateway, canonicalId } = context
  const { identity } = caller ?? {}
  if (!identity) throw new S3Error('AccessDenied')
  const { accessKeyId, session } = identity
  const isSession = session?.policy !== undefined
  const limited = identity.rights !== undefined || identity.policies !== undefined || isSession
  if (!limited && !identity.account) return { all: true, accessKeyId, buckets: [] }
  const buckets: Viewer['buckets'] = []
  for (const { name, creationDate } of await gateway.listBuckets()) {
    if (limited && !(await maySee(name, context))) continue
    buckets.push([name, Date.parse(creationDate) + FORMER_MS])
  }
  const own = limited ? { ...(isSession && { session: session.name }) } : { account: canonicalId }
  return { all: false, ...own, accessKeyId, buckets }
}

async function maySee(bucket: string, { checks, authorizer }: Context): Promise<boolean> {
  try {
    checks.requireWholeBucket(bucket, 'read')
    await authorizer.requireAction('s3:ListBucket', { bucket })
    return true
  } catch (error) {
    if (error instanceof S3Error && error.code === 'AccessDenied') return false
    throw error
  }
}

/** True for what a viewer may see of the entries of one time after the other. */
export function sees(viewer: Viewer): (entry: Entry, ms: number) => boolean {
  if (viewer.all) return () => true
  const since = new Map(viewer.buckets)
  return (entry, ms) => isOwn(viewer, entry) || ms >= (since.get(entry.bucket ?? '') ?? Number.POSITIVE_INFINITY)
}

function isOwn({ account, accessKeyId, session }: Viewer, { signer }: Entry): boolean {
  if (!signer) return false
  if (account !== undefined) return signer.account === account
  return signer.accessKeyId === accessKeyId && (session === undefined || signer.session === session)
}

/**
 * The entry without what this viewer may not see: the key pairs of other accounts, and reasons that quote policies
 * which it may not read.
 */
export function shownTo(viewer: Viewer, entry: Entry): Entry {
  if (viewer.all) return entry
  const { signer, refusal } = entry
  const own = isOwn(viewer, entry)
  const inOwn = entry.bucket === undefined || viewer.buckets.some(([name]) => name === entry.bucket)
  // A key pair with limits, which has no account here, learns no more than the client was told.
  const knows =
    viewer.account !== undefined && inOwn && (own || !signer || /: the bucket policy: /.test(refusal?.reason ?? ''))
  return {
    ...entry,
    signer: signer && !own ? { accessKeyId: '', account: signer.account } : signer,
    refusal: refusal && !refusal.told && !knows ? { ...refusal, reason: '' } : refusal,
  }
}
