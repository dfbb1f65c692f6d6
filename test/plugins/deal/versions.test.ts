import {
  DeleteObjectCommand,
  GetObjectTaggingCommand,
  PutBucketVersioningCommand,
  type PutObjectCommandInput,
  PutObjectLegalHoldCommand,
  PutObjectLockConfigurationCommand,
} from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { LocalCopies } from '../../../plugins/deal/archive/local-copies.js'
import { DealDeps, dealGauges } from '../../../plugins/deal/deps.js'
import { dealOptions } from '../../../plugins/deal/options.js'
import type { DealRecord } from '../../../plugins/deal/records/deal-record.js'
import { DealRecords, subjectKey } from '../../../plugins/deal/records/deal-records.js'
import { type DeepMark, DeepMarks } from '../../../plugins/deal/records/deep-marks.js'
import type { GaugeSample } from '../../../src/api/plugin.js'
import type { Fate } from '../../support/gateway/between.js'
import { owner } from '../../support/plugins/deal-proxy.js'
import { signedCall } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET, terms } from './archive-proxy.js'
import { together } from './together.js'

/** Deals, eviction, restores and renewals of the versions of an object, each by itself. */

t.jobs = 4

const DAY = 86_400_000

/** A bucket with versions over a gateway that evicts. */
class Versioned {
  readonly t: Test
  readonly proxy: ArchiveProxy
  readonly records: DealRecords

  constructor(t: Test, proxy: ArchiveProxy) {
    this.t = t
    this.proxy = proxy
    this.records = new DealRecords(proxy.host.state)
  }

  static async start(t: Test, { locks = false, ...deal }: Record<string, unknown> = {}): Promise<Versioned> {
    const proxy = await ArchiveProxy.start(t, { eviction: 'verified', ...deal })
    const it = new Versioned(t, proxy)
    await it.enable()
    if (locks)
      await proxy.s3.send(
        new PutObjectLockConfigurationCommand({
          Bucket: BUCKET,
          ObjectLockConfiguration: { ObjectLockEnabled: 'Enabled' },
        }),
      )
    return it
  }

  enable() {
    const VersioningConfiguration = { Status: 'Enabled' } as const
    return this.proxy.s3.send(new PutBucketVersioningCommand({ Bucket: BUCKET, VersioningConfiguration }))
  }

  /** Id of the new version. */
  async put(key: string, Body: string, more: Partial<PutObjectCommandInput> = {}): Promise<string> {
    return (await this.proxy.put(key, { Body, ...more })).VersionId ?? ''
  }

  async remove(Key: string, VersionId?: string): Promise<string | undefined> {
    return (await this.proxy.s3.send(new DeleteObjectCommand({ Bucket: BUCKET, Key, VersionId }))).VersionId
  }

  /** Restores the version for a day, and reads it. */
  async restored(key: string, id: string): Promise<string | undefined> {
    await this.proxy.restore(key, { Days: 1 }, id)
    await this.proxy.untilRestored(key, id)
    return this.proxy.read(key, id)
  }

  /** The document of a call, whose answer must have this status. */
  async ask(method: string, target: string, { status = 200, body }: { status?: number; body?: object } = {}) {
    const answer = await this.proxy.call(method, target, body)
    this.t.equal(answer.status, status, answer.body)
    return answer.json
  }

  async deals(key: string, id: string) {
    return (await this.ask('GET', `/${key}?x-deal=&versionId=${id}`)).DealEntry.map(
      (entry: { Deal: object }) => entry.Deal,
    )
  }

  /** Revision of a version. */
  async revision(key: string, id: string): Promise<string> {
    return (await this.proxy.host.own.store.head(BUCKET, key, { id })).revision
  }

  /** The time is over for which the copy of a version was restored. */
  async expire(key: string, id: string): Promise<void> {
    const { own, state, now } = this.proxy.host
    const revision = await this.revision(key, id)
    const over = now() - 1
    await own.store.annotate(BUCKET, key, revision, (archive) => ({ ...archive, restore: { until: over } }))
    await new LocalCopies(state).set({ bucket: BUCKET, key, revision, due: over })
    await this.proxy.untilCold(key, id)
  }

  /** Waits until the state of a deal is asked for, and what follows from it is done: the question is asked again. */
  async untilAsked(dealCid: string): Promise<void> {
    for (let look = 0; look < 2; look++) {
      await this.proxy.pass(LIFE / 15)
      const now = this.proxy.host.now()
      await until('its state is asked for', async () => ((await this.records.get(dealCid))?.live?.asked ?? 0) >= now)
    }
  }

  lock(key: string, id: string, hold: boolean) {
    const LegalHold = { Status: hold ? 'ON' : 'OFF' } as const
    return this.proxy.s3.send(new PutObjectLegalHoldCommand({ Bucket: BUCKET, Key: key, VersionId: id, LegalHold }))
  }
}

together('each version is evicted, restored and read by itself, until it is deleted', async (t) => {
  const it = await Versioned.start(t)
  const first = await it.put('a', 'the first bytes')
  await it.proxy.untilCold('a', first)
  const second = await it.put('a', 'the second ones')
  await it.proxy.untilCold('a', second)
  const hot = await it.put('a', 'and others', { StorageClass: 'STANDARD' })
  await it.remove('a')

  await t.rejects(it.proxy.read('a', first), { name: 'InvalidObjectState' })
  await it.proxy.restore('a', { Days: 3 }, second)
  t.equal(await it.restored('a', first), 'the first bytes')
  await it.proxy.untilRestored('a', second)
  t.equal(await it.proxy.read('a', second), 'the second ones')
  t.equal(await it.proxy.read('a', hot), 'and others')
  const { s3, events } = it.proxy
  t.same(
    events
      .filter(({ name }) => name === 'ObjectRestore:Completed')
      .map(({ versionId }) => versionId)
      .sort(),
    [first, second].sort(),
  )
  it.proxy.ahead += 2 * DAY
  await it.proxy.untilCold('a', first)
  t.match((await it.proxy.head('a', second)).Restore, /expiry-date/, 'the other one stays for its days')
  t.same((await s3.send(new GetObjectTaggingCommand({ Bucket: BUCKET, Key: 'a', VersionId: first }))).TagSet, [])

  const [deal, ...others] = await it.deals('a', first)
  t.same(others, [])
  t.match(deal, { Status: 'StorageDealActive' })
  t.same(await it.deals('a', hot), [])
  t.match(await it.ask('GET', '/a?x-deal=', { status: 404 }), { Code: 'NoSuchKey' })
  const told = (await it.ask('GET', `/a?x-deal-history=&versionId=${first}`)).History.map(
    ({ Event }: { Event: string }) => Event,
  )
  for (const event of ['Stored', 'DealMade', 'Evicted', 'Restored']) t.ok(told.includes(event), event)

  await it.remove('a', first)
  await t.rejects(it.proxy.head('a', first))
  await it.ask('GET', `/a?x-deal=&versionId=${first}`, { status: 404 })
  t.equal(await it.proxy.read('a', second), 'the second ones')
})

together('calls about a version: a quote, a deal of its bytes, and their return', async (t) => {
  const it = await Versioned.start(t)
  const first = await it.put('a', 'the first bytes', { StorageClass: 'STANDARD' })
  const second = await it.put('a', 'some more bytes than before', { StorageClass: 'STANDARD' })
  const same = await it.put('same', 'the first bytes', { StorageClass: 'STANDARD' })
  t.match(await it.ask('POST', `/a?x-deal-quote=&versionId=${first}`, { body: {} }), { Bytes: 15 })
  t.match(await it.ask('POST', '/a?x-deal-quote=', { body: {} }), { Bytes: 27 })
  const { Deal } = await it.ask('POST', `/a?x-deal=&versionId=${first}`, { body: {} })
  const twin = await it.ask('POST', `/same?x-deal=&versionId=${same}`, { body: {} })
  t.equal(Deal.DataCid, twin.Deal.DataCid, 'the deal has the bytes of that version')
  const other = await it.ask('POST', '/a?x-deal=', { body: {} })
  t.not(other.Deal.DataCid, Deal.DataCid)
  t.match(await it.deals('a', first), [{ DealCid: Deal.DealCid }])
  t.match(await it.deals('a', second), [{ DealCid: other.Deal.DealCid }])
  for (const [id, status, Code] of [
    ['0'.repeat(31), 400, 'InvalidArgument'],
    ['0'.repeat(32), 404, 'NoSuchVersion'],
    [await it.remove('a'), 405, 'MethodNotAllowed'],
  ] as const)
    t.match(await it.ask('POST', `/a?x-deal=&versionId=${id}`, { status, body: {} }), { Code })

  const cold = await it.put('b', 'archived')
  await it.proxy.untilCold('b', cold)
  await it.put('b', 'over it', { StorageClass: 'STANDARD' })
  const retrieve = (id: string, status: number) =>
    it.ask('POST', `/b?x-deal-retrieve=&versionId=${id}`, { status, body: { Days: 1 } })
  t.match(await retrieve(cold, 202), { State: 'Restoring', Deal: [{}] })
  await it.proxy.untilRestored('b', cold)
  t.match(await retrieve(cold, 200), { State: 'Restored', Deal: [{}] })
  t.equal(await it.proxy.read('b', cold), 'archived')
})

together('a deal is made of the bytes that it was ordered for, or not at all', async (t) => {
  const proxy = await ArchiveProxy.start(t, {}, {}, { hop: true })
  const it = new Versioned(t, proxy)
  const store = (key: string, Body: string) => it.put(key, Body, { StorageClass: 'STANDARD' })
  await store('a', 'the first bytes')
  await store('twin', 'the first bytes')
  if (!proxy.between) throw new Error('there is no hop')
  proxy.between.fate = async ({ path }): Promise<Fate> => {
    if (path.startsWith('/gateway/deal/photos/a')) await store('a', 'later bytes')
    return 'pass'
  }
  t.match(await it.ask('POST', '/a?x-deal=', { status: 412, body: {} }), { Code: 'PreconditionFailed' })
  t.same((await it.ask('GET', '/a?x-deal=')).DealEntry, [])
  await it.enable()
  const first = await store('a', 'the first bytes')
  const { Deal } = await it.ask('POST', '/a?x-deal=', { body: {} })
  t.equal(Deal.DataCid, (await it.ask('POST', '/twin?x-deal=', { body: {} })).Deal.DataCid)
  t.match(await it.deals('a', first), [{ DealCid: Deal.DealCid }])
})

together('writes at the same time each get the deal of their own bytes', async (t) => {
  const it = await Versioned.start(t)
  const bodies = Array.from({ length: 3 }, (_, i) => `the bytes of write ${i}`)
  const ids = await Promise.all(bodies.map((body) => it.put('a', body)))
  for (const [i, id] of ids.entries()) {
    await it.proxy.untilCold('a', id)
    t.equal((await it.deals('a', id)).length, 1)
    t.equal(await it.restored('a', id), bodies[i])
  }
})

together('a job that was held when its server died finds the version that names it', async (t) => {
  const it = await Versioned.start(t)
  const { jobs, store } = it.proxy.host.own
  const id = await it.put('a', 'the first bytes', { StorageClass: 'STANDARD' })
  const agreed = { terms: { ...terms, verifiedDeal: false, fastRetrieval: true }, cause: 'class' as const }
  const job = await jobs.create({
    ...{ kind: 'deal:CreateObjectDeal', resource: `/${BUCKET}/a`, accessKeyId: '', held: true },
    input: { bucket: BUCKET, key: 'a', ...agreed },
  })
  await store.annotate(BUCKET, 'a', await it.revision('a', id), () => ({ storageClass: 'GLACIER', jobId: job.id }))
  await it.put('a', 'later', { StorageClass: 'STANDARD' })
  await it.remove('a')
  await jobs.leave(job.id)
  await it.proxy.untilCold('a', id)
  t.equal(await it.restored('a', id), 'the first bytes')
})

together('objects that are only in deals stay readable when their bucket gets versions', async (t) => {
  const proxy = await ArchiveProxy.start(t, { eviction: 'verified' })
  await proxy.put('a')
  await proxy.untilCold('a')
  const it = new Versioned(t, proxy)
  await it.enable()
  await it.put('a', 'later', { StorageClass: 'STANDARD' })
  t.equal(await it.restored('a', 'null'), 'the bytes of a')
})

together('the deal of a version is renewed by the bucket, and gone for it when it is deleted', async (t) => {
  const it = await Versioned.start(t)
  const first = await it.put('a', 'the first bytes')
  const second = await it.put('a', 'the second ones')
  for (const id of [first, second]) await it.proxy.untilCold('a', id)
  const marker = await it.remove('a')
  t.ok(marker)
  await it.ask('POST', '?x-deal-config=', { body: { RenewBeforeDays: 30, PublicNetwork: 'encrypted-only' } })
  t.match(await it.deals('a', first), [{ RenewUntil: 'Removal' }])
  const revision = await it.revision('a', second)
  await it.remove('a', second)
  await it.proxy.pass(800_000)
  await until('it is renewed', async () => (await it.deals('a', first)).length === 2)
  t.equal(await it.restored('a', first), 'the first bytes')
  t.equal((await it.records.ofVersion({ bucket: BUCKET, key: 'a', revision })).length, 1, 'not that of a deleted one')
})

/** Length of a deal, ms: an epoch is one. */
const LIFE = terms.duration

const date = (time: number) => `${new Date(time).toISOString().slice(0, 19)}Z`

together('the deal of a version under COMPLIANCE is renewed until the lock ends, and not after', async (t) => {
  const it = await Versioned.start(t, { locks: true })
  const { proxy } = it
  const end = Math.floor((Date.now() + LIFE * 1.4) / 1000) * 1000
  const id = await it.put('a', 'the first bytes', {
    ...{ ObjectLockMode: 'COMPLIANCE', ObjectLockRetainUntilDate: new Date(end), ChecksumAlgorithm: 'SHA256' },
  })
  await it.proxy.untilCold('a', id)
  const deals = await it.deals('a', id)
  t.match(deals, [{ LockedUntil: date(end), RenewUntil: date(end), LegalHold: undefined }])
  const whole = await signedCall(proxy.endpoint, owner, 'GET', `/-/deal/v1/deals/${deals[0].DealCid}?format=json`)
  t.match(JSON.parse(whole.body), { LockedUntil: date(end), RenewUntil: date(end) })
  t.equal(await it.restored('a', id), 'the first bytes')

  await it.expire('a', id)
  await it.put('a', 'over it', { StorageClass: 'STANDARD' })
  await proxy.pass(LIFE * 0.6)
  await until('it is renewed after half of its time', async () => (await it.deals('a', id)).length === 2)
  t.match(await it.deals('a', id), [{ RenewUntil: undefined }, { LockedUntil: date(end), RenewUntil: date(end) }])
  const second = (await it.deals('a', id))[1].DealCid
  const job = await proxy.host.own.jobs.get((await it.records.get(second))?.jobId ?? '')
  t.match(job?.input, { lockedUntil: end, cause: 'lifecycle' })
  t.equal(await it.restored('a', id), 'the first bytes', 'after an overwrite')

  await it.expire('a', id)
  await it.remove('a')
  await t.rejects(it.remove('a', id), { name: 'AccessDenied' })
  // The first deal ends. The second one has passed half of its time, and lasts longer than the lock.
  await proxy.pass(LIFE * 0.6)
  await it.untilAsked(second)
  t.equal((await it.deals('a', id)).length, 2, 'it is not renewed beyond the lock')
  await it.proxy.untilCold('a', id)
  await proxy.configureInventory('All', [
    ...['StorageClass', 'ObjectLockMode', 'ObjectLockRetainUntilDate', 'x-Cid', 'x-PieceCid', 'x-DealState'],
    ...['x-DealCount', 'x-Providers', 'x-DealEndEpoch', 'x-DealEnd', 'x-TaskUuid', 'x-BytesAt'],
  ])
  const rows = await proxy.inventory()
  const proof = rows.find(({ VersionId }) => VersionId === id)
  t.match(proof, {
    ...{ Key: 'a', IsLatest: 'false', StorageClass: 'GLACIER', 'x-BytesAt': 'provider', 'x-DealCount': '1' },
    ...{ ObjectLockMode: 'Compliance', ObjectLockRetainUntilDate: new Date(end).toISOString() },
    ...{ 'x-Cid': (await proxy.head('a', id)).Metadata?.cid, 'x-PieceCid': /^baga/, 'x-DealEndEpoch': /^\d+$/ },
    ...{ 'x-DealState': 'StorageDealActive', 'x-Providers': terms.minerId, 'x-TaskUuid': '' },
  })
  const over = rows.find(({ StorageClass }) => StorageClass === 'STANDARD')
  t.match(over, { 'x-BytesAt': 'gateway', 'x-DealCount': '0', 'x-Cid': '', 'x-DealState': '', 'x-DealEnd': '' })
  const { 'x-DealEnd': lasts = '' } = proof ?? {}
  t.ok(Date.parse(lasts) > end, `the inventory proves that a deal holds it beyond its lock: until ${lasts}`)
  t.equal(await it.restored('a', id), 'the first bytes', 'behind a delete marker')
  await it.expire('a', id)
  await proxy.pass(LIFE * 0.17)
  await it.proxy.untilKept('a', id)
  t.equal(await it.proxy.read('a', id), 'the first bytes', 'the bytes come back before their last deal ends')
  t.equal((await it.deals('a', id)).length, 2)
})

together('a lock that is set after the eviction has the deal renewed, while it is on', async (t) => {
  const it = await Versioned.start(t, { locks: true })
  const { proxy } = it
  const id = await it.put('a', 'the first bytes')
  await it.proxy.untilCold('a', id)
  await it.remove('a')
  t.match(await it.deals('a', id), [{ LockedUntil: undefined, RenewUntil: undefined }])
  await it.lock('a', id, true)
  t.match(await it.deals('a', id), [{ LegalHold: true, LockedUntil: undefined, RenewUntil: 'LegalHold' }])
  await proxy.pass(LIFE * 0.6)
  await until('it is renewed after half of its time', async () => (await it.deals('a', id)).length === 2)
  await it.lock('a', id, false)
  await proxy.pass(LIFE * 0.6)
  await it.untilAsked((await it.deals('a', id))[1].DealCid)
  t.equal((await it.deals('a', id)).length, 2)
  t.equal(await it.restored('a', id), 'the first bytes')
})

together('a renewal for a lock that cannot be paid is reported, and the bytes come back', async (t) => {
  await farFromMidnight()
  // For one deal.
  const deal = { maxSpendPerDay: '200' }
  const it = await Versioned.start(t, { locks: true, ...deal })
  const { proxy } = it
  const id = await it.put('a', 'the first bytes', { ObjectLockLegalHoldStatus: 'ON', ChecksumAlgorithm: 'SHA256' })
  await it.proxy.untilCold('a', id)
  await it.put('a', 'over it', { StorageClass: 'STANDARD' })
  const gauge = dealGauges(new DealDeps(dealOptions.parse(deal), proxy.host)).find(
    ({ name }) => name === 'lock_renewals',
  )
  const failing = async () =>
    (await gauge?.read())?.find(({ labels }: GaugeSample) => labels?.state === 'Failed')?.value
  t.equal(await failing(), 0)
  await proxy.pass(LIFE * 0.6)
  const failed = await until('it is in the history', async () =>
    (await it.ask('GET', `/a?x-deal-history=&versionId=${id}`)).History.find(
      ({ Event }: { Event: string }) => Event === 'RenewalFailed',
    ),
  )
  t.match(failed, { Code: 'SpendCapReached', JobStatus: 'Active', Phase: 'WaitingForBudget' })
  t.equal(await failing(), 1)
  await proxy.pass(LIFE * 0.32)
  await it.proxy.untilKept('a', id)
  t.equal(await it.proxy.read('a', id), 'the first bytes')
  await until('it needs no renewal', async () => (await failing()) === 0)
})

t.test('records of an earlier release, which had one for each key', async (t) => {
  const proxy = await ArchiveProxy.start(t, { statusIntervalSeconds: 86_400, evictionIntervalSeconds: 86_400 })
  const { state } = proxy.host
  const version = { bucket: BUCKET, key: 'a', revision: 'the first' }
  const another = { ...version, revision: 'another' }
  const earlier = { bucket: BUCKET, key: 'a', stamp: version.revision }
  const oldKey = subjectKey(BUCKET, 'a')
  const copies = new LocalCopies(state)
  await state.records('deal-local-copies').set(oldKey, { ...earlier, due: 1 })
  for (const _ of ['renamed', 'kept']) for await (const copy of copies.all()) t.same(copy, { ...version, due: 1 })
  t.same(await copies.get(version), { ...version, due: 1 })
  await copies.set({ ...another, due: 1 })
  await copies.forget(version)
  t.equal(await copies.get(version), undefined)
  t.ok(await copies.get(another))

  const mark: DeepMark = { bucket: BUCKET, key: 'a', since: 5, object: { revision: version.revision, size: 1 } }
  const marks = new DeepMarks(state)
  await state.records('deal-deep-marks').set(oldKey, { ...mark, object: { stamp: version.revision, size: 1 } })
  t.same(await marks.get(version), mark)
  for await (const found of marks.all()) t.same(found, mark)
  await marks.set({ bucket: BUCKET, key: 'a', since: 6 })
  t.same(await marks.get(version), mark, 'an object that is on its way leaves it')
  t.match(await marks.get(another), { since: 6 })

  const deal = { ...earlier, jobId: 'j', cause: 'call', account: '', made: 1, deal: { dealCid: 'bafyone' } }
  await state.records('deals').set('bafyone', deal)
  await state.records('deal-subjects').set(oldKey, { bucket: BUCKET, key: 'a', deals: ['bafyone'] })
  const deals = new DealRecords(state)
  const next = { ...deal, revision: version.revision, deal: { dealCid: 'bafytwo' } } as unknown as DealRecord
  t.ok(await deals.remember(next))
  t.match(await deals.ofVersion(version), [{ deal: { dealCid: 'bafyone' } }, { deal: { dealCid: 'bafytwo' } }])
  t.same(await deals.ofVersion(another), [])
})
