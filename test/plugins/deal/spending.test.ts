import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createLogger } from '../../../common/log.js'
import { openSpending } from '../../../plugins/deal/deps.js'
import type { State } from '../../../src/api/state.js'
import { acceptLoss } from '../../../src/state/open-backend.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { type DealProxy, startDealProxy, startEmbedded } from '../../support/plugins/deal-proxy.js'
import { send } from '../../support/sign/send.js'
import { farFromMidnight } from '../../support/waiting.js'

const DAY = 86_400_000
const NOON = Date.UTC(2026, 10, 21, 12)

async function open(t: Test): Promise<State> {
  const state = await openState({ data: temporaryFolder(t), log: createLogger({ level: 'silent' }) })
  t.teardown(() => state.close())
  return state
}

t.test('no more than a cap is spent, of the bucket and of all, and a job counts once', async (t) => {
  let now = NOON
  const spending = openSpending({ state: await open(t), now: () => now })
  const caps = { all: 100n, bucket: 60n }
  const reserve = (jobId: string, bucket: string, amount: bigint) => spending.reserve({ jobId, bucket, amount }, caps)
  const capped = { code: 'SpendCapReached' }
  for (const _ of ['first', 'again']) await reserve('j-1', 'a', 40n)
  t.equal(await spending.spentToday(), 40n)
  await t.rejects(reserve('j-2', 'a', 21n), capped)
  await reserve('j-2', 'a', 20n)
  await t.rejects(reserve('j-3', 'b', 41n), capped)
  await reserve('j-3', 'b', 40n)
  t.same([await spending.spentToday('a'), await spending.spentToday('constructor')], [60n, 0n])
  t.same(await spending.tightest('a', { all: 130n, bucket: 70n }), { cap: 70n, left: 10n })
  t.same(await spending.tightest('b', { all: 90n, bucket: 70n }), { cap: 90n, left: 0n }, 'never less than nothing')
  t.equal(await spending.tightest('a', { all: undefined, bucket: undefined }), undefined)
  for (const _ of ['first', 'again']) await spending.release('j-3')
  t.equal(await spending.spentToday(), 60n)
  await reserve('j-4', 'c', 40n)

  now += DAY
  t.equal(await spending.spentToday(), 0n, 'a new day')
  await reserve('j-2', 'a', 20n)
  t.equal(await spending.spentToday(), 20n, 'a job that is tried again on another day counts on that day')
  now -= DAY
  t.equal(await spending.spentToday(), 80n, 'and no longer on the first')
  await spending.sweep(async (jobId) => ['j-1', 'j-2', 'j-3'].includes(jobId))
  t.equal(await spending.spentToday(), 40n, 'what jobs have left that ended')
  now += 100 * DAY
  await spending.sweep(async (jobId) => jobId === 'j-4')
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

// A state store that is restored from a backup has lost what was spent since, and the jobs of the requests since.

/** 0.0000005184 fil. */
const terms = { MinerId: 't01000', Price: '0.000000000001', DurationEpochs: 518_400 }

async function askForDeal(server: DealProxy['server'], target: string, token: string, more: object = {}) {
  const { status, body } = await send(server, {
    ...{ method: 'POST', target: `${target}?x-deal=&format=json` },
    body: Buffer.from(JSON.stringify({ ...terms, ...more })),
    headers: { 'content-type': 'application/json', 'x-amz-client-token': token, prefer: 'wait=60' },
  })
  const { Code, Details, Deal, JobId } = JSON.parse(body.toString())
  return { status, Code, Details, cid: Deal?.DealCid as string | undefined, jobId: JobId as string }
}

for (const mode of ['full', 'legacy'] as const) {
  t.test(`${mode}: after a loss of records, the cap counts what was paid, and no token pays again`, async (t) => {
    await farFromMidnight()
    const gateway = await startEmbedded(t, mode)
    const data = temporaryFolder(t)
    const backup = join(temporaryFolder(t), 'backup')
    const start = async (maxSpendPerDay = 'none') => {
      const { server, host, close } = await startDealProxy(t, gateway, { data, deal: { maxSpendPerDay } })
      const put = async (target: string, body = '') =>
        t.equal((await send(server, { method: 'PUT', target, body: Buffer.from(body) })).status, 200)
      const ask = (target: string, token: string, more: object = {}) => askForDeal(server, target, token, more)
      return { put, ask, close, forget: (jobId: string) => host.state.records('jobs').delete(jobId) }
    }
    const made = async () => {
      const { text } = await gateway.calls.call({
        ...{ method: 'GET', endpoint: 'retrieve', bucket: 'photos', key: 'a', access: 'read' },
        headers: { 'history-only': 'true' },
      })
      return [...text.matchAll(/"dealCid"/gi)].length
    }
    const first = await start()
    await first.put('/photos')
    for (const key of ['a', 'b', 'c']) await first.put(`/photos/${key}`, 'bytes')
    await first.close()
    cpSync(join(data, 'state'), backup, { recursive: true })

    const second = await start()
    const paid = await second.ask('/photos/a', 'one')
    t.match(paid, { status: 200, cid: String })
    const ofBucket = await second.ask('/photos', 'two')
    t.match(ofBucket, { status: 200, cid: String })
    await second.close()
    rmSync(join(data, 'state'), { recursive: true })
    cpSync(backup, join(data, 'state'), { recursive: true })
    const noticing = await start()
    t.match(await noticing.ask('/photos/b', 'three'), { status: 503 })
    await noticing.close()
    t.equal(await acceptLoss({ data, log: createLogger({ level: 'silent' }) }), true)

    // Room for two deals, which are made already.
    const third = await start('0.0000012')
    t.match(await third.ask('/photos/b', 'three'), { Code: 'SpendCapReached' })
    if (mode === 'full') t.match(await third.ask('/photos/a', 'one'), { status: 200, cid: paid.cid })
    t.match(await third.ask('/photos/c', 'four'), { Code: 'SpendCapReached' }, 'what is listed is not paid again')
    await third.close()
    const fourth = await start('0.000001600')
    t.match(await fourth.ask('/photos/b', 'three again'), { status: 200 }, 'no expense counts twice')
    t.match(await fourth.ask('/photos/c', 'four again'), { Code: 'SpendCapReached' })
    await fourth.close()

    const fifth = await start()
    const again = await fifth.ask('/photos/a', 'one')
    const bucketAgain = await fifth.ask('/photos', 'two')
    t.equal(await made(), 1, 'one deal')
    if (mode === 'legacy') {
      t.match(again, { status: 409, Code: 'DuplicateRequest', Details: { DealCid: paid.cid } })
      t.match(bucketAgain, { status: 409, Code: 'DuplicateRequest' })
      const other = await fifth.ask('/photos/a', 'another', { Force: true })
      t.equal(other.status, 200)
      t.not(other.cid, paid.cid)
      t.equal(await made(), 2, 'another token is another deal')
      return
    }
    t.match(
      [again, bucketAgain],
      [paid, ofBucket].map(({ cid }) => ({ status: 200, cid })),
    )
    await fifth.put('/photos/a', 'other bytes')
    const replaced = await fifth.ask('/photos/a', 'one-more')
    t.equal(replaced.status, 200)
    await fifth.forget(replaced.jobId)
    const Details = { DealCid: replaced.cid }
    t.match(await fifth.ask('/photos/a', 'one-more'), { status: 409, Code: 'IdempotencyParameterMismatch', Details })
    t.equal(await made(), 2)
    await fifth.put('/photos/a', 'new bytes')
    await fifth.forget(again.jobId)
    const changed = await fifth.ask('/photos/a', 'one')
    t.equal(changed.status, 200)
    t.not(changed.cid, paid.cid, 'another content is not in the deal of the first')
  })
}
