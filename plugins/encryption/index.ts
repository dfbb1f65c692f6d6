import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Context,
  defineCall,
  definePlugin,
  type JobKind,
  PageOf,
  type Records,
  type Rewrapped,
  type RunningJob,
  S3Error,
  z,
} from 'dealgate/plugin'

const KIND = 'encryption:RewrapBucket'

/** Most objects that a result names. */
const MAX_NAMED = 100

const PAGE = 100

const count = z.int().min(0)

const rewrapResult = z.object({
  Bucket: z.string(),
  JobId: z.string(),
  Rewrapped: count.describe('Objects with a new header.'),
  Current: count.describe('Objects whose header has the keys of today already.'),
  Plain: count.describe('Objects that are not encrypted.'),
  Skipped: count.describe('Encrypted objects that stay as they are.'),
  SkippedObjects: z
    .array(z.object({ Key: z.string(), Reason: z.string() }))
    .meta({ element: 'SkippedObject' })
    .describe('The first hundred.'),
  EarlierDeals: z
    .array(z.object({ Key: z.string(), Cid: z.string() }))
    .meta({ element: 'EarlierDeal' })
    .describe(
      'Rewrapped objects whose deals stay valid and open with the earlier keys: keep these. The first hundred.',
    ),
})

type RewrapResult = z.output<typeof rewrapResult>

interface RewrapInput {
  readonly bucket: string
  readonly prefix: string
}

/** What a job has done, so that it continues there after a restart. */
interface Passed extends Omit<RewrapResult, 'Bucket' | 'JobId'> {
  /** The last key that is done. */
  readonly after: string
  readonly bytes: number
}

const NOTHING: Passed = {
  ...{ after: '', bytes: 0, Rewrapped: 0, Current: 0, Plain: 0, Skipped: 0 },
  ...{ SkippedObjects: [], EarlierDeals: [] },
}

const rewrapBucket = defineCall({
  name: 'RewrapBucket',
  source: 'docs/encryption.md',
  summary: 'Stores the encrypted objects of a bucket again with headers for the keys of today. Their content stays.',
  access: 'owner',
  on: { method: 'POST', resource: 'bucket', subresource: 'x-encryption' },
  body: z.strictObject({
    Prefix: z.string().max(1024).optional().describe('Only objects whose keys begin with this text. Default: all.'),
  }),
  result: rewrapResult,
  root: 'RewrapResult',
  job: KIND,
  spends: false,
  async order({ request: { bucket }, body: { Prefix: prefix = '' } }, { checks, gateway }) {
    for (const right of ['read', 'write'] as const) checks.requireWholeBucket(bucket, right)
    if (!(await gateway.bucketExists(bucket))) throw new S3Error('NoSuchBucket', { fields: { BucketName: bucket } })
    const input: RewrapInput = { bucket, prefix }
    return { resource: `/${bucket}`, input }
  },
})

const rewrapObject = defineCall({
  name: 'RewrapObject',
  source: 'docs/encryption.md',
  summary: 'Stores an encrypted object again with headers for the keys of today. Its content stays.',
  access: 'owner',
  on: { method: 'POST', resource: 'object', subresource: 'x-encryption' },
  body: z.strictObject({}),
  result: z.object({
    ...{ Bucket: z.string(), Key: z.string() },
    Outcome: z
      .enum(['Rewrapped', 'Current', 'Plain'])
      .describe('Current: its header has the keys of today already. Plain: it is not encrypted.'),
    EarlierDeal: z
      .string()
      .optional()
      .describe('Cid of the bytes before, which deals hold: they open with the earlier keys. Keep these.'),
  }),
  async answer({ request: { id, bucket, key, remoteAddress } }, { caller, checks, store }) {
    for (const right of ['read', 'write'] as const) checks.requireKey(bucket, key, right)
    const origin = { requestId: id, accessKeyId: caller?.identity.accessKeyId ?? '', remoteAddress }
    const done = await store.rewrap(bucket, key, { name: 'ObjectCreated:Copy', origin })
    if (done.outcome === 'Gone') throw new S3Error('NoSuchKey', { fields: { Key: key } })
    if (done.outcome === 'Skipped') throw new S3Error('InvalidObjectState', { message: done.why })
    const cid = done.outcome === 'Rewrapped' ? done.cid : undefined
    return { Bucket: bucket, Key: key, Outcome: done.outcome, ...(cid !== undefined && { EarlierDeal: cid }) }
  },
})

/** Most objects that a page counts, and the time after which it ends, ms. */
const MAX_COUNTED = 100_000
const MAX_MS = 10_000
const LISTED = 1000

const amount = z.object({ Objects: count, Bytes: count })

/** What new objects are encrypted with, and how much of a bucket is not encrypted: `Plain` names the first. */
const listPlainObjects = defineCall({
  name: 'ListPlainObjects',
  source: 'docs/encryption.md#what-is-plain',
  summary: 'Returns the default encryption of a bucket, and counts its objects that are not encrypted.',
  access: 'owner',
  on: { method: 'GET', resource: 'bucket', subresource: 'x-encryption' },
  query: z.strictObject({
    prefix: z.string().max(1024).optional().describe('Counts the keys that begin with it.'),
    'max-objects': z.int().min(0).max(MAX_COUNTED).optional().describe('Objects of a page; default 100,000.'),
    'key-id': z
      .string()
      .regex(/^[\w:/.+=,@-]{1,2048}$/)
      .optional()
      .describe('A key of aws:kms to look for, in place of the default.'),
  }),
  pages: 'Plain',
  result: z.object({
    Bucket: z.string(),
    Default: z
      .object({ Algorithm: z.string(), KeyId: z.string().optional() })
      .optional()
      .describe('What new objects are encrypted with, by the bucket or the server. Absent: nothing.'),
    KeyFound: z.boolean().optional().describe('Whether the key with the name is there. Absent: none has a name.'),
    Encrypted: amount.describe('Of this page, in bytes of the content: add up those of all pages.'),
    NotEncrypted: amount.describe('Of this page, too; also objects whose label is lost.'),
    Plain: z
      .array(z.object({ Key: z.string(), Size: count }))
      .meta({ element: 'PlainObject' })
      .describe('The first hundred of the page that are not encrypted.'),
  }),
  async answer({ request: { bucket }, query, page }, { checks, store }) {
    checks.requireWholeBucket(bucket, 'read')
    const { prefix = '', 'max-objects': most = MAX_COUNTED } = query
    const byDefault = await store.encryptionFor(bucket)
    const keyId = query['key-id'] ?? byDefault?.keyId
    const { next, encrypted, plain, first } = await countPlain(store, bucket, { prefix, after: page.from ?? '', most })
    return {
      Bucket: bucket,
      ...(byDefault && {
        Default: { Algorithm: byDefault.algorithm, ...(byDefault.keyId !== undefined && { KeyId: byDefault.keyId }) },
      }),
      ...(keyId !== undefined && { KeyFound: await isKey(store, bucket, keyId) }),
      Encrypted: encrypted,
      NotEncrypted: plain,
      Plain: new PageOf(first, next),
    }
  },
})

async function countPlain(
  store: Context['store'],
  bucket: string,
  { prefix, after, most }: { readonly prefix: string; readonly after: string; readonly most: number },
) {
  const ends = Date.now() + MAX_MS
  const encrypted = { Objects: 0, Bytes: 0 }
  const plain = { Objects: 0, Bytes: 0 }
  const first: { Key: string; Size: number }[] = []
  let [last, left, truncated] = [after, most, most > 0]
  while (truncated && left > 0 && (last === after || Date.now() < ends)) {
    const page = await store.list(bucket, { prefix, delimiter: '', after: last, limit: Math.min(LISTED, left) })
    for (const entry of page.entries) {
      if (entry.kind !== 'object') continue
      const { key, size, storedSize } = entry
      const sum = storedSize === undefined ? plain : encrypted
      sum.Objects++
      sum.Bytes += size
      if (sum === plain && first.length < MAX_NAMED) first.push({ Key: key, Size: size })
      last = key
    }
    left -= page.entries.length
    truncated = page.truncated && page.entries.length > 0
  }
  return { encrypted, plain, first, next: truncated ? last : undefined }
}

/** Whether the server has a key of this name, or its program gives one. */
async function isKey(store: Context['store'], bucket: string, keyId: string): Promise<boolean> {
  try {
    await store.storedAs({ bucket, key: 'any', encryption: { algorithm: 'aws:kms', keyId } }, undefined)
    return true
  } catch (error) {
    if (error instanceof S3Error && error.code === 'KMS.NotFoundException') return false
    throw error
  }
}

/** Rewraps object after object. What is done is on record: a server that dies meanwhile continues behind it. */
async function run(records: Records<Passed>, job: RunningJob<RewrapInput>): Promise<RewrapResult> {
  const { store } = job.context
  const { bucket, prefix } = job.input
  const origin = { requestId: job.job.id, accessKeyId: job.job.accessKeyId, remoteAddress: '' }
  let passed = (await records.get(job.job.id)) ?? NOTHING
  for (let truncated = true; truncated; ) {
    const page = await store.list(bucket, { prefix, delimiter: '', after: passed.after, limit: PAGE })
    for (const entry of page.entries) {
      if (entry.kind !== 'object') continue
      job.signal.throwIfAborted()
      const { key } = entry
      const done = await patiently(job.signal, () => store.rewrap(bucket, key, { name: 'ObjectCreated:Copy', origin }))
      passed = { ...counted(passed, key, done), after: key }
      // What is repeated after a death is only looked at, and most of a bucket may be current.
      if (done.outcome === 'Rewrapped') await records.set(job.job.id, passed)
      report(job, passed)
    }
    await records.set(job.job.id, passed)
    truncated = page.truncated && page.entries.length > 0
  }
  await records.delete(job.job.id)
  const { after: _, bytes: __, ...result } = passed
  return { Bucket: bucket, JobId: job.job.id, ...result }
}

/** Most attempts while the gateway or the state does not answer, and the pause between them, ms. */
const MAX_ATTEMPTS = 4
const PAUSE_MS = 2000

/** One object that cannot be read does not keep those behind it from their new headers. */
async function patiently(signal: AbortSignal, rewrap: () => Promise<Rewrapped>): Promise<Rewrapped> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await rewrap()
    } catch (error) {
      if (!(error instanceof S3Error) || signal.aborted) throw error
      if (error.status !== 503) return { outcome: 'Skipped', why: error.message }
      if (attempt === MAX_ATTEMPTS) throw error
      await sleep(PAUSE_MS, undefined, { signal })
    }
  }
}

function counted(passed: Passed, Key: string, done: Rewrapped): Passed {
  switch (done.outcome) {
    case 'Gone':
      return passed
    case 'Skipped': {
      const SkippedObjects = [...passed.SkippedObjects, { Key, Reason: done.why }].slice(0, MAX_NAMED)
      return { ...passed, Skipped: passed.Skipped + 1, SkippedObjects }
    }
    case 'Rewrapped': {
      const deals = done.cid === undefined ? [] : [{ Key, Cid: done.cid }]
      const EarlierDeals = [...passed.EarlierDeals, ...deals].slice(0, MAX_NAMED)
      return { ...passed, Rewrapped: passed.Rewrapped + 1, bytes: passed.bytes + done.bytes, EarlierDeals }
    }
    default:
      return { ...passed, [done.outcome]: passed[done.outcome] + 1 }
  }
}

function report(job: RunningJob<RewrapInput>, { Rewrapped, Current, Plain, Skipped, bytes }: Passed): void {
  const succeeded = Rewrapped + Current + Plain
  job.report({
    phase: 'Rewrapping',
    tasks: { total: succeeded + Skipped, succeeded, failed: Skipped },
    bytes: { done: bytes, total: bytes },
  })
}

/** The calls that say what is not encrypted, and make the headers of encrypted objects anew after a change of keys. */
export default definePlugin({
  name: 'encryption',
  standard: true,
  summary: 'Counts what is not encrypted, and stores encrypted objects again with headers for the keys of today.',
  create(_options, host) {
    const rewraps: JobKind<RewrapInput, RewrapResult> = {
      name: KIND,
      concurrency: 1,
      async admitAgain({ input: { bucket } }, _request, { checks }) {
        for (const right of ['read', 'write'] as const) checks.requireWholeBucket(bucket, right)
      },
      run(job) {
        const records = host.state.records<Passed>('encryption-rewraps')
        return run(records, job).catch(async (error) => {
          // A server that stops goes on with it.
          if (!job.signal.aborted) await records.delete(job.job.id)
          throw error
        })
      },
    }
    return { operations: [listPlainObjects, rewrapBucket, rewrapObject], jobs: [rewraps] }
  },
})
