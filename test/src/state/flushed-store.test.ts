import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@keyv/redis'
import t from 'tap'
import deal from '../../../plugins/deal/index.js'
import { acceptLoss } from '../../../src/state/open-backend.js'
import { publicRead } from '../../support/content/policies.js'
import { Between } from '../../support/gateway/between.js'
import { keptLog } from '../../support/server/kept-log.js'
import { until } from '../../support/waiting.js'
import { redis } from './servers.js'
import { startSeveral } from './several-proxies.js'

/**
 * Redis loses all that it holds, locks too, again and again while two proxies write, pay and change settings:
 * docs/state.md. Whatever is lost, no acknowledged conditional write is overwritten, no token pays twice, and what
 * keeps the public out is not taken for absent.
 */

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 2)
const RACERS = 6
const BUCKET = '/flushed'

const block =
  '<PublicAccessBlockConfiguration><BlockPublicPolicy>true</BlockPublicPolicy></PublicAccessBlockConfiguration>'
const policy = publicRead('flushed')
const tagging = (value: string) => `<Tagging><TagSet><Tag><Key>k</Key><Value>${value}</Value></Tag></TagSet></Tagging>`

t.test('two proxies whose Redis is flushed again and again', { skip: redis.skip, timeout: 600_000 }, async (t) => {
  const store = await redis.start()
  t.teardown(() => store.stop())
  const client = createClient({ url: store.url })
  client.on('error', () => {})
  await client.connect()
  t.teardown(() => client.close())
  let between: Between | undefined
  const several = await startSeveral(t, store.url, 'full', async (gateway) => {
    between = await Between.start(t, gateway)
    return between
  })
  const plugins = () => ({ plugins: [deal({ statusIntervalSeconds: 86_400 })] })
  const proxies = [await several.start('one', plugins()), await several.start('two', plugins())] as const
  const [one, two] = proxies
  const of = (i: number) => (i % 2 === 0 ? one : two)
  const paid = () => between?.count('POST', '/gateway/deal') ?? Number.NaN
  t.equal((await one.send('PUT', BUCKET)).status, 200)
  t.equal((await one.send('PUT', `${BUCKET}/archived`, { body: 'archived' })).status, 200)
  const pay = (i: number, token: string) =>
    of(i).send('POST', `${BUCKET}/archived`, {
      query: { 'x-deal': '', format: 'json' },
      headers: { 'content-type': 'application/json', 'x-amz-client-token': token },
      body: JSON.stringify({ MinerId: 't01000', Price: '0.000000000001', DurationEpochs: 518400 }),
    })
  const isOpen = async () => (await fetch(`${one.endpoint}${BUCKET}/archived`)).status === 200

  let accepted = 0
  for (let round = 0; round < ROUNDS; round++) {
    // The store is whole here, which both find out: an operator accepts the loss of the store that one of them knows.
    for (const proxy of proxies)
      await until('the loss is accepted', () =>
        proxy.state.requireIntact().then(
          () => true,
          () => false,
        ),
      )
    t.equal((await of(round).send('PUT', BUCKET, { query: { publicAccessBlock: '' }, body: block })).status, 200)
    const token = `token-${round}`
    const before = paid()
    const answer = await pay(round, token)
    t.ok(answer.status < 300, `paid: ${answer.status} ${answer.body}`)
    t.equal(paid(), before + 1)

    let racing = true
    let flushes = 0
    const flushing = (async () => {
      while (racing) {
        await sleep(Math.random() * 30)
        await client.flushAll()
        flushes++
      }
    })()
    const path = `${BUCKET}/${round}`
    const race = async (headers: Record<string, string>, what: string) => {
      const bodies = Array.from({ length: RACERS }, (_, i) => `${what} by ${i}`)
      const answers = await Promise.all(bodies.map((body, i) => of(i).send('PUT', path, { body, headers })))
      for (const { status, body } of answers)
        if (![200, 412, 503].includes(status)) t.fail(`${what}: ${status} ${body}`)
      const winners = bodies.filter((_, i) => answers[i]?.status === 200)
      t.ok(winners.length <= 1, `${what}: ${winners.length} have won`)
      const now = await one.send('GET', path)
      if (winners.length === 1) t.equal(now.body, winners[0], `${what}: and it is there`)
      return now
    }
    const attack = async () => {
      while (racing) {
        const answers = await Promise.all([
          pay(0, token),
          pay(1, token),
          two.send('PUT', BUCKET, { query: { policy: '' }, body: policy }),
          one.send('PUT', BUCKET, { query: { tagging: '' }, body: tagging(`${round}`) }),
        ])
        for (const { status, body } of answers)
          if (![200, 201, 202, 204, 403, 409, 503].includes(status)) t.fail(`${status} ${body}`)
        t.notOk(answers[2] && answers[2].status < 300, 'no policy for everybody is accepted')
      }
    }
    const attacking = attack()
    const created = await race({ 'if-none-match': '*' }, `created ${round}`)
    if (created.status === 200) await race({ 'if-match': created.headers.etag ?? '' }, `replaced ${round}`)
    // Whatever has lost its lock is over before the next race counts.
    while (flushes < 5) await sleep(5)
    racing = false
    await Promise.all([flushing, attacking])

    t.equal(paid(), before + 1, 'one token has paid once')
    t.notOk(await isOpen(), 'nothing is open')
    for (const proxy of proxies)
      t.match(await proxy.send('PUT', BUCKET, { query: { policy: '' }, body: policy }), { status: /403|503/ })
    if (await acceptLoss({ data: one.data, url: store.url, log: keptLog().log })) accepted++
  }
  t.equal(accepted, ROUNDS, 'each loss was noticed, and had to be accepted')
})
