import type { S3Code } from '../../../common/errors/codes.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { NeededRight } from '../../api/access.js'
import type { Context } from '../../api/context.js'
import type { AnyOperation, Operation } from '../../api/operation.js'
import type { Reply, S3Request } from '../../api/request.js'
import { requireDocument } from '../../http/read-request.js'
import { empty, noContent } from '../../http/reply.js'
import { requireBucket } from './owner.js'

/** A setting of buckets with a sub-resource of its own, and what GET, PUT and DELETE of it do. */
interface BucketSetting {
  /** After the verb in the names of its operations: `BucketCors` for GetBucketCors. */
  readonly name: string
  readonly subresource: string
  /** True if a bucket may have many, each with an `id` in the query. */
  readonly byId?: true
  /** After the verb in its actions: `BucketCORS` for s3:GetBucketCORS, and s3:PutBucketCORS of PUT and DELETE. */
  readonly action: string
  /** True for settings about access: changes need the right to read the whole bucket, too. */
  readonly aboutAccess?: true
  readonly get?: Verb & {
    /** Default `owner`. `signed` is for what this server does not keep: the bucket is looked up instead. */
    readonly access?: 'signed'
    /** True where a key pair whose rights are below a prefix may ask, too. */
    readonly anyRight?: true
    /** Returns the code of the error for a bucket without the setting. */
    run(request: S3Request<'bucket'>, context: Context): Promise<Reply | S3Code>
  }
  readonly put?: Verb & {
    /** Default `Limits.maxDocumentBytes`. */
    readonly maxBytes?: number
    /** See Selector.headers. */
    readonly headers?: readonly string[]
    /** Throws S3Error before the document is read. */
    admit?(request: S3Request<'bucket'>, context: Context): Promise<void>
    /** Without a reply, the answer is 200 without a body. */
    run(document: Buffer, request: S3Request<'bucket'>, context: Context): Promise<Reply | undefined>
  }
  readonly remove?: Verb & { run(bucket: string, context: Context, request: S3Request<'bucket'>): Promise<void> }
}

interface Verb {
  /** Where it is not made of the verb and the name. */
  readonly name?: string
  readonly action?: string
  /** See Operation.partly. */
  readonly partly?: string
}

export function bucketSetting(setting: BucketSetting): AnyOperation[] {
  const { get, put, remove } = setting
  return [
    ...(get ? [readOperation(setting, get)] : []),
    ...(put ? [writeOperation(setting, put)] : []),
    ...(remove ? [removeOperation(setting, remove)] : []),
  ]
}

function readOperation(setting: BucketSetting, get: NonNullable<BucketSetting['get']>): Operation<'bucket'> {
  return {
    ...declared(setting, get, 'Get'),
    access: get.access ?? 'owner',
    needs: get.anyRight ? { some: 'any' } : { bucket: ['read'] },
    on: { method: 'GET', resource: 'bucket', query: queryOf(setting) },
    async run(request, context) {
      if (get.access) await requireBucket(context, request.bucket)
      const reply = await get.run(request, context)
      if (typeof reply === 'string') throw new S3Error(reply, { fields: { BucketName: request.bucket } })
      return reply
    },
  }
}

function writeOperation(setting: BucketSetting, put: NonNullable<BucketSetting['put']>): Operation<'bucket'> {
  return {
    ...declared(setting, put, 'Put'),
    access: 'owner',
    needs: changes(setting),
    on: { method: 'PUT', resource: 'bucket', query: queryOf(setting), ...(put.headers && { headers: put.headers }) },
    async run(request, context) {
      await put.admit?.(request, context)
      const document = await requireDocument(request.body, put.maxBytes ?? context.limits.maxDocumentBytes)
      return (await put.run(document, request, context)) ?? empty()
    },
  }
}

function removeOperation(setting: BucketSetting, remove: NonNullable<BucketSetting['remove']>): Operation<'bucket'> {
  return {
    ...declared(setting, remove, 'Delete'),
    access: 'owner',
    needs: changes(setting),
    on: { method: 'DELETE', resource: 'bucket', query: queryOf(setting) },
    async run(request, context) {
      await remove.run(request.bucket, context, request)
      return noContent()
    },
  }
}

function changes({ aboutAccess }: BucketSetting): NeededRight {
  return { bucket: aboutAccess ? ['read', 'write'] : ['write'] }
}

function queryOf({ subresource, byId }: BucketSetting): string[] {
  return byId ? [subresource, 'id'] : [subresource]
}

function declared(setting: BucketSetting, verb: Verb, word: 'Get' | 'Put' | 'Delete') {
  const name = verb.name ?? `${word}${setting.name}`
  return {
    name,
    source: `https://docs.aws.amazon.com/AmazonS3/latest/API/API_${name}.html`,
    ...(verb.partly !== undefined && { partly: verb.partly }),
    action: `s3:${verb.action ?? `${word === 'Get' ? 'Get' : 'Put'}${setting.action}`}`,
  } as const
}
