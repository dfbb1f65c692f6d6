import { S3Error } from '../../common/errors/s3-error.js'
import type { Gateway, GatewayObject, ListEntry, WriteOrder } from '../api/gateway.js'
import type { RemotePart, RemoteParts } from '../state/uploads/staging.js'
import { WriteRefused } from './errors.js'

/** Entries of a listing per call. */
const PAGE = 1000

/** Attempts at a write with a higher fence each. */
const MAX_ATTEMPTS = 3

/**
 * Parts as objects of one bucket, which is made when the first part arrives. No lock protects a name, because one
 * process writes it once; the fences let no late upload follow a removal.
 * @param gateway with an account that may make the bucket, and unhidden
 */
export function partsAtGateway(gateway: Gateway, bucket: string): RemoteParts {
  let made: Promise<void> | undefined

  function requireBucket(): Promise<void> {
    made ??= makeOnce(gateway, bucket).catch((error) => {
      made = undefined
      throw error
    })
    return made
  }

  async function* entries(prefix: string, delimiter: string): AsyncGenerator<ListEntry> {
    for (let after = ''; ; ) {
      const page = await gateway.list(bucket, { prefix, delimiter, after, limit: PAGE }).catch(emptyIfNone)
      yield* page.entries
      const last = page.entries.at(-1)
      if (!page.truncated || last === undefined) return
      after = last.kind === 'prefix' ? last.prefix : last.object.key
    }
  }

  return {
    async upload(name, length) {
      await requireBucket()
      const attributes = { contentType: 'application/octet-stream', headers: {}, metadata: {} }
      const upload = gateway.upload(bucket, name, length, attributes)
      return {
        write: (chunk) => upload.write(chunk),
        commit: () =>
          inOrder(async (order) => {
            await upload.commit(order)
          }),
        get unsent() {
          return upload.unsent
        },
        abort: () => upload.abort(),
      }
    },
    async find(name) {
      const found = await gateway.stat(bucket, name).catch((error) => undefinedIfNone(error))
      return found && partOf(found)
    },
    async read(name, size, sink) {
      const download = await gateway.download(bucket, name)
      if (download.object.size !== size) {
        download.discard()
        throw new S3Error('InternalError', {
          message: 'The server has lost bytes of an upload. Send them again.',
          cause: new Error(`A staged part should have ${size} bytes and has ${download.object.size}`),
        })
      }
      await download.consume(sink)
    },
    async *list(prefix) {
      for await (const entry of entries(prefix, '')) if (entry.kind === 'object') yield partOf(entry.object)
    },
    async *folders() {
      for await (const entry of entries('', '/')) if (entry.kind === 'prefix') yield entry.prefix.slice(0, -1)
    },
    remove: (name) =>
      inOrder(async (order) => {
        await gateway.remove(bucket, name, order)
      }),
  }
}

/** Two proxies may make the bucket at the same time. */
async function makeOnce(gateway: Gateway, bucket: string): Promise<void> {
  if (await gateway.bucketExists(bucket)) return
  try {
    await gateway.makeBucket(bucket)
  } catch (error) {
    if (!(await gateway.bucketExists(bucket))) throw error
  }
}

/** Writes with a fence above that of the gateway, whose clock may be ahead of this one. */
async function inOrder(write: (order: WriteOrder) => Promise<void>): Promise<void> {
  let fence = Date.now() * 1000
  for (let attempt = 1; ; attempt++) {
    try {
      return await write({ fence, ensure() {} })
    } catch (error) {
      if (!(error instanceof WriteRefused) || error.last === undefined || !error.repeatable) throw error
      if (attempt >= MAX_ATTEMPTS) throw error
      fence = Math.max(fence, error.last) + 1
    }
  }
}

function partOf({ key, size, lastModified }: GatewayObject): RemotePart {
  return { name: key, size, changed: Date.parse(lastModified) }
}

function emptyIfNone(error: unknown): { entries: readonly ListEntry[]; truncated: boolean } {
  undefinedIfNone(error)
  return { entries: [], truncated: false }
}

/** Passes every error but that of a bucket that was never made. */
function undefinedIfNone(error: unknown): undefined {
  if (!(error instanceof S3Error) || error.code !== 'NoSuchBucket') throw error
}

/**
 * Names of the buckets in which proxies stage parts of multipart uploads: one for each state store, so that proxies
 * with another store, which do not know the uploads, do not take their parts for abandoned ones.
 */
const STAGING_BUCKET = /^dealgate-staging-[0-9a-f]{16}$/

/** @param id 16 hexadecimal digits in lower case */
export function stagingBucket(id: string): string {
  return `dealgate-staging-${id}`
}

/** True for a bucket of this and of every other dealgate on the gateway: clients must not see or change any of them. */
export function isStagingBucket(bucket: string): boolean {
  return STAGING_BUCKET.test(bucket)
}
