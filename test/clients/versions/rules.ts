import type { Test } from 'tap'
import { DAY_MS } from '../../../src/common/time.js'
import { type Endpoint, send } from '../../support/sign/send.js'
import { type Caller, type Members, Refused } from './caller.js'

/** The requests of a client about one bucket. */
export class Requests {
  constructor(
    readonly server: Endpoint,
    readonly caller: Caller,
    readonly bucket: string,
  ) {}

  of(bucket: string): Requests {
    return new Requests(this.server, this.caller, `${this.bucket}-${bucket}`)
  }

  send(operation: string, params: Members = {}, pageSize?: number): Promise<Members> {
    return this.caller.call(operation, { Bucket: this.bucket, ...params }, pageSize)
  }

  async refused(operation: string, params: Members = {}): Promise<Refused> {
    try {
      await this.send(operation, params)
    } catch (error) {
      if (error instanceof Refused) return error
      throw error
    }
    throw new Error(`${operation} ${JSON.stringify(params)} was not refused`)
  }

  async put(Key: string, Body: string, more: Members = {}): Promise<string> {
    return (await this.send('PutObject', { Key, Body, ...more })).VersionId
  }

  async get(Key: string, VersionId?: string): Promise<string> {
    return (await this.send('GetObject', { Key, VersionId })).Body
  }

  async create(versioning?: 'Enabled' | 'Suspended', more: Members = {}): Promise<void> {
    await this.send('CreateBucket', more)
    if (versioning) await this.version(versioning)
  }

  async version(Status: 'Enabled' | 'Suspended'): Promise<void> {
    await this.send('PutBucketVersioning', { VersioningConfiguration: { Status } })
  }

  /** The ids of a key in the order of the document, those of delete markers with `-`; clients list the two apart. */
  async ids(Key: string): Promise<string[]> {
    const { body } = await send(this.server, { method: 'GET', target: `/${this.bucket}?prefix=${Key}&versions` })
    const entries = body.toString().matchAll(/<(Version|DeleteMarker)>.*?<VersionId>(\w+)</gs)
    return [...entries].map(([, kind, id]) => `${kind === 'Version' ? '' : '-'}${id}`)
  }
}

type Rule = (t: Test, s3: Requests) => Promise<void>

const UNKNOWN = '0'.repeat(32)
const AN_ID = /^[0-9a-f]{32}$/

/** By what each says. `s3` is about a bucket with versioning, `s3.of` about one that is not there yet. */
export const versionRules: Readonly<Record<string, Rule>> = {
  'versioning has no status until it is set, and has one for ever then': async (t, s3) => {
    const fresh = s3.of('fresh')
    await fresh.create()
    t.equal((await fresh.send('GetBucketVersioning')).Status, undefined)
    t.notOk(await fresh.put('k', 'before'), 'no id')
    await fresh.version('Enabled')
    t.equal((await fresh.send('GetBucketVersioning')).Status, 'Enabled')
    t.equal((await fresh.send('HeadObject', { Key: 'k' })).VersionId, 'null')
    await fresh.version('Suspended')
    t.equal((await fresh.send('GetBucketVersioning')).Status, 'Suspended')
    const VersioningConfiguration = { Status: 'Enabled', MFADelete: 'Enabled' }
    t.match(await fresh.refused('PutBucketVersioning', { VersioningConfiguration }), { code: 'NotImplemented' })
  },

  'a write is answered with an id, by which a version is read': async (t, s3) => {
    const Key = 'written'
    const [one, two] = [await s3.put(Key, 'one'), await s3.put(Key, 'the two')]
    t.match(one, AN_ID)
    t.equal(await s3.get(Key), 'the two')
    t.equal(await s3.get(Key, one), 'one')
    t.match(await s3.send('HeadObject', { Key, VersionId: one }), { VersionId: one, ContentLength: 3 })
    const attributes = { Key, VersionId: one, ObjectAttributes: ['ObjectSize'] }
    t.match(await s3.send('GetObjectAttributes', attributes), { VersionId: one, ObjectSize: 3 })
    const CopySource = `${s3.bucket}/${Key}?versionId=${one}`
    const copied = await s3.send('CopyObject', { Key, CopySource })
    t.match(copied, { CopySourceVersionId: one, VersionId: AN_ID })
    const { UploadId } = await s3.send('CreateMultipartUpload', { Key })
    const { CopyPartResult, CopySourceVersionId } = await s3.send('UploadPartCopy', {
      ...{ Key, UploadId, PartNumber: 1, CopySource },
    })
    t.equal(CopySourceVersionId, one)
    const Parts = [{ PartNumber: 1, ETag: CopyPartResult.ETag }]
    const done = await s3.send('CompleteMultipartUpload', { Key, UploadId, MultipartUpload: { Parts } })
    t.same(await s3.ids(Key), [done.VersionId, copied.VersionId, two, one])
    t.equal(await s3.get(Key), 'one', 'an earlier version is current again')
  },

  'a DELETE without an id adds a marker, whose removal brings the object back': async (t, s3) => {
    const Key = 'marked'
    const id = await s3.put(Key, 'text')
    const removed = await s3.send('DeleteObject', { Key })
    t.match(removed, { DeleteMarker: true, VersionId: AN_ID })
    const { VersionId } = removed
    t.same(await s3.ids(Key), [`-${VersionId}`, id])
    const marker = (refused: Refused) => refused.headers?.['x-amz-delete-marker'] ?? 'not shown by this client'
    for (const [operation, params, code] of [
      ['GetObject', { Key }, 'NoSuchKey'],
      ['HeadObject', { Key }, '404'],
      ['GetObject', { Key, VersionId }, 'MethodNotAllowed'],
    ] as const) {
      const refused = await s3.refused(operation, params)
      t.match([refused.code, marker(refused)], [code, /^(true|not shown by this client)$/], `${operation} ${code}`)
    }
    t.match(await s3.refused('GetObjectTagging', { Key, VersionId }), { code: 'MethodNotAllowed' })
    t.ok(await s3.put(Key, 'new', { IfNoneMatch: '*' }), 'there is no object in the way of a write')
    await s3.send('DeleteObject', { Key, VersionId: (await s3.ids(Key))[0] })
    t.match(await s3.send('DeleteObject', { Key, VersionId }), { DeleteMarker: true, VersionId })
    t.equal(await s3.get(Key), 'text')
  },

  'ids that name no version': async (t, s3) => {
    const Key = 'k'
    await s3.put(Key, 'text')
    t.match(await s3.refused('GetObject', { Key, VersionId: UNKNOWN }), { code: 'NoSuchVersion' })
    t.match(await s3.refused('GetObject', { Key, VersionId: 'no-id' }), { code: 'InvalidArgument' })
    t.match(await s3.send('DeleteObject', { Key, VersionId: UNKNOWN }), { VersionId: UNKNOWN })
    t.equal((await s3.ids(Key)).length, 1)
  },

  'the null version before, under and after suspension': async (t, s3) => {
    const bucket = s3.of('null')
    const Key = 'k'
    const known = new Map<string, string>()
    const named = async () =>
      (await bucket.ids(Key)).map((id) => [...known].reduce((text, [name, known]) => text.replace(known, name), id))
    await bucket.create()
    const put = async (text: string) => known.set(text, await bucket.put(Key, text))
    const remove = (VersionId?: string) => bucket.send('DeleteObject', { Key, VersionId })
    for (const [what, act, expected, current] of [
      ['PUT, never versioned', () => bucket.put(Key, 'n0'), ['null'], 'n0'],
      ['enabled', () => bucket.version('Enabled'), ['null'], 'n0'],
      ['PUT', () => put('one'), ['one', 'null'], 'one'],
      ['suspended', () => bucket.version('Suspended'), ['one', 'null'], 'one'],
      ['PUT replaces null, also below the newest', () => bucket.put(Key, 'n1'), ['null', 'one'], 'n1'],
      ['PUT replaces null', () => bucket.put(Key, 'n2'), ['null', 'one'], 'n2'],
      ['DELETE replaces null by a marker', () => remove(), ['-null', 'one'], undefined],
      ['DELETE again', () => remove(), ['-null', 'one'], undefined],
      ['PUT replaces the marker', () => bucket.put(Key, 'n3'), ['null', 'one'], 'n3'],
      ['enabled', () => bucket.version('Enabled'), ['null', 'one'], 'n3'],
      ['PUT', () => put('two'), ['two', 'null', 'one'], 'two'],
      ['suspended', () => bucket.version('Suspended'), ['two', 'null', 'one'], 'two'],
      ['DELETE takes null from below', () => remove(), ['-null', 'two', 'one'], undefined],
      ['DELETE of the marker', () => remove('null'), ['two', 'one'], 'two'],
      ['DELETE of another version', () => remove(known.get('two')), ['one'], 'one'],
    ] as const) {
      await act()
      t.same(await named(), expected, what)
      const { status, body } = await send(s3.server, { method: 'GET', target: `/${bucket.bucket}/${Key}` })
      t.equal(status === 200 ? body.toString() : undefined, current, `${what}: what GET finds`)
    }
  },

  'a listing has each version of a key from the newest to the oldest, in pages': async (t, s3) => {
    const [a1, a2] = [await s3.put('list/a', '1'), await s3.put('list/a', '2')]
    const deep = await s3.put('list/b/c', '3')
    const { VersionId: marker } = await s3.send('DeleteObject', { Key: 'list/a' })
    const { Versions, DeleteMarkers } = await s3.send('ListObjectVersions', { Prefix: 'list/' }, 1)
    const named = (entries: Members[]) => entries.map(({ Key, VersionId, IsLatest }) => [Key, VersionId, IsLatest])
    t.same(named(Versions), [
      ['list/a', a2, false],
      ['list/a', a1, false],
      ['list/b/c', deep, true],
    ])
    t.same(named(DeleteMarkers), [['list/a', marker, true]])
    t.match(Versions[0], {
      ETag: /^"[0-9a-f]{32}"$/,
      Size: 1,
      StorageClass: 'STANDARD',
      Owner: { ID: /^[0-9a-f]{64}$/ },
    })
    const folded = await s3.send('ListObjectVersions', { Prefix: 'list/', Delimiter: '/' })
    t.same(folded.CommonPrefixes, [{ Prefix: 'list/b/' }])
    t.equal(folded.Versions.length, 2)
  },

  'a bucket is deleted once its versions and markers are': async (t, s3) => {
    const bucket = s3.of('emptied')
    await bucket.create('Enabled')
    const [one, two] = [await bucket.put('k', '1'), await bucket.put('k', '2')]
    const hidden = await bucket.send('DeleteObjects', { Delete: { Objects: [{ Key: 'k' }] } })
    t.match(hidden.Deleted, [{ Key: 'k', DeleteMarker: true, DeleteMarkerVersionId: AN_ID }])
    t.match(await bucket.refused('DeleteBucket'), { code: 'BucketNotEmpty' })
    const VersionId = hidden.Deleted[0].DeleteMarkerVersionId
    const Objects = [one, two, VersionId].map((VersionId) => ({ Key: 'k', VersionId }))
    const { Deleted } = await bucket.send('DeleteObjects', { Delete: { Objects } })
    t.match(Deleted, [
      { Key: 'k', VersionId: one },
      { Key: 'k', VersionId: two },
      { Key: 'k', VersionId, DeleteMarker: true, DeleteMarkerVersionId: VersionId },
    ])
    const Quiet = true
    t.notOk((await bucket.send('DeleteObjects', { Delete: { Objects, Quiet } })).Deleted?.length, 'gone, and quiet')
    await bucket.send('DeleteBucket')
  },

  'rules of lifecycle about versions are kept as they are put': async (t, s3) => {
    const Rules = [
      {
        ...{ ID: 'old', Status: 'Enabled', Filter: { Prefix: 'old/' } },
        Expiration: { ExpiredObjectDeleteMarker: true },
        NoncurrentVersionExpiration: { NoncurrentDays: 3, NewerNoncurrentVersions: 2 },
        NoncurrentVersionTransitions: [{ NoncurrentDays: 1, StorageClass: 'GLACIER' }],
      },
    ]
    await s3.send('PutBucketLifecycleConfiguration', { LifecycleConfiguration: { Rules } })
    t.same((await s3.send('GetBucketLifecycleConfiguration')).Rules, Rules)
    await s3.send('DeleteBucketLifecycle')
  },

  'tags and grants belong to a version': async (t, s3) => {
    const Key = 'tagged'
    const VersionId = await s3.put(Key, '1', { Tagging: 'of=one' })
    await s3.put(Key, '2', { Tagging: 'of=two' })
    const tags = async (params: Members) => (await s3.send('GetObjectTagging', { Key, ...params })).TagSet
    const TagSet = [{ Key: 'of', Value: 'new' }]
    t.equal((await s3.send('PutObjectTagging', { Key, VersionId, Tagging: { TagSet } })).VersionId, VersionId)
    t.same(await tags({ VersionId }), TagSet)
    t.same(await tags({}), [{ Key: 'of', Value: 'two' }])
    t.match(await s3.send('GetObjectAcl', { Key, VersionId }), { Grants: [{ Permission: 'FULL_CONTROL' }] })
  },
}

const ahead = (days: number) => new Date(Math.ceil(Date.now() / 1000) * 1000 + days * DAY_MS).toISOString()
const retention = (Mode: 'GOVERNANCE' | 'COMPLIANCE', days: number) => ({ Mode, RetainUntilDate: ahead(days) })
const lock = (ObjectLockMode: 'GOVERNANCE' | 'COMPLIANCE', days: number) => ({
  ...{ ObjectLockMode, ObjectLockRetainUntilDate: ahead(days) },
})
const BypassGovernanceRetention = true
const rule = (DefaultRetention: Members) => ({
  ObjectLockConfiguration: { ObjectLockEnabled: 'Enabled', Rule: { DefaultRetention } },
})
const whole = { ObjectLockConfiguration: { ObjectLockEnabled: 'Enabled' } }

/** As `versionRules`, for a bucket with object lock and without a default retention, as Veeam wants it. */
export const lockRules: Readonly<Record<string, Rule>> = {
  'object lock begins with the bucket, or in a bucket with versioning, and stays': async (t, s3) => {
    t.equal((await s3.send('GetBucketVersioning')).Status, 'Enabled')
    t.match(await s3.send('GetObjectLockConfiguration'), whole)
    const Suspended = { VersioningConfiguration: { Status: 'Suspended' } }
    t.match(await s3.refused('PutBucketVersioning', Suspended), { code: 'InvalidBucketState' })
    const plain = s3.of('plain')
    await plain.create()
    const id = await plain.put('k', 'x')
    t.match(await plain.refused('GetObjectLockConfiguration'), { code: 'ObjectLockConfigurationNotFoundError' })
    const Retention = retention('GOVERNANCE', 1)
    t.match(await plain.refused('PutObjectRetention', { Key: 'k', Retention }), { code: 'InvalidRequest' })
    const locked = { Key: 'k', Body: 'y', ...lock('GOVERNANCE', 1) }
    t.match(await plain.refused('PutObject', locked), { code: 'InvalidRequest' })
    t.match(await plain.refused('PutObjectLockConfiguration', whole), { code: 'InvalidBucketState' })
    await plain.version('Enabled')
    await plain.send('PutObjectLockConfiguration', whole)
    t.match(await plain.refused('GetObjectRetention', { Key: 'k' }), { code: 'NoSuchObjectLockConfiguration' })
    t.equal(id, undefined)
  },

  'a default retention is for later objects that ask for none': async (t, s3) => {
    const bucket = s3.of('default')
    await bucket.create(undefined, { ObjectLockEnabledForBucket: true })
    const before = await bucket.put('before', 'x')
    for (const wrong of [{ Days: 0 }, { Years: 101 }]) {
      const refused = await bucket.refused('PutObjectLockConfiguration', rule({ Mode: 'GOVERNANCE', ...wrong }))
      t.equal(refused.code, 'InvalidRetentionPeriod', JSON.stringify(wrong))
    }
    await bucket.send('PutObjectLockConfiguration', rule({ Mode: 'GOVERNANCE', Days: 3 }))
    t.match(await bucket.send('GetObjectLockConfiguration'), rule({ Mode: 'GOVERNANCE', Days: 3 }))
    const free = { Key: 'before', VersionId: before }
    t.match(await bucket.refused('GetObjectRetention', free), { code: 'NoSuchObjectLockConfiguration' })
    await bucket.send('DeleteObject', free)
    const later = { Key: 'later', VersionId: await bucket.put('later', 'x') }
    t.equal((await bucket.send('GetObjectRetention', later)).Retention.Mode, 'GOVERNANCE')
    t.match(await bucket.refused('DeleteObject', later), { code: 'AccessDenied' })
    await bucket.put('own', 'x', lock('COMPLIANCE', 1))
    t.match(await bucket.send('HeadObject', { Key: 'own' }), { ObjectLockMode: 'COMPLIANCE' })
  },

  'COMPLIANCE is extended, and neither shortened nor ended': async (t, s3) => {
    const Key = 'compliance'
    const { ObjectLockMode, ObjectLockRetainUntilDate } = lock('COMPLIANCE', 2)
    const VersionId = await s3.put(Key, 'kept', { ObjectLockMode, ObjectLockRetainUntilDate })
    const head = await s3.send('HeadObject', { Key })
    t.match(head, { ObjectLockMode })
    t.equal(Date.parse(head.ObjectLockRetainUntilDate), Date.parse(ObjectLockRetainUntilDate))
    const one = { Key, VersionId }
    const Delete = { Objects: [one] }
    const extended = retention('COMPLIANCE', 3)
    await s3.send('PutObjectRetention', { ...one, Retention: extended })
    for (const bypass of [{}, { BypassGovernanceRetention }]) {
      for (const [operation, params] of [
        ['DeleteObject', {}],
        ['PutObjectRetention', { Retention: retention('COMPLIANCE', 1) }],
        ['PutObjectRetention', { Retention: retention('GOVERNANCE', 9) }],
      ] as const)
        t.match(await s3.refused(operation, { ...one, ...params, ...bypass }), { code: 'AccessDenied' }, operation)
    }
    const { Errors } = await s3.send('DeleteObjects', { Delete, BypassGovernanceRetention })
    t.match(Errors, [{ ...one, Code: 'AccessDenied' }])
    const { Retention } = await s3.send('GetObjectRetention', one)
    t.equal(Date.parse(Retention.RetainUntilDate), Date.parse(extended.RetainUntilDate))
  },

  'a locked object takes new versions and markers, which are not locked': async (t, s3) => {
    const Key = 'covered'
    const VersionId = await s3.put(Key, 'kept', lock('COMPLIANCE', 1))
    const newer = await s3.put(Key, 'newer')
    const { VersionId: marker } = await s3.send('DeleteObject', { Key })
    t.equal(await s3.get(Key, VersionId), 'kept')
    t.match(await s3.refused('DeleteBucket'), { code: 'BucketNotEmpty' })
    const Retention = retention('COMPLIANCE', 1)
    const refused = await s3.refused('PutObjectRetention', { Key, VersionId: marker, Retention })
    t.equal(refused.code, 'MethodNotAllowed', 'a marker takes no lock')
    const Objects = [marker, newer].map((VersionId) => ({ Key, VersionId }))
    t.equal((await s3.send('DeleteObjects', { Delete: { Objects } })).Errors?.length ?? 0, 0)
    t.equal(await s3.get(Key), 'kept')
  },

  'GOVERNANCE is passed by with the header': async (t, s3) => {
    const Key = 'governance'
    const VersionId = await s3.put(Key, 'x', lock('GOVERNANCE', 5))
    const one = { Key, VersionId }
    await s3.send('PutObjectRetention', { ...one, Retention: retention('GOVERNANCE', 6) })
    const shorter = { ...one, Retention: retention('GOVERNANCE', 1) }
    t.match(await s3.refused('PutObjectRetention', shorter), { code: 'AccessDenied' })
    t.match(await s3.refused('DeleteObject', one), { code: 'AccessDenied' })
    await s3.send('PutObjectRetention', { ...shorter, BypassGovernanceRetention })
    await s3.send('DeleteObject', { ...one, BypassGovernanceRetention })
    t.same(await s3.ids(Key), [])
  },

  'a legal hold is passed by with nothing, and has no end but one that is set': async (t, s3) => {
    const Key = 'held'
    const VersionId = await s3.put(Key, 'x', { ObjectLockLegalHoldStatus: 'ON' })
    const one = { Key, VersionId }
    t.same((await s3.send('GetObjectLegalHold', one)).LegalHold, { Status: 'ON' })
    const passing = { ...one, BypassGovernanceRetention }
    t.match(await s3.refused('DeleteObject', passing), { code: 'AccessDenied' })
    await s3.send('PutObjectLegalHold', { ...one, LegalHold: { Status: 'OFF' } })
    t.same((await s3.send('GetObjectLegalHold', one)).LegalHold, { Status: 'OFF' })
    await s3.send('DeleteObject', one)
  },

  'copies and uploads in parts are locked as they ask': async (t, s3) => {
    const Key = 'parts'
    await s3.put('source', 'x', lock('COMPLIANCE', 1))
    const CopySource = `${s3.bucket}/source`
    await s3.send('CopyObject', { Key: 'copy', CopySource, ...lock('GOVERNANCE', 1) })
    t.match(await s3.send('HeadObject', { Key: 'copy' }), { ObjectLockMode: 'GOVERNANCE' })
    await s3.send('CopyObject', { Key: 'free', CopySource })
    t.equal((await s3.send('HeadObject', { Key: 'free' })).ObjectLockMode, undefined, 'not as the source')
    const { UploadId } = await s3.send('CreateMultipartUpload', { Key, ...lock('GOVERNANCE', 1) })
    const { ETag } = await s3.send('UploadPart', { Key, UploadId, PartNumber: 1, Body: 'x' })
    const Parts = [{ PartNumber: 1, ETag }]
    await s3.send('CompleteMultipartUpload', { Key, UploadId, MultipartUpload: { Parts } })
    t.match(await s3.send('HeadObject', { Key }), { ObjectLockMode: 'GOVERNANCE' })
  },
}
