import t from 'tap'
import { RESTORE } from '../../../plugins/deal/archive/restore.js'
import { ObjectEvents } from '../../../plugins/deal/records/object-events.js'
import type { RunningJob } from '../../../src/api/context.js'
import { S3Error } from '../../../src/common/errors/s3-error.js'
import { createLogger } from '../../../src/common/log.js'
import { DAY_MS } from '../../../src/common/time.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { SecondAccount } from '../../support/gateway/second-account.js'
import { signedCall } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET } from './archive-proxy.js'
import { type DealProxy, owner, startDealProxy, startEmbedded } from './proxy.js'

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

  t.comment('in pages, with its deals, and as XML')
  const first = await get(proxy.endpoint, `/${BUCKET}/a?max-items=2&x-deal-history=`)
  t.same(first.json.History, told.slice(0, 2))
  t.ok(first.json.NextContinuationToken)
  const { json } = await get(proxy.endpoint, `/-/deal/v1/deals/${made?.DealCid}?expand=history`)
  t.match(json.History.Events[0], { Event: 'DealMade' })
  t.ok(json.History.Events.every(({ DealCid }: Event) => DealCid === made?.DealCid))
  const xml = await signedCall(proxy.endpoint, owner, 'GET', `/${BUCKET}/a?x-deal-history=`, {})
  t.match(xml.body, '<Event><Event>Stored</Event>')

  t.comment('another object of that name')
  await proxy.fault('offline', false)
  await proxy.put('a', { Body: 'another', StorageClass: 'STANDARD' })
  const later = await historyOf(proxy, 'a')
  t.same(
    later.filter(({ EarlierVersion }) => !EarlierVersion).map(({ Event }) => Event),
    ['Stored'],
  )
  t.ok(later.some(({ Event, EarlierVersion }) => Event === 'Evicted' && EarlierVersion))
})

t.test('another account learns nothing, also if it later has a bucket and object of that name', async (t) => {
  const gateway = await startEmbedded(t, 'full')
  const hop = await SecondAccount.start(t, gateway, { looks: false })
  const second = { accessKeyId: 'second', secretAccessKey: 'second-secret-key' }
  const identities = [owner, { ...second, account: hop.account }]
  const server = await startDealProxy(t, { ...gateway, url: hop.url }, { identities })
  const call = async (keys: typeof owner, method: string, target: string, body?: string | object) => {
    const answer = await signedCall(server.endpoint, keys, method, target, { body })
    t.equal(Math.floor(answer.status / 100), 2, `${method} ${target} ${answer.body}`)
  }
  const terms = { MinerId: 't01000', Price: '0.0001', DurationEpochs: 518400 }
  await call(owner, 'PUT', `/${BUCKET}`)
  await call(owner, 'PUT', `/${BUCKET}/a`, 'a')
  await call(owner, 'POST', `/${BUCKET}/a?x-deal=`, terms)
  const target = `/${BUCKET}/a?x-deal-history=`
  t.match(namesOf(await historyOf(server, 'a')), ['Stored', 'DealRequested', 'DealMade'])
  t.equal((await get(server.endpoint, target, second)).status, 403)
  t.equal((await fetch(server.endpoint + target)).status, 403)
  await call(owner, 'DELETE', `/${BUCKET}/a`)
  t.match(namesOf(await historyOf(server, 'a')), ['DealRequested', 'DealMade'], 'its own account still does')
  await call(owner, 'DELETE', `/${BUCKET}`)
  await call(second, 'PUT', `/${BUCKET}`)
  await call(second, 'PUT', `/${BUCKET}/a`, 'b')
  t.same(namesOf(await historyOf(server, 'a', second)), ['Stored'])
})

t.test('work that is done again adds no event, a new failure does, and a record does not grow', async (t) => {
  const state = await openState({ data: temporaryFolder(t), log: createLogger({ level: 'silent' }) })
  t.teardown(() => state.close())
  let now = 1
  const events = new ObjectEvents({ state, log: createLogger({ level: 'silent' }), now: () => now++ })
  const object = { bucket: 'b', key: 'k' }
  const run = (retries: number | undefined, error: Error, more: Partial<RunningJob<typeof object>> = {}) => {
    const job = {
      job: { id: 'j', accessKeyId: 'k', ...(retries !== undefined && { retries }) },
      ...{ context: {}, input: object, signal: new AbortController().signal, owned: () => true, ...more },
    } as RunningJob<typeof object>
    return t.rejects(events.ofJob(job, ['DealRequested', 'DealFailed'], () => Promise.reject(error)))
  }
  const refused = new S3Error('DealRejected')
  await run(undefined, refused)
  await run(undefined, refused)
  t.match(await events.of(object), [
    { event: 'DealRequested', time: 1 },
    { event: 'DealFailed', code: 'DealRejected' },
  ])
  await run(1, new Error('the job runs again later'))
  await run(1, refused, { owned: () => false })
  await run(1, refused, { signal: AbortSignal.abort() })
  t.equal((await events.of(object)).length, 3, 'no failure for good')
  await run(1, refused)
  t.equal((await events.of(object)).length, 4)
  for (let i = 0; i < 120; i++) {
    await events.add(object, { id: String(i), event: 'Evicted', account: '', by: '', message: 'x'.repeat(5000) })
  }
  const kept = await events.of(object)
  t.match([kept.length, kept[0]?.id, kept.at(-1)?.id], [100, '20', '119'])
  t.equal(kept[0]?.message?.length, 1000)
})
