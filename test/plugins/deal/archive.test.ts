import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  type LifecycleRule,
  ListObjectsV2Command,
  PutBucketLifecycleConfigurationCommand,
  PutBucketPolicyCommand,
  PutBucketVersioningCommand,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { S3Error } from '../../../common/errors/s3-error.js'
import { DAY_MS } from '../../../common/time.js'
import { LocalCopies } from '../../../plugins/deal/archive/local-copies.js'
import { RESTORE, type RestoreInput } from '../../../plugins/deal/archive/restore.js'
import { OBJECT_DEAL, type ObjectDealInput } from '../../../plugins/deal/jobs/inputs.js'
import { DealRecords } from '../../../plugins/deal/records/deal-records.js'
import type { Jobs } from '../../../src/api/context.js'
import type { Job } from '../../../src/api/jobs.js'
import { anyOrder } from '../../support/gateway/write-order.js'
import { owner } from '../../support/plugins/deal-proxy.js'
import { signedRequest } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET, terms as stated } from './archive-proxy.js'

const terms = { ...stated, verifiedDeal: false, fastRetrieval: true }
const at = (Key: string) => ({ Bucket: BUCKET, Key })

const rejects = (t: Test, send: Promise<unknown>, name: string, status: number) =>
  t.rejects(send, { name, $metadata: { httpStatusCode: status } }, `${name} ${status}`)

t.test('an object in an archive class has a deal made of it, and shows it', async (t) => {
  const proxy = await ArchiveProxy.start(t)
  const { s3, endpoint } = proxy
  const put = await signedRequest(endpoint, owner, {
    method: 'PUT',
    path: `/${BUCKET}/a`,
    body: 'the bytes of a',
    headers: { 'x-amz-storage-class': 'GLACIER', 'x-dealgate-deal-mode': 'sync', 'x-amz-meta-cid': 'stale' },
  })
  t.equal(put.status, 200)
  t.equal(put.headers['x-dealgate-job-status'], 'Complete')
  const [job] = await proxy.jobs('a')
  t.match(job, {
    id: put.headers['x-dealgate-job-id'],
    operation: OBJECT_DEAL,
    accessKeyId: 'owner',
    input: { cause: 'class' },
  })
  const { StorageClass, Metadata } = await proxy.head('a')
  t.equal(StorageClass, 'GLACIER_IR')
  t.match(Metadata, { cid: /^baf/, 'deal-cid': /^baf/, 'deal-count': '1', 'deal-provider': 't01000' })
  t.equal(put.headers['x-amz-meta-cid'], Metadata?.cid, 'a client that waited for the deal gets it at once')
  t.equal(put.headers['x-amz-meta-deal-cid'], Metadata?.['deal-cid'])
  await proxy.untilHead('the deal is active', 'a', (head) => head.Metadata?.['deal-status'] === 'StorageDealActive')
  t.equal(await proxy.read('a'), 'the bytes of a', 'eviction is off')
  t.equal(await proxy.restore('a', { Days: 1 }), 200)
  await rejects(t, proxy.put('no', { StorageClass: 'DEEP_ARCHIVE' }), 'InvalidStorageClass', 400)
  await rejects(t, proxy.put('no', { Metadata: { 'deal-terms': 'miner' } }), 'DealTermsInvalid', 400)
  const headers = { 'x-amz-storage-class': 'GLACIER', 'x-dealgate-deal-mode': 'now' }
  const wrong = await signedRequest(endpoint, owner, { method: 'PUT', path: `/${BUCKET}/no`, body: 'x', headers })
  t.equal(wrong.code, 'InvalidArgument')
  await rejects(t, proxy.put('a', { IfNoneMatch: '*' }), 'PreconditionFailed', 412)
  t.same(await proxy.jobs('no'), [])
  t.equal((await proxy.jobs('a')).length, 1, 'what was not stored has no job')

  await t.test('copies of it', async (t) => {
    const itself = { ...at('a'), CopySource: `${BUCKET}/a`, StorageClass: 'GLACIER_IR' } as const
    await s3.send(new CopyObjectCommand({ ...itself, MetadataDirective: 'REPLACE', Metadata: { mtime: '1' } }))
    t.match(await proxy.head('a'), { StorageClass: 'GLACIER_IR', Metadata: { mtime: '1', 'deal-count': '1' } })
    t.equal((await proxy.jobs('a')).length, 1, 'a deal that holds the object is not made again')
    await s3.send(new CopyObjectCommand({ ...at('plain'), CopySource: `${BUCKET}/a` }))
    t.equal((await proxy.head('plain')).StorageClass, undefined)
    await s3.send(new CopyObjectCommand({ ...at('plain'), CopySource: `${BUCKET}/plain`, StorageClass: 'GLACIER' }))
    t.match(await proxy.ended('plain'), { status: 'Complete', result: { Key: 'plain' } })
    t.match(await proxy.head('plain'), { StorageClass: 'GLACIER_IR', Metadata: { 'deal-count': '1', mtime: '1' } })
  })

  await t.test('uploads in parts', async (t) => {
    const create = { ...at('parts'), StorageClass: 'GLACIER', Metadata: { 'deal-terms': 'price=0.0002' } } as const
    const { UploadId } = await s3.send(new CreateMultipartUploadCommand(create))
    const { ETag } = await s3.send(new UploadPartCommand({ ...at('parts'), UploadId, PartNumber: 1, Body: 'part' }))
    t.same(await proxy.jobs('parts'), [], 'there is nothing to make a deal of yet')
    const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] }
    await s3.send(new CompleteMultipartUploadCommand({ ...at('parts'), UploadId, MultipartUpload }))
    t.match(await proxy.ended('parts'), { status: 'Complete', result: { Deal: { Price: '0.0002' } } })
  })

  await t.test('deals that are refused', async (t) => {
    await proxy.fault('offline', true)
    await proxy.put('refused')
    t.match(await proxy.ended('refused'), { status: 'Failed', failure: { code: 'DealRejected' } })
    const refused = await proxy.head('refused')
    t.equal(refused.Metadata?.['deal-status'], 'Failed')
    t.equal(refused.StorageClass, undefined, 'it is in no archive')
    await proxy.fault('offline', false)
    const [failed] = await proxy.jobs('refused')
    await proxy.host.own.jobs.retry(failed?.id ?? '')
    await proxy.untilHead('it has a deal', 'refused', ({ Metadata }) => Metadata?.['deal-count'] === '1')
    t.equal((await proxy.head('refused')).StorageClass, 'GLACIER_IR')
  })
})

t.test('nothing says on what terms', async (t) => {
  const proxy = await ArchiveProxy.start(t, { terms: undefined, storageClassMap: { FILECOIN: 'GLACIER_IR' } })
  await rejects(t, proxy.put('a'), 'InvalidStorageClass', 400)
  const upload = { ...at('a'), StorageClass: 'GLACIER' } as const
  await rejects(t, proxy.s3.send(new CreateMultipartUploadCommand(upload)), 'InvalidStorageClass', 400)
  const own = { Metadata: { 'deal-terms': 'miner=t01000;price=0.0001;duration=518400' } }
  await proxy.put('a', { ...own, StorageClass: 'FILECOIN' as 'GLACIER' })
  t.match(await proxy.ended('a'), { status: 'Complete' })
  t.equal((await proxy.head('a')).StorageClass, 'GLACIER_IR', 'a word of our own for a class that clients know')
  t.equal((await proxy.head('a')).Metadata?.['deal-terms'], own.Metadata['deal-terms'])
})

t.test('a copy is given up once a deal holds it, asked back, and goes again', async (t) => {
  await farFromMidnight()
  const proxy = await ArchiveProxy.start(t, { eviction: 'verified' })
  const { s3, endpoint } = proxy
  await proxy.put('a')
  await proxy.put('stays', { StorageClass: 'GLACIER_IR' })
  await proxy.put('hot', { StorageClass: 'STANDARD' })
  const { ETag, Metadata } = await proxy.untilCold('a')
  t.match(Metadata?.cid, /^baf/)

  await t.test('cold', async (t) => {
    const told = await signedRequest(endpoint, owner, { method: 'GET', path: `/${BUCKET}/a` })
    t.match(told, { status: 403, code: 'InvalidObjectState', body: '<StorageClass>GLACIER</StorageClass>' })
    for (const more of [{ IfNoneMatch: ETag }, { Range: 'bytes=99-' }])
      await rejects(t, s3.send(new GetObjectCommand({ ...at('a'), ...more })), 'InvalidObjectState', 403)
    const copy = s3.send(new CopyObjectCommand({ ...at('b'), CopySource: `${BUCKET}/a` }))
    await rejects(t, copy, 'ObjectNotInActiveTierError', 403)
    const { UploadId } = await s3.send(new CreateMultipartUploadCommand(at('b')))
    const part = { ...at('b'), UploadId, PartNumber: 1, CopySource: `${BUCKET}/a` }
    await rejects(t, s3.send(new UploadPartCopyCommand(part)), 'InvalidObjectState', 403)
    await s3.send(new AbortMultipartUploadCommand({ ...at('b'), UploadId }))
    const { Contents } = await s3.send(new ListObjectsV2Command({ Bucket: BUCKET }))
    t.same(
      Contents?.map(({ Key, StorageClass }) => [Key, StorageClass]),
      [
        ['a', 'GLACIER'],
        ['hot', 'STANDARD'],
        ['stays', 'GLACIER_IR'],
      ],
    )
    const bucket = `arn:aws:s3:::${BUCKET}`
    const Statement = [
      { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: `${bucket}/*` },
      { Effect: 'Allow', Principal: '*', Action: ['s3:GetBucketLocation', 's3:ListBucket'], Resource: bucket },
    ]
    await s3.send(new PutBucketPolicyCommand({ Bucket: BUCKET, Policy: JSON.stringify({ Statement }) }))
    const anonymous = await fetch(`${endpoint}/${BUCKET}/a`)
    t.equal(anonymous.status, 403)
    t.match(await anonymous.text(), /<Code>InvalidObjectState<[\s\S]*<StorageClass>GLACIER</)
    const looked = await fetch(`${endpoint}/${BUCKET}/a`, { method: 'HEAD' })
    t.same([looked.status, looked.headers.get('x-amz-storage-class')], [200, 'GLACIER'])
    t.equal((await fetch(`${endpoint}/${BUCKET}/a?restore`, { method: 'POST' })).status, 403)
  })

  await t.test('asked for what there is not', async (t) => {
    await rejects(t, proxy.restore('hot'), 'InvalidObjectState', 403)
    await rejects(t, proxy.restore('a', { Description: 'the deal=bafynone' }), 'NoSuchDeal', 404)
    t.equal((await proxy.head('a')).Restore, undefined)
  })

  await t.test('restored', async (t) => {
    await proxy.annotate('a', (archive) => ({ ...archive, restore: { ongoing: true } }))
    t.equal((await proxy.head('a')).Restore, 'ongoing-request="true"')
    await rejects(t, proxy.restore('a', { Days: 2 }), 'RestoreAlreadyInProgress', 409)
    await rejects(t, proxy.read('a'), 'InvalidObjectState', 403)
    await proxy.annotate('a', (archive) => ({ ...archive, restore: undefined }))
    const deal = `deal=${Metadata?.['deal-cid']}`
    const order = { Days: 2, Description: deal, GlacierJobParameters: { Tier: 'Expedited' } } as const
    t.equal(await proxy.restore('a', order), 202)
    const back = await proxy.untilRestored('a')
    const midnight = new Date((Math.floor((Date.now() + 2 * DAY_MS) / DAY_MS) + 1) * DAY_MS)
    t.same(
      [back.StorageClass, back.Restore],
      ['GLACIER', `ongoing-request="false", expiry-date="${midnight.toUTCString()}"`],
    )
    t.equal(back.ETag, ETag)
    t.equal(await proxy.read('a'), 'the bytes of a')
    const { Body } = await s3.send(new GetObjectCommand({ ...at('a'), Range: 'bytes=4-8' }))
    t.equal(await Body?.transformToString(), 'bytes')
    t.match(await proxy.ended('a', RESTORE), { status: 'Complete', input: { tier: 'Expedited', days: 2 } })
    t.equal(await proxy.restore('a', { Days: 4 }), 200)
    const renewed = new Date(midnight.getTime() + 2 * DAY_MS).toUTCString()
    t.equal((await proxy.head('a')).Restore, `ongoing-request="false", expiry-date="${renewed}"`)
    t.equal((await proxy.copy('a'))?.due, Date.parse(renewed))
    t.same(
      proxy.events.map(({ name, key }) => `${name} ${key}`),
      ['ObjectRestore:Post a', 'ObjectRestore:Completed a'],
    )
    t.match(proxy.events[1], { until: midnight.getTime(), storageClass: 'GLACIER', size: 14 })
  })

  await t.test('gone again, and back for good', async (t) => {
    proxy.ahead = 6 * DAY_MS
    await proxy.untilCold('a')
    await until('that is told', () => proxy.events.at(-1)?.name === 'ObjectRestore:Delete')
    t.equal(await proxy.restore('a'), 202)
    await proxy.untilKept('a')
    t.equal(await proxy.read('a'), 'the bytes of a')
    t.notOk(proxy.events.at(-1)?.until)
    t.equal(await proxy.restore('a', { Days: 1 }), 200, 'it stays')
    t.equal((await proxy.head('a')).Restore, undefined)
    t.equal((await proxy.head('stays')).StorageClass, 'GLACIER_IR', 'one in GLACIER_IR has stayed')
    await s3.send(new DeleteObjectCommand(at('stays')))
  })
})

t.test('a copy is not given up for a deal that ends soon', async (t) => {
  const proxy = await ArchiveProxy.start(t)
  // An epoch is a millisecond here: what is left of it is longer than the test takes.
  const duration = 1_500_000
  await proxy.put('a', { Metadata: { 'deal-terms': `duration=${duration}` } })
  const { Deal } = (await proxy.ended('a')).result as { Deal: { DealCid: string } }
  await proxy.advance(duration * 0.93)
  const deals = new DealRecords(proxy.host.state)
  await until('it is known that it ends soon', async () => {
    const live = (await deals.get(Deal.DealCid))?.live
    if (live?.expires && live.expires < Date.now() + duration / 10) return true
    // It may have been asked for before time jumped, which that of a network does not.
    await deals.setLive(Deal.DealCid, { state: 'StorageDealSealing', asked: 0 })
    return false
  })
  await proxy.open({ eviction: 'verified' })
  await proxy.put('b')
  await proxy.untilCold('b')
  t.match(await proxy.head('a'), { StorageClass: 'GLACIER_IR', Metadata: { 'deal-status': 'StorageDealActive' } })
  t.same(
    proxy.events.filter(({ key }) => key === 'a'),
    [],
    'nor given up and brought back',
  )
  t.ok(await proxy.copy('a'), 'it is tried again')
})

t.test('a restore of an object that is replaced on its way leaves the one in its place alone', async (t) => {
  const proxy = await ArchiveProxy.start(t)
  await proxy.put('b')
  await proxy.ended('b')
  const copy = await proxy.copy('b')
  t.ok(copy?.due)
  const input = { bucket: BUCKET, key: 'b', stamp: 'of the one before', days: 1, tier: 'Standard' }
  await proxy.host.own.jobs.create({ kind: RESTORE, resource: `/${BUCKET}/b`, input, accessKeyId: '' })
  t.match(await proxy.ended('b', RESTORE), { status: 'Failed', failure: { code: 'PreconditionFailed' } })
  t.same(await proxy.copy('b'), copy)
})

t.test('restores that fail, are cancelled, or outlive the server', async (t) => {
  const options = { eviction: 'verified' } as const
  const proxy = await ArchiveProxy.start(t, options)
  await proxy.put('a', { Metadata: { 'deal-terms': 'fast=false' } })
  await proxy.untilCold('a')
  const expedited = { GlacierJobParameters: { Tier: 'Expedited' } } as const
  await rejects(t, proxy.restore('a', expedited), 'GlacierExpeditedRetrievalNotAvailable', 503)

  await proxy.fault('offline', true)
  t.equal(await proxy.restore('a', { Days: 1 }), 202)
  const failed = await proxy.ended('a', RESTORE)
  t.match(failed, { status: 'Failed', failure: { code: 'InvalidObjectState', message: /No deal delivered/ } })
  t.match(await proxy.head('a'), { StorageClass: 'GLACIER', Restore: undefined })
  await rejects(t, proxy.read('a'), 'InvalidObjectState', 403)
  await proxy.fault('offline', false)

  const held = () => {
    const resource = `/${BUCKET}/a`
    return proxy.host.own.jobs.create({
      kind: RESTORE,
      resource,
      input: failed.input,
      accessKeyId: 'owner',
      held: true,
    })
  }
  const onItsWay = () => proxy.annotate('a', (archive) => ({ ...archive, restore: { ongoing: true } }))

  const forgotten = await held()
  await proxy.open(options)
  await until('the job is forgotten', async () => !(await proxy.host.own.jobs.get(forgotten.id)))
  t.equal((await proxy.head('a')).Restore, undefined, 'the server died before the object was told')

  const cancelled = await held()
  await onItsWay()
  await new LocalCopies(proxy.host.state).set({
    bucket: BUCKET,
    key: 'a',
    revision: (failed.input as RestoreInput).stamp,
    restoring: cancelled.id,
  })
  await proxy.host.own.jobs.cancel(cancelled.id)
  await proxy.untilHead('the object says so no longer', 'a', ({ Restore }) => Restore === undefined)

  const meant = await held()
  await onItsWay()
  await proxy.open(options)
  await proxy.untilRestored('a')
  const restored = async () => (await proxy.host.own.jobs.get(meant.id))?.status === 'Complete'
  await until('the job ends after the object says so', restored)

  proxy.ahead = 3 * DAY_MS
  await proxy.open({ eviction: 'off' })
  await proxy.untilKept('a')
})

t.test('one deal or none, whenever the server dies', async (t) => {
  const proxy = await ArchiveProxy.start(t)
  await proxy.put('named', { StorageClass: 'STANDARD' })
  const held = (key: string) => {
    const input: ObjectDealInput = { bucket: BUCKET, key, terms, cause: 'class' }
    const job = { kind: OBJECT_DEAL, resource: `/${BUCKET}/${key}`, input, accessKeyId: 'owner', held: true }
    return proxy.host.own.jobs.create(job)
  }
  const unnamed = [await held('named'), await held('nothing')]
  const { id } = await held('named')
  await proxy.annotate('named', () => ({ storageClass: 'GLACIER', jobId: id }))
  await proxy.open()
  t.match(await proxy.ended('named'), { id, status: 'Complete' })
  for (const job of unnamed) t.equal(await proxy.host.own.jobs.get(job.id), undefined)
  t.match(await proxy.head('named'), { StorageClass: 'GLACIER_IR', Metadata: { 'deal-count': '1' } })
  t.match(await proxy.copy('named'), { key: 'named' }, 'and its copy may go')
  await proxy.s3.send(new DeleteObjectCommand(at('named')))
  await until('nothing is planned for it', async () => (await proxy.copy('named')) === undefined)

  const late = await held('replaced')
  await proxy.put('replaced', { StorageClass: 'STANDARD' })
  await proxy.host.own.jobs.release(late.id)
  t.match(await proxy.ended('replaced'), { status: 'Failed', failure: { code: 'PreconditionFailed' } })
})

/** The rules of the bucket: one for all of its objects. */
function setRule({ s3 }: ArchiveProxy, actions: Partial<LifecycleRule>) {
  const Rules: LifecycleRule[] = [{ ID: 'archive', Status: 'Enabled', Filter: { Prefix: '' }, ...actions }]
  return s3.send(new PutBucketLifecycleConfigurationCommand({ Bucket: BUCKET, LifecycleConfiguration: { Rules } }))
}

t.test('lifecycle rules move objects into a class, once, as far as the money goes', async (t) => {
  await farFromMidnight()
  const proxy = await ArchiveProxy.start(t, { maxSpendPerDay: '300' }, { proxy: { lifecycleIntervalMs: 100 } })
  const Body = 'x'.repeat(128 * 1024)
  for (const key of ['a', 'b']) await proxy.put(key, { Body, StorageClass: 'STANDARD' })
  await proxy.put('small', { StorageClass: 'STANDARD' })
  await setRule(proxy, { Transitions: [{ Days: 1, StorageClass: 'GLACIER' }] })
  const moved = async () => {
    const { Contents = [] } = await proxy.s3.send(new ListObjectsV2Command({ Bucket: BUCKET }))
    return Contents.filter(({ StorageClass }) => StorageClass === 'GLACIER_IR').map(({ Key }) => Key)
  }
  const deals = async () => [...(await proxy.jobs('a')), ...(await proxy.jobs('b'))]
  /** A pass is over when it is on record for the day. */
  const passed = () => {
    const day = Math.floor((Date.now() + proxy.ahead) / DAY_MS)
    const passes = proxy.host.state.records<{ day: number }>('lifecycle-passes')
    return until('the day is done', async () => (await passes.get(BUCKET))?.day === day)
  }
  await passed()
  t.same(await moved(), [], 'too young')

  proxy.ahead = 3 * DAY_MS
  await passed()
  const [first] = await moved()
  t.same((await moved()).length, 1, 'the money of a day is enough for one')
  t.match(await proxy.ended(String(first)), { status: 'Complete', input: { cause: 'lifecycle' }, accessKeyId: '' })
  t.equal((await deals()).length, 1)
  t.match(proxy.events, [{ name: 'LifecycleTransition', key: first, storageClass: 'GLACIER' }])

  await proxy.fault('offline', true)
  proxy.ahead = 4 * DAY_MS
  await passed()
  const other = first === 'a' ? 'b' : 'a'
  t.match(await proxy.ended(other), { status: 'Failed' })
  await until('it is as any other again', async () => (await moved()).length === 1)
  await proxy.fault('offline', false)

  proxy.ahead = 5 * DAY_MS
  await passed()
  t.match(await proxy.ended(other), { status: 'Complete' })
  t.same(await moved(), ['a', 'b'])
  proxy.ahead = 6 * DAY_MS
  await passed()
  t.equal((await deals()).length, 3, 'one for each, and the one that was refused')
  t.equal(proxy.events.length, 3)
})

t.test('lifecycle rules make a deal of a version that is not current', async (t) => {
  await farFromMidnight()
  const proxy = await ArchiveProxy.start(t, {}, { proxy: { lifecycleIntervalMs: 100 } })
  const VersioningConfiguration = { Status: 'Enabled' } as const
  await proxy.s3.send(new PutBucketVersioningCommand({ Bucket: BUCKET, VersioningConfiguration }))
  const put = async (letter: string) => {
    await proxy.put('a', { Body: letter.repeat(128 * 1024), StorageClass: 'STANDARD' })
    return (await proxy.head('a')).VersionId
  }
  const [old, current] = [await put('x'), await put('y')]
  proxy.ahead = 3 * DAY_MS
  await setRule(proxy, { NoncurrentVersionTransitions: [{ NoncurrentDays: 1, StorageClass: 'GLACIER' }] })
  const classOf = async (VersionId: string | undefined) =>
    (await proxy.s3.send(new HeadObjectCommand({ Bucket: BUCKET, Key: 'a', VersionId }))).StorageClass
  await until('the version is in the class', async () => (await classOf(old)) !== undefined)
  t.match(await proxy.ended('a'), { status: 'Complete', input: { cause: 'lifecycle' } })
  t.equal((await proxy.jobs('a')).length, 1)
  t.equal(await classOf(current), undefined)
  t.match(proxy.events, [{ name: 'LifecycleTransition', versionId: old, storageClass: 'GLACIER' }])
})

t.test('lifecycle rules pass over plain objects where deals are of encrypted ones alone', async (t) => {
  await farFromMidnight()
  const proxy = await ArchiveProxy.start(t, { maxTransitionsPerDay: 1 }, { proxy: { lifecycleIntervalMs: 100 } })
  const cold = { Body: 'x'.repeat(128 * 1024), StorageClass: 'STANDARD' } as const
  for (const key of ['a', 'b']) await proxy.put(key, cold)
  await proxy.host.settings.set(BUCKET, 'deal', { PublicNetwork: 'encrypted-only' })
  await proxy.put('c', cold)
  await setRule(proxy, { Transitions: [{ Days: 1, StorageClass: 'GLACIER' }] })
  proxy.ahead = 3 * DAY_MS
  await until('the one that is encrypted is moved', async () => (await proxy.jobs('c')).length === 1)
  t.match(await proxy.ended('c'), { status: 'Complete' })
  t.same([...(await proxy.jobs('a')), ...(await proxy.jobs('b'))], [])
})

type Change = 'release' | 'drop'

/** The next `release` or `drop` of a job cannot be written. */
function failOnce(jobs: Jobs, name: Change): Promise<void> {
  const changing = jobs as { [Name in Change]: (id: string, input?: unknown) => Promise<void> }
  const real = changing[name]
  return new Promise((resolve) => {
    changing[name] = async () => {
      changing[name] = real
      resolve()
      throw new S3Error('ServiceUnavailable')
    }
  })
}

t.test('a job that could not be let begin begins all the same, without a restart', async (t) => {
  const proxy = await ArchiveProxy.start(t, { eviction: 'verified' })
  const { jobs } = proxy.host.own
  const stored = failOnce(jobs, 'release')
  await proxy.put('a')
  await stored
  t.match(await proxy.ended('a'), { status: 'Complete' })
  await proxy.untilCold('a')

  const restored = failOnce(jobs, 'release')
  t.equal(await proxy.restore('a', { Days: 1 }), 202)
  await restored
  t.match(await proxy.ended('a', RESTORE), { status: 'Complete' })
  await proxy.untilRestored('a')

  const dropped = failOnce(jobs, 'drop')
  await t.rejects(proxy.put('b', { Body: 'other', ContentMD5: 'AAAAAAAAAAAAAAAAAAAAAA==' }), { name: 'BadDigest' })
  await dropped
  const [held] = await proxy.jobs('b')
  if (held) t.match(await jobs.wait(held.id, 60_000).catch((error) => error), { code: 'NoSuchJob' })
})

/** Less than one deal costs. */
const options = { maxSpendPerDay: '0.001' } as const

async function waiting(proxy: ArchiveProxy, key: string): Promise<string> {
  await proxy.put(key)
  const [{ id } = { id: '' }] = await proxy.jobs(key)
  await until('it waits for the money of another day', async () => {
    const job = await proxy.host.own.jobs.get(id)
    return job?.progress.phase === 'WaitingForBudget'
  })
  return id
}

const wait = (proxy: ArchiveProxy, id: string): Promise<Job> => proxy.host.own.jobs.wait(id, 60_000)

t.test('a deal that waits for money ends when its object is replaced or removed, also behind the server', async (t) => {
  await farFromMidnight()
  const proxy = await ArchiveProxy.start(t, options)
  const [first, last] = [await waiting(proxy, 'a'), await waiting(proxy, 'a')]
  const replaced = { code: 'PreconditionFailed', message: /replaced before its deal was made/ }
  t.match(await wait(proxy, first), { status: 'Failed', failure: replaced })
  t.match(await proxy.host.own.jobs.get(last), { status: 'Active', progress: { phase: 'WaitingForBudget' } })
  await proxy.s3.send(new DeleteObjectCommand(at('a')))
  t.match(await wait(proxy, last), { status: 'Failed', failure: { code: 'NoSuchKey' } })

  const [gone, stays] = [await waiting(proxy, 'gone'), await waiting(proxy, 'stays')]
  await proxy.host.own.gateway.remove(BUCKET, 'gone', anyOrder())
  await proxy.open(options)
  t.match(await wait(proxy, gone), { status: 'Failed', failure: { code: 'NoSuchKey' } }, 'after a restart')
  t.match(await proxy.host.own.jobs.get(stays), { status: 'Active' })
})
