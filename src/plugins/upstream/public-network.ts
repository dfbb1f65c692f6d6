import { z } from 'zod'
import type { Context } from '../../api/context.js'
import type { ReplyHeaders } from '../../api/request.js'
import { S3Error } from '../../common/errors/s3-error.js'

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

export interface PublicContent {
  readonly bucket: string
  /** Absent for all objects below `prefix`. */
  readonly key?: string | undefined
  readonly prefix?: string | undefined
}

const PAGE = 1000

/**
 * Resolves to the warning that everyone can read what is about to become public; undefined where it is encrypted or the
 * bucket allows it. Lists objects until one is not encrypted.
 * @param rule of the bucket
 * @throws S3Error ObjectNotEncrypted where the bucket wants encrypted objects alone
 */
export async function publicWarning(
  { store }: Pick<Context, 'store'>,
  content: PublicContent,
  rule: z.output<typeof publicNetwork> = 'warn',
): Promise<string | undefined> {
  if (rule === 'allow') return undefined
  const key = await firstPlain(store, content)
  return key === undefined ? undefined : plainWarning(content.bucket, key, rule)
}

/** As `publicWarning`, of an object that is known to be not encrypted. */
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

async function firstPlain(store: Context['store'], { bucket, key, prefix = '' }: PublicContent) {
  // Where the record of an object is lost, its entry in a listing does not tell that it is encrypted.
  const isPlain = async (one: string) => {
    const object = await store.find(bucket, one)
    return object !== undefined && object.encrypted === undefined
  }
  if (key !== undefined) return (await isPlain(key)) ? key : undefined
  for (let after = ''; ; ) {
    const { entries, truncated } = await store.list(bucket, { prefix, delimiter: '', after, limit: PAGE })
    for (const entry of entries) {
      if (entry.kind !== 'object') continue
      if (entry.storedSize === undefined && (await isPlain(entry.key))) return entry.key
      after = entry.key
    }
    if (!truncated) return undefined
  }
}
