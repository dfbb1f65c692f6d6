import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { isRecord } from '../../../common/json.js'
import { httpTime } from '../../../common/time.js'
import type { GatewayObject } from '../../api/gateway.js'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import type {
  BucketVersioning,
  GatewayVersions,
  LockRule,
  ObjectLock,
  VersionEntry,
  VersionPage,
  VersionQuery,
  VersionRef,
} from '../../api/versions.js'
import type { BrandNames } from '../brand.js'
import type { GatewayClient } from '../client.js'
import { nonsense } from '../errors.js'
import { readEntry, toObject } from '../listing/listing-scanner.js'
import { isTime, single } from '../object-facts.js'

/** The headers of a GET or HEAD, with those that name the version. */
export function askForVersion(
  names: BrandNames,
  ref: VersionRef | undefined,
  headers: Record<string, string>,
): Record<string, string> {
  if (!ref) return headers
  const [name, value] = 'id' in ref ? ['version-id', ref.id] : ['of-generation', ref.revision]
  return { ...headers, [names.header(name)]: value }
}

/** Whether the only version of a key, on a gateway that keeps one, is the one that is asked for. */
export function isOf(object: GatewayObject, ref: VersionRef): boolean {
  return 'id' in ref ? ref.id === 'null' : object.revision === ref.revision
}

export function noSuchVersion(key: string, ref: VersionRef): S3Error {
  return new S3Error('NoSuchVersion', { fields: { Key: key, ...('id' in ref && { VersionId: ref.id }) } })
}

/**
 * The error with the headers by which S3 says that a version is a delete marker. One that the request names can only be
 * deleted: https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeleteMarker.html
 */
export function withMarker(error: S3Error, names: BrandNames, answer: IncomingHttpHeaders): S3Error {
  if (single(answer[names.header('delete-marker')]) !== 'true') return error
  const { code, message, fields, headers, cause } = error
  const versionId = single(answer[names.header('version-id')])
  const since = single(answer[names.header('last-modified')])
  const marker = {
    'x-amz-delete-marker': 'true',
    ...(versionId !== undefined && { 'x-amz-version-id': versionId }),
    ...(code === 'MethodNotAllowed' && { allow: 'DELETE', ...(isTime(since) && { 'last-modified': httpTime(since) }) }),
  }
  return new S3Error(code as 'NoSuchKey', { message, fields, cause, headers: { ...headers, ...marker } })
}

export function notVersioned(what: string): S3Error {
  return new S3Error('NotImplemented', {
    message: `${what} is not implemented: the gateway keeps one version of each object.`,
  })
}

export function notLocked(what: string): S3Error {
  return new S3Error('NotImplemented', {
    message: `${what} is not implemented: the gateway cannot protect objects from being deleted or overwritten.`,
  })
}

/** See GatewayVersions. */
export function gatewayVersions(client: GatewayClient): GatewayVersions<GatewayObject> {
  const { session } = client
  const able = async (feature: 'versions' | 'locks', what: string): Promise<GatewayFeatures> => {
    const features = await client.features.get(session)
    if (!features.versions) throw notVersioned(what)
    if (!features[feature]) throw notLocked(what)
    return features
  }
  const versioning = async (bucket: string): Promise<BucketVersioning> => {
    if (!(await client.features.get(session)).versions) return {}
    const params = { bucketName: bucket }
    return readVersioning(
      await session.call({ method: 'web.BucketVersioning', params, subject: { bucket }, repeatable: true }),
    )
  }
  return {
    versioning,
    async setVersioning(bucket, status) {
      await able('versions', 'PutBucketVersioning')
      const params = { bucketName: bucket, status }
      await session.call({ method: 'web.SetBucketVersioning', params, subject: { bucket }, repeatable: true })
    },
    async setLockRule(bucket, rule) {
      await able('locks', 'PutObjectLockConfiguration')
      const params = { bucketName: bucket, ...rule }
      await session.call({ method: 'web.SetBucketLock', params, subject: { bucket }, repeatable: true })
    },
    async requireLockable(bucket) {
      await able('locks', 'Object lock')
      if (!(await versioning(bucket)).lock)
        throw new S3Error('InvalidRequest', { message: 'Bucket is missing ObjectLockConfiguration' })
    },
    async listVersions(bucket, query) {
      const features = await able('versions', 'ListObjectVersions')
      const params = listParams(bucket, query)
      return readPage(
        features,
        await session.call({ method: 'web.ListObjectVersions', params, subject: { bucket }, repeatable: true }),
      )
    },
    async setLock(bucket, key, ref, { retention, hold }, bypass) {
      await able('locks', 'Object lock')
      const params = {
        ...{ bucketName: bucket, objectName: key },
        ...(ref && ('id' in ref ? { versionId: ref.id } : { generation: ref.revision })),
        ...(retention !== undefined && { retention }),
        ...(hold !== undefined && { hold }),
        ...(bypass && { bypass }),
      }
      await session.call({ method: 'web.SetObjectLock', params, subject: { bucket, key }, repeatable: true })
    },
  }
}

function listParams(bucketName: string, query: VersionQuery): object {
  const { prefix, delimiter, keyMarker, versionMarker, limit } = query
  return {
    ...{ bucketName, prefix, delimiter, keyMarker, maxKeys: limit },
    ...(versionMarker !== '' && { versionMarker }),
  }
}

function readVersioning({ status, lock }: Readonly<Record<string, unknown>>): BucketVersioning {
  if (status !== undefined && status !== 'Enabled' && status !== 'Suspended')
    throw nonsense('answered web.BucketVersioning with an unknown status')
  return { ...(status && { status }), ...(lock !== undefined && lock !== null && { lock: readRule(lock) }) }
}

function readRule(lock: unknown): LockRule {
  const { mode, days, years } = isRecord(lock) ? lock : { mode: lock, days: undefined, years: undefined }
  if (mode === undefined) return {}
  const period = typeof days === 'number' ? { days } : typeof years === 'number' ? { years } : undefined
  if ((mode !== 'GOVERNANCE' && mode !== 'COMPLIANCE') || !period)
    throw nonsense('answered web.BucketVersioning with a retention that cannot be read')
  return { mode, ...period }
}

function readPage(
  features: GatewayFeatures,
  { versions, isTruncated, nextKeyMarker, nextVersionMarker }: Readonly<Record<string, unknown>>,
): VersionPage<GatewayObject> {
  // Go writes an empty list as `null`.
  const list = versions ?? []
  if (!Array.isArray(list)) throw nonsense('answered web.ListObjectVersions without a list')
  const truncated = isTruncated === true
  if (truncated && typeof nextKeyMarker !== 'string')
    throw nonsense('answered web.ListObjectVersions with a page that does not advance')
  return {
    entries: list.map((entry) => readVersion(features, entry)),
    truncated,
    ...(typeof nextKeyMarker === 'string' && { nextKey: nextKeyMarker }),
    ...(typeof nextVersionMarker === 'string' && { nextVersion: nextVersionMarker }),
  }
}

function readVersion(features: GatewayFeatures, entry: unknown): VersionEntry<GatewayObject> {
  if (isRecord(entry) && entry.isPrefix === true && typeof entry.name === 'string')
    return { kind: 'prefix', prefix: entry.name }
  if (!isRecord(entry)) throw unreadable()
  const { versionId, isLatest, deleteMarker, since, generation } = entry
  if (typeof versionId !== 'string' || typeof generation !== 'string' || !isTime(since)) throw unreadable()
  const common = { versionId, isLatest: isLatest === true, since }
  if (deleteMarker === true) {
    const { name: key, lastModified } = entry
    if (typeof key !== 'string' || !isTime(lastModified)) throw unreadable()
    return { kind: 'marker', key, ...common, lastModified, revision: generation }
  }
  const lock = readLock(entry.lock)
  return {
    kind: 'version',
    ...common,
    object: { ...toObject(features, rawOf(entry)), versionId, ...(lock && { lock }) },
  }
}

/** Throws S3Error for a lock that cannot be read: it must not be taken for none. */
function readLock(lock: unknown): ObjectLock | undefined {
  if (lock === undefined || lock === null) return undefined
  if (!isRecord(lock)) throw unreadable()
  const { mode, until, hold } = lock
  const held = hold === true ? ({ hold } as const) : undefined
  if (mode === undefined || mode === null) return held
  if ((mode !== 'GOVERNANCE' && mode !== 'COMPLIANCE') || !Number.isSafeInteger(until)) throw unreadable()
  return { mode, until: Number(until), ...held }
}

function rawOf(entry: unknown) {
  try {
    return readEntry(entry)
  } catch {
    throw unreadable()
  }
}

function unreadable(): S3Error {
  return nonsense('answered web.ListObjectVersions with a version that cannot be read')
}
