import type { MaybePromise } from '../../../common/maybe-promise.js'
import type { Database } from '../../store/database.js'
import { type Identity, owns, refusalOf } from '../access.js'
import type { Names } from '../brand.js'
import { GatewayError } from '../errors.js'
import type { BucketRow, Buckets } from './buckets.js'
import type { Objects } from './objects.js'

interface KeyTables {
  readonly buckets: Buckets
  readonly objects: Objects
}

/** What the keys of a bucket may be beside one another, and what a change of one means for others. */
export interface KeyRules {
  /** True when a change of one key depends on others, or changes them. */
  readonly concernOthers: boolean
  /** Throws GatewayError for a key that cannot be stored beside the existing ones. */
  mayPut(tables: KeyTables, bucket: BucketRow, key: Buffer, size: number): Promise<void>
  /** Yields the keys that go with a removed one, innermost first. */
  emptiedFolders(tables: KeyTables, bucket: number, key: Buffer): AsyncIterable<Buffer>
  /** True for an object that downloads do not find. */
  isHidden(tables: KeyTables, bucket: number, key: Buffer): MaybePromise<boolean>
  /** Records that an object of this key is added or removed. Call it while the index does not hold the object. */
  entryChanged(tables: KeyTables, bucket: number, key: Buffer, when: string): Promise<void>
}

/** Every key is allowed, and none has to do with another. */
export const anyKeys: KeyRules = {
  concernOthers: false,
  mayPut: async () => {},
  emptiedFolders: async function* () {},
  isHidden: () => false,
  entryChanged: async () => {},
}

interface NameContext {
  readonly names: Names
}

interface BucketTables {
  readonly buckets: Buckets
}

interface BucketContext extends NameContext {
  readonly db: Pick<Database<BucketTables>, 'read'>
}

const LABEL = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?'
const NAME = new RegExp(`^(?=.{3,63}$)${LABEL}(?:\\.${LABEL})*$`)
const IPV4 = /^\d+\.\d+\.\d+\.\d+$/

/**
 * Throws GatewayError InvalidBucketName for a name that public gateways refuse, by the rules of
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html, and for the gateway's own path.
 */
export function checkBucketName(context: NameContext, bucket: string): void {
  if (!NAME.test(bucket) || IPV4.test(bucket) || bucket === context.names.path) {
    throw new GatewayError('InvalidBucketName', { bucket })
  }
}

/**
 * Returns the bucket that was found by this name. Throws GatewayError when the name is invalid or there is no such
 * bucket.
 */
export function mustBeBucket(context: NameContext, bucket: string, found: BucketRow | undefined): BucketRow {
  if (found !== undefined) return found
  checkBucketName(context, bucket)
  throw new GatewayError('NoSuchBucket', { bucket })
}

/**
 * Returns the bucket of this name, for what only the owner may do. Throws as `mustBeBucket` does, and GatewayError for
 * any other caller.
 * @param tables those of the transaction in which it is to be done; default: the last committed state
 */
export async function mustOwnBucket(
  context: BucketContext,
  identity: Identity,
  bucket: string,
  { buckets }: BucketTables = context.db.read,
): Promise<BucketRow> {
  const row = mustBeBucket(context, bucket, await buckets.find(bucket))
  if (!owns(identity, row)) throw refusalOf(identity)
  return row
}
