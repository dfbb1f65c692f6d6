import type { BucketSettings } from '../api/settings.js'
import { decide } from './decide.js'
import { readDocuments } from './documents.js'
import type { Conditions, ServiceName } from './question.js'

/** A write by a part of this server, on behalf of a bucket. */
interface ServiceWrite {
  readonly service: ServiceName
  /** Where it writes. */
  readonly bucket: string
  readonly key: string
  /** The key begins with it. A statement whose resource is this prefix itself is about all keys below, as at Ceph. */
  readonly prefix: string
  readonly source: {
    readonly bucket: string
    /** Canonical id of its owner. */
    readonly owner: string
  }
}

/**
 * What the documents of a bucket say about the write. `unnamed`: its policy denies nothing, and neither policy nor ACL
 * names the service. Then the owner of the bucket decides.
 * @throws S3Error as `readDocuments`: nothing is allowed then
 */
export async function decideServiceWrite(
  settings: Pick<BucketSettings, 'get'>,
  write: ServiceWrite,
): Promise<'allow' | 'deny' | 'unnamed'> {
  const { service, bucket, key, prefix } = write
  const documents = await readDocuments(settings, bucket)
  if (!documents) return 'unnamed'
  const block = await settings.get(bucket, 'publicAccessBlock')
  const given = {
    owner: documents.owner,
    policy: documents.policy?.parsed,
    bucketAcl: documents.acl,
    ownership: documents.ownership,
    block: {
      ignorePublicAcls: block?.IgnorePublicAcls ?? false,
      restrictPublicBuckets: block?.RestrictPublicBuckets ?? false,
    },
  }
  const principal = { kind: 'service', name: service } as const
  const outcomeOn = (resource: string) =>
    decide({ principal, action: 's3:PutObject', resource, conditions: conditionsOf(write) }, given).outcome
  const outcome = outcomeOn(`arn:aws:s3:::${bucket}/${key}`)
  if (outcome === 'explicit deny') return 'deny'
  if (outcome === 'allow' || outcomeOn(`arn:aws:s3:::${bucket}/${prefix}`) === 'allow') return 'allow'
  const names = documents.policy?.parsed.statements.some(({ principals }) => principals?.services.includes(service))
  return names ? 'deny' : 'unnamed'
}

function conditionsOf({ source }: ServiceWrite): Conditions {
  const values: ReadonlyMap<string, () => string> = new Map([
    ['aws:sourcearn', () => `arn:aws:s3:::${source.bucket}`],
    ['aws:sourceaccount', () => source.owner],
    ['aws:securetransport', () => 'true'],
    ['aws:currenttime', () => new Date().toISOString()],
    ['aws:epochtime', () => String(Math.floor(Date.now() / 1000))],
  ])
  return {
    get(key) {
      const value = values.get(key)?.()
      return value === undefined ? undefined : [value]
    },
  }
}
