import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openSpending } from '../../../plugins/deal/deps.js'
import type { Records, State } from '../../../src/api/state.js'
import { createLogger } from '../../../src/common/log.js'
import { acceptLoss } from '../../../src/state/open-backend.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { send } from '../../support/sign/send.js'
import { farFromMidnight } from '../../support/waiting.js'
import { type DealProxy, startDealProxy, startEmbedded } from './proxy.js'

const DAY = 86_400_000
const NOON = Date.UTC(2026, 10, 21, 12)
const none = { all: undefined, bucket: undefined }

async function open(t: Test): Promise<State> {
  const state = await openState({ data: temporaryFolder(t), log: createLogger({ level: 'silent' }) })
  t.teardown(() => state.close())
  return state
}

t.test('no more than a cap is spent, of the bucket and of all, and a job counts once', async (t) => {
  let now = NOON
  const spending = openSpending({ state: await open(t), now: () => now })
  const caps = { all: 100n, bucket: 60n }
  await spending.reserve({ jobId: 'j-1', bucket: 'a', amount: 40n }, caps)
  await spending.reserve({ jobId: 'j-1', bucket: 'a', amount: 40n }, caps)
  t.equal(await spending.spentToday(), 40n)
  await t.rejects(spending.reserve({ jobId: 'j-2', bucket: 'a', amount: 21n }, caps), { code: 'SpendCapReached' })
  await spending.reserve({ jobId: 'j-2', bucket: 'a', amount: 20n }, caps)
  await t.rejects(spending.reserve({ jobId: 'j-3', bucket: 'b', amount: 41n }, caps), { code: 'SpendCapReached' })
  await spending.reserve({ jobId: 'j-3', bucket: 'b', amount: 40n }, caps)
  t.equal(await spending.spentToday('a'), 60n)
  t.equal(await spending.spentToday('constructor'), 0n)
  await t.rejects(spending.reserve({ jobId: 'j-4', bucket: 'c', amount: 1n }, caps), { code: 'SpendCapReached' })
  t.same(await spending.tightest('a', { all: 130n, bucket: 70n }), { cap: 70n, left: 10n })
  t.same(await spending.tightest('b', { all: 90n, bucket: 70n }), { cap: 90n, left: 0n }, 'never less than nothing')
  t.equal(await spending.tightest('a', none), undefined)
  await spending.release('j-3')
  await spending.release('j-3')
  await spending.release('j-9')
  t.equal(await spending.spentToday(), 60n)
  await spending.reserve({ jobId: 'j-4', bucket: 'c', amount: 40n }, caps)

  now += DAY
  t.equal(await spending.spentToday(), 0n, 'a new day')
  await spending.reserve({ jobId: 'j-2', bucket: 'a', amount: 20n }, caps)
  t.equal(await spending.spentToday(), 20n, 'a job that is tried again on another day counts on that day')
  now -= DAY
  t.equal(await spending.spentToday(), 80n, 'and no longer on the first')
  const ended = (...ids: string[]) => spending.sweep(async (jobId) => ids.includes(jobId))
  await ended('j-3', 'j-9')
  t.equal(await spending.spentToday(), 80n)
  await ended('j-1', 'j-2')
  t.equal(await spending.spentToday(), 40n, 'what jobs have left that ended')
  now += 100 * DAY
  await ended('j-4')
  now -= 100 * DAY
  t.equal(await spending.spentToday(), 0n, 'days long past are forgotten')
})

t.test('jobs at the same time do not exceed a cap together', async (t) => {
  const spending = openSpending({ state: await open(t), now: () => NOON })
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) =>
      spending.reserve({ jobId: `j-${i}`, bucket: 'a', amount: 3n }, { all: 10n, bucket: undefined }),
    ),
  )
  t.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 3)
  t.equal(await spending.spentToday(), 9n)
})

t.test('what the process dies over is counted, and counted once', async (t) => {
  const state = await open(t)
  const spending = openSpending({ state: dying(state), now: () => NOON })
  await t.rejects(spending.reserve({ jobId: 'j-1', bucket: 'a', amount: 5n }, none), /power cut/)
  const later = openSpending({ state: state, now: () => NOON })
  t.equal(await later.spentToday(), 5n)
  await later.reserve({ jobId: 'j-1', bucket: 'a', amount: 5n }, none)
  t.equal(await later.spentToday(), 5n)
  await t.rejects(spending.release('j-1'), /power cut/)
  t.equal(await later.spentToday(), 0n)
  await later.reserve({ jobId: 'j-2', bucket: 'a', amount: 1n }, none)
  await later.release('j-1')
  t.equal(await later.spentToday(), 1n)
  await later.reserve({ jobId: 'j-1', bucket: 'a', amount: 5n }, none)
  t.equal(await later.spentToday(), 6n)
})

/** Records of single jobs cannot be written: as if the process had died between the two writes of a change. */
function dying(state: State): Pick<State, 'records' | 'locks' | 'acceptedLoss'> {
  const fail = async () => {
    throw new Error('power cut')
  }
  return {
    locks: state.locks,
    acceptedLoss: state.acceptedLoss,
    records: <T>(name: string): Records<T> => {
      const records = state.records<T>(name)
      if (name !== 'deal-spend-jobs') return records
      return {
        get: (key) => records.get(key),
        getMany: (keys) => records.getMany(keys),
        entries: () => records.entries(),
        set: fail,
        change: fail,
        delete: fail,
      }
    },
  }
}

t.test('what a service lists is counted once after a loss, and gives way to the job that repeats it', async (t) => {
  let loss: string | undefined
  let asked = 0
  const state = { ...(await open(t)), acceptedLoss: async () => loss }
  let now = NOON
  const open2 = () => openSpending({ state, now: () => now })
  const spending = open2()
  const list = async (since: number) => {
    asked++
    t.equal(since, NOON - DAY / 2)
    return [
      { id: 'x', bucket: 'a', amount: 30n },
      { id: 'y', bucket: 'b', amount: 20n },
    ]
  }
  const caps = { all: 100n, bucket: 60n }
  await spending.recover('one', list)
  t.equal(asked, 0, 'nothing was lost')
  await spending.reserve({ jobId: 'j-1', bucket: 'a', amount: 10n }, caps)
  loss = 'first'
  await t.rejects(
    spending.recover('one', async () => {
      throw new Error('the service is down')
    }),
    /is down/,
  )
  await spending.recover('one', list)
  await open2().recover('one', list)
  t.equal(asked, 1)
  t.same([await spending.spentToday(), await spending.spentToday('a'), await spending.spentToday('b')], [60n, 40n, 20n])
  await t.rejects(spending.reserve({ jobId: 'j-2', bucket: 'c', amount: 41n }, caps), { code: 'SpendCapReached' })
  await t.rejects(spending.reserve({ jobId: 'j-2', bucket: 'a', amount: 21n }, caps), { code: 'SpendCapReached' })
  await spending.reserve({ jobId: 'j-3', bucket: 'a', amount: 30n, listedAs: 'x' }, { all: 60n, bucket: 40n })
  t.equal(await spending.spentToday(), 60n, 'the repeated request is the one that was listed')
  await spending.release('j-3')
  t.equal(await spending.spentToday(), 60n, 'a repetition that was refused undoes no expense')
  await spending.recover('two', async () => [{ id: 'y', bucket: 'b', amount: 20n }])
  t.equal(await spending.spentToday(), 60n, 'one expense counts once')
  loss = 'second'
  await Promise.all([spending.recover('one', list), open2().recover('one', list), spending.recover('one', list)])
  t.equal(asked, 2, 'also for jobs that wait for the lock together')
  t.equal(await spending.spentToday(), 60n)
  now += DAY
  t.equal(await spending.spentToday(), 0n)
})

// A state store that is restored from a backup has lost what was spent since: the gateway lists it.

/** 0.0000005184 fil. */
const terms = { MinerId: 't01000', Price: '0.000000000001', DurationEpochs: 518_400 }

async function askForDeal(server: DealProxy['server'], target: string, token: string, more: object = {}) {
  const { status, body } = await send(server, {
    ...{ method: 'POST', target: `${target}?x-deal=&format=json` },
    body: Buffer.from(JSON.stringify({ ...terms, ...more })),
    headers: { 'content-type': 'application/json', 'x-amz-client-token': token, prefer: 'wait=60' },
  })
  const json = JSON.parse(body.toString())
  return { status, json, cid: json.Deal?.DealCid as string | undefined }
}

for (const mode of ['full', 'legacy'] as const) {
  t.test(`${mode}: the cap of the day counts deals whose records are lost`, async (t) => {
    await farFromMidnight()
    const gateway = await startEmbedded(t, mode)
    const data = temporaryFolder(t)
    const backup = join(temporaryFolder(t), 'backup')
    const start = async (maxSpendPerDay: string) => {
      const { server, close } = await startDealProxy(t, gateway, { data, deal: { maxSpendPerDay } })
      const put = (target: string, body = '') => send(server, { method: 'PUT', target, body: Buffer.from(body) })
      const ask = async (target: string, token: string) => {
        const { status, json, cid } = await askForDeal(server, target, token)
        return { status, code: json.Code as string | undefined, cid }
      }
      return { put, ask, close }
    }
    const first = await start('none')
    t.equal((await first.put('/photos')).status, 200)
    for (const key of ['a', 'b', 'c']) t.equal((await first.put(`/photos/${key}`, 'bytes')).status, 200)
    await first.close()
    cpSync(join(data, 'state'), backup, { recursive: true })

    const second = await start('none')
    const paid = await second.ask('/photos/a', 'one')
    t.match(paid, { status: 200, cid: String })
    t.match(await second.ask('/photos', 'of the bucket'), { status: 200 })
    await second.close()
    rmSync(join(data, 'state'), { recursive: true })
    cpSync(backup, join(data, 'state'), { recursive: true })
    const noticing = await start('none')
    t.match(await noticing.ask('/photos/b', 'two'), { status: 503 })
    await noticing.close()
    t.equal(await acceptLoss({ data, log: createLogger({ level: 'silent' }) }), true)

    // Room for two deals, which are made already.
    const third = await start('0.0000012')
    t.match(await third.ask('/photos/b', 'two'), { code: 'SpendCapReached' })
    if (mode === 'full') t.same(await third.ask('/photos/a', 'one'), { ...paid }, 'what is listed is not paid again')
    t.match(await third.ask('/photos/c', 'three'), { code: 'SpendCapReached' })
    await third.close()
    const fourth = await start('0.000001600')
    t.match(await fourth.ask('/photos/b', 'two again'), { status: 200 }, 'no expense counts twice')
    t.match(await fourth.ask('/photos/c', 'three again'), { code: 'SpendCapReached' })
  })
}

// A state store that is restored from a backup lacks the jobs of later requests. The client repeats such a request.

for (const mode of ['full', 'legacy'] as const) {
  t.test(`${mode}: a client token pays once, also when its job is lost`, async (t) => {
    const gateway = await startEmbedded(t, mode)
    const data = temporaryFolder(t)
    const backup = join(temporaryFolder(t), 'backup')
    const start = async () => {
      const state = await openState({ data, log: createLogger({ level: 'silent' }) })
      t.teardown(() => state.close())
      const { server, close: closeProxy } = await startDealProxy(t, gateway, { state })
      const ask = (target: string, token: string, more: object = {}) => askForDeal(server, target, token, more)
      const close = async () => {
        await closeProxy()
        await state.close()
      }
      return { server, state, close, ask }
    }
    const made = async () => {
      const { text } = await gateway.calls.call({
        ...({ method: 'GET', endpoint: 'retrieve', bucket: 'photos', key: 'a', access: 'read' } as const),
        headers: { 'history-only': 'true' },
      })
      return [...text.matchAll(/"dealCid"/gi)].length
    }
    const first = await start()
    t.equal((await send(first.server, { method: 'PUT', target: '/photos' })).status, 200)
    t.equal((await send(first.server, { method: 'PUT', target: '/photos/a', body: Buffer.from('bytes') })).status, 200)
    await first.close()
    cpSync(data, backup, { recursive: true })

    const second = await start()
    const paid = await second.ask('/photos/a', 'one')
    t.equal(paid.status, 200, JSON.stringify(paid.json))
    const ofBucket = await second.ask('/photos', 'two')
    t.equal(ofBucket.status, 200, JSON.stringify(ofBucket.json))
    t.ok(paid.cid && ofBucket.cid, JSON.stringify(paid.json))
    await second.close()
    rmSync(data, { recursive: true })
    cpSync(backup, data, { recursive: true })
    t.equal(await made(), 1)

    const third = await start()
    const again = await third.ask('/photos/a', 'one')
    const bucketAgain = await third.ask('/photos', 'two')
    if (mode === 'full') {
      t.equal(again.status, 200, JSON.stringify(again.json))
      t.equal(again.cid, paid.cid)
      t.equal(bucketAgain.cid, ofBucket.cid)
    } else {
      t.match(again, { status: 409, json: { Code: 'DuplicateRequest', Details: { DealCid: paid.cid } } })
      t.match(bucketAgain, { status: 409, json: { Code: 'DuplicateRequest' } })
    }
    t.equal(await made(), 1, 'one deal')
    if (mode === 'full') {
      await send(third.server, { method: 'PUT', target: '/photos/a', body: Buffer.from('other bytes') })
      const replaced = await third.ask('/photos/a', 'one-more')
      t.equal(replaced.status, 200)
      await third.state.records('jobs').delete(replaced.json.JobId)
      const expired = await third.ask('/photos/a', 'one-more')
      t.match(expired, {
        status: 409,
        json: { Code: 'IdempotencyParameterMismatch', Details: { DealCid: replaced.cid } },
      })
      t.equal(await made(), 2)
      await send(third.server, { method: 'PUT', target: '/photos/a', body: Buffer.from('new bytes') })
      await third.state.records('jobs').delete(again.json.JobId)
      const changed = await third.ask('/photos/a', 'one')
      t.equal(changed.status, 200, JSON.stringify(changed.json))
      t.not(changed.cid, paid.cid, 'another content is not in the deal of the first')
      return
    }
    const other = await third.ask('/photos/a', 'three', { Force: true })
    t.equal(other.status, 200, JSON.stringify(other.json))
    t.not(other.cid, paid.cid)
    t.equal(await made(), 2, 'another token is another deal')
  })
}
