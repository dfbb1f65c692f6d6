import t from 'tap'
import { S3Error } from '../../../common/errors/s3-error.js'
import { createLogger } from '../../../common/log.js'
import { DAY_MS } from '../../../common/time.js'
import { LocalCopies } from '../../../plugins/deal/archive/local-copies.js'
import { RESTORE } from '../../../plugins/deal/archive/restore.js'
import { ObjectEvents } from '../../../plugins/deal/records/object-events.js'
import type { RunningJob } from '../../../src/api/context.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { type DealProxy, owner } from '../../support/plugins/deal-proxy.js'
import { signedCall } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET } from './archive-proxy.js'

interface Event {
  readonly Event: string
  readonly Time: string
  readonly [member: string]: unknown
}

async function get(endpoint: string, target: string, keys = owner) {
  const answer = await signedCall(endpoint, keys, 'GET', `${target}&format=json`, {})
  return { ...answer, json: JSON.parse(answer.body) }
}

async function historyOf({ endpoint }: Pick<DealProxy, 'endpoint'>, key: string, keys = owner): Promise<Event[]> {
  const { status, body, json } = await get(endpoint, `/${BUCKET}/${key}?x-deal-history=`, keys)
  if (status !== 200) throw new Error(body)
  return json.History
}

const namesOf = (events: readonly Event[]) => events.map(({ Event }) => Event)

/** Those of the network come when the gateway is asked. */
const ours = (events: readonly Event[]) => namesOf(events).filter((name) => name !== 'DealState')

t.test('the life of an object, over restarts of the server', async (t) => {
  await farFromMidnight()
  const reader = { accessKeyId: 'reader', secretAccessKey: 'reader-secret-key' }
  const identities = [owner, { ...reader, rights: [{ bucket: BUCKET, prefix: 'a', access: 'read' as const }] }]
  const proxy = await ArchiveProxy.start(t, { eviction: 'verified' }, { identities })
  await proxy.put('plain', { StorageClass: 'STANDARD' })
  t.match(await historyOf(proxy, 'plain'), [{ Event: 'Stored' }])
  t.same(await historyOf(proxy, 'none'), [])

  await proxy.fault('offline', true)
  await proxy.put('a')
  const failed = await proxy.ended('a')
  t.match(await historyOf(proxy, 'a'), [
    { Event: 'Stored', StorageClass: 'GLACIER' },
    { Event: 'DealRequested', JobId: failed.id },
    {
      Event: 'DealFailed',
      JobId: failed.id,
      JobStatus: 'Failed',
      Code: 'DealRejected',
      Message: failed.failure?.message,
    },
  ])
  const seen = await historyOf(proxy, 'a', reader)
  t.match(seen.at(-1), { Event: 'DealFailed', Code: 'DealRejected' })
  t.notOk(seen.at(-1)?.Message, 'what is spent is not for every reader')
  t.equal((await get(proxy.endpoint, `/${BUCKET}/plain?x-deal-history=`, reader)).status, 403)

  // No plan: the object stays readable. A retry of the job that succeeds makes one.
  const copies = new LocalCopies(proxy.host.state)
  await until('the copy is kept', async () => (await copies.all().next()).done)
  await proxy.fault('offline', false)
  await proxy.host.own.jobs.retry(failed.id)
  const { Metadata } = await proxy.untilCold('a')
  const events = await historyOf(proxy, 'a')
  t.same(ours(events).slice(0, 5), ['Stored', 'DealRequested', 'DealFailed', 'DealRequested', 'DealMade'])
  t.same(ours(events).slice(5).sort(), ['DealVerified', 'Evicted'])
  const made = events.find(({ Event }) => Event === 'DealMade')
  const facts = { DealCid: Metadata?.['deal-cid'], DataCid: Metadata?.cid, PieceCid: /^baga/, Cause: 'class' }
  t.match(made, { ...facts, JobId: failed.id, JobStatus: 'Complete', MinerId: 't01000' })
  const states = events.filter(({ Event }) => Event === 'DealState').map(({ State }) => State)
  t.same([...new Set(states)], states, 'a state is told once, however often the gateway was asked')
  t.equal(states.at(-1), 'StorageDealActive')
  const times = events.map(({ Time }) => Time)
  t.same(times, times.toSorted())

  await proxy.open({ eviction: 'verified' }, { identities })
  t.same(await historyOf(proxy, 'a'), events, 'after a restart')
  t.equal(await proxy.restore('a', { Days: 2 }), 202)
  const restored = await proxy.ended('a', RESTORE)
  t.equal(await proxy.restore('a', { Days: 3 }), 200)
  t.match((await historyOf(proxy, 'a')).slice(events.length), [
    { Event: 'RestoreRequested', JobId: restored.id },
    { Event: 'Restored', JobId: restored.id, Until: /T00:00:00Z/ },
    { Event: 'RestoreProlonged', Until: /T00:00:00Z/ },
  ])
  proxy.ahead = 6 * DAY_MS
  await proxy.untilCold('a')
  await proxy.fault('offline', true)
  t.equal(await proxy.restore('a'), 202)
  await until('the restore fails', async () => (await historyOf(proxy, 'a')).at(-1)?.Event === 'RestoreFailed')
  const told = await historyOf(proxy, 'a')
  t.match(told.slice(-3), [
    { Event: 'Evicted', Message: /is over/ },
    { Event: 'RestoreRequested' },
    { Message: /No deal/ },
  ])

  const first = await get(proxy.endpoint, `/${BUCKET}/a?max-items=2&x-deal-history=`)
  t.same(first.json.History, told.slice(0, 2))
  t.ok(first.json.NextContinuationToken)
  const { json } = await get(proxy.endpoint, `/-/deal/v1/deals/${made?.DealCid}?expand=history`)
  t.match(json.History.Events[0], { Event: 'DealMade' })
  t.ok(json.History.Events.every(({ DealCid }: Event) => DealCid === made?.DealCid))

  await proxy.fault('offline', false)
  await proxy.put('a', { Body: 'another', StorageClass: 'STANDARD' })
  const later = await historyOf(proxy, 'a')
  t.same(
    later.filter(({ EarlierVersion }) => !EarlierVersion).map(({ Event }) => Event),
    ['Stored'],
  )
  t.ok(later.some(({ Event, EarlierVersion }) => Event === 'Evicted' && EarlierVersion))
})

t.test('a job that runs again later tells no failure, and a record does not grow', async (t) => {
  const log = createLogger({ level: 'silent' })
  const state = await openState({ data: temporaryFolder(t), log })
  t.teardown(() => state.close())
  const events = new ObjectEvents({ state, log, now: Date.now })
  const object = { bucket: 'b', key: 'k' }
  const run = (error: Error, more: Partial<RunningJob<typeof object>> = {}) => {
    const job = {
      ...{ job: { id: 'j', accessKeyId: 'k' }, context: {}, input: object },
      ...{ signal: new AbortController().signal, owned: () => true, ...more },
    } as RunningJob<typeof object>
    return t.rejects(events.ofJob(job, ['DealRequested', 'DealFailed'], () => Promise.reject(error)))
  }
  const refused = new S3Error('DealRejected')
  await run(new Error('the job runs again later'))
  await run(refused, { owned: () => false })
  await run(refused, { signal: AbortSignal.abort() })
  t.match(await events.of(object), [{ event: 'DealRequested' }])
  for (const _ of ['first', 'again']) await run(refused)
  t.match(await events.of(object), [{ event: 'DealRequested' }, { event: 'DealFailed', code: 'DealRejected' }])
  t.equal((await events.of(object)).length, 2)
  for (let i = 0; i < 120; i++) {
    await events.add(object, { id: String(i), event: 'Evicted', account: '', by: '', message: 'x'.repeat(5000) })
  }
  const kept = await events.of(object)
  t.match([kept.length, kept[0]?.id, kept.at(-1)?.id], [100, '20', '119'])
  t.equal(kept[0]?.message?.length, 1000)
})
