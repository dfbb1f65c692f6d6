import { type Context, type ReplyHeaders, S3Error, type StoredObject } from 'dealgate/plugin'
import { z } from 'zod'

/** What a bucket says of objects that are not encrypted and are to go into a deal or to a public network. */
export const publicNetwork = z
  .enum(['encrypted-only', 'warn', 'allow'])
  .describe(
    'What becomes of deals and paid uploads of objects that this server has not encrypted: refused, made with a warning, or made. Default: warn.',
  )

/**
 * The header that has the warning. A header has no text beyond ASCII: such characters of a key are in percent-encoding.
 */
export function warningHeaders(warning: string | undefined): ReplyHeaders {
  return { 'x-dealgate-warning': warning?.toWellFormed().replace(/[^\x20-\x7e]+/g, encodeURIComponent) }
}

interface PublicContent {
  readonly bucket: string
  /** Absent for all objects below `prefix`. */
  readonly key?: string | undefined
  /** Revision of the version of the object; absent for the current one. */
  readonly revision?: string | undefined
  readonly prefix?: string | undefined
  /** Ends a listing. */
  readonly signal?: AbortSignal | undefined
}

const PAGE = 1000

/**
 * Resolves to the warning that everyone can read what is about to become public; undefined where it is encrypted or the
 * bucket allows it. Lists objects until one is not encrypted.
 * @param rule of the bucket
 * @param isPublic true for an object that a deal has made public before: it is not refused. Default: for none
 * @throws S3Error ObjectNotEncrypted where the bucket wants encrypted objects alone
 */
export async function publicWarning(
  { store }: Pick<Context, 'store'>,
  content: PublicContent,
  rule: z.output<typeof publicNetwork> = 'warn',
  isPublic: (object: StoredObject) => Promise<boolean> = async () => false,
): Promise<string | undefined> {
  if (rule === 'allow') return undefined
  let warning: string | undefined
  for await (const object of plainObjects(store, content)) {
    if (rule === 'encrypted-only' && !(await isPublic(object))) return plainWarning(content.bucket, object.key, rule)
    warning ??= plainWarning(content.bucket, object.key)
    if (rule === 'warn') break
  }
  return warning
}

/** The warning of `publicWarning` for an object that is known to be not encrypted. */
export function plainWarning(
  bucket: string,
  key: string,
  rule: z.output<typeof publicNetwork> = 'warn',
): string | undefined {
  if (rule === 'allow') return undefined
  const shown = key.length > SHOWN ? `${key.slice(0, SHOWN)}...` : key
  if (rule === 'warn')
    return `The object ${shown} is not encrypted: everyone who has its CID can read it, for as long as a provider keeps it.`
  throw new S3Error('ObjectNotEncrypted', {
    message: `The object ${shown} is not encrypted, and the bucket has PublicNetwork "encrypted-only" in its deal configuration: store it again with x-amz-server-side-encryption, such as by a copy onto itself.`,
    fields: { BucketName: bucket, Key: key },
  })
}

/** Characters of a key in a message. */
const SHOWN = 200

/** Objects that everyone could read. An empty one, such as a folder of a console, has nothing to read. */
async function* plainObjects(
  store: Context['store'],
  { bucket, key, revision, prefix = '', signal }: PublicContent,
): AsyncGenerator<StoredObject> {
  // Where the record of an object is lost, its entry in a listing does not tell that it is encrypted.
  const findPlain = async (one: string) => {
    const object = await store.find(bucket, one, revision === undefined ? undefined : { revision })
    return object?.size === 0 || object?.encrypted ? undefined : object
  }
  if (key !== undefined) {
    const object = await findPlain(key)
    if (object) yield object
    return
  }
  for (let after = '', truncated = true; truncated; ) {
    signal?.throwIfAborted()
    const page = await store.list(bucket, { prefix, delimiter: '', after, limit: PAGE })
    for (const entry of page.entries) {
      if (entry.kind !== 'object') continue
      const object = entry.storedSize === undefined && entry.size > 0 ? await findPlain(entry.key) : undefined
      if (object) yield object
      after = entry.key
    }
    truncated = page.truncated
  }
}
