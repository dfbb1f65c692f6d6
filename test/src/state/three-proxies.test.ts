import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Endpoint } from '../../suites/sign.js'
import { MiB } from '../../support/content/content.js'
import { startGateway } from '../../support/gateway/embedded.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { lastingPort } from '../../support/server/ports.js'
import { insist, send } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'
import { haproxy, nginx } from './balancers.js'
import { postgres, redis } from './servers.js'
import { acknowledged, askForDeal, BUCKET, DEALT, holds, upload, WriteScene } from './write-scene.js'

// Three proxies behind a balancer that knows nothing of them, on one state store and one gateway. They are killed in
// turn during writes: each of them in one case or the other. `npm run stress` does 100 rounds.

const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 1)
const PAIR = { accessKey: 'three-access', secretKey: 'three-secret-key' }
const COUNT = 3
/** Longer than two waits for a job. */
const DEAL_PATIENCE_MS = 240_000
const PART = Buffer.alloc(5 * MiB, 'part')

const cases = [
  { kind: redis, balancer: nginx, mode: 'full', lease: 1, first: 0 },
  // Without fences, a lease must outlast what a proxy has sent before its death.
  { kind: postgres, balancer: haproxy, mode: 'legacy', lease: 3, first: 2 },
] as const

/** The deal of an object, which a client token makes once; undefined while it is under way. */
async function deal(server: Endpoint, key: string): Promise<string | undefined> {
  const { status, json } = await askForDeal(server, key)
  if (status === 200) return json.Deal.DealCid as string
  // Without client tokens the gateway cannot prove that a request of a killed proxy never came: that is an operator's
  // decision, and one who has looked for a minute retries the job.
  if (json.Status === 'Unknown') await send(server, { method: 'POST', target: `/-/jobs/v1/${json.JobId}/retry` })
  return undefined
}

/** test/src/state/shared-staging and shared-settings have the uploads and the settings that proxies share. */
async function together(t: Test, authorizer: Endpoint, proxies: readonly Dealgate[]): Promise<void> {
  const keys = Array.from({ length: 20 }, (_, i) => `listed/${String(i).padStart(2, '0')}`)
  for (const key of keys)
    await insist(authorizer, key, { method: 'PUT', target: `/${BUCKET}/${key}`, body: PART.subarray(0, 9) })
  const found: (string | undefined)[] = []
  for (let token: string | undefined = ''; token !== undefined; ) {
    const next: string = token && `&continuation-token=${encodeURIComponent(token)}`
    const target: string = `/${BUCKET}?list-type=2&max-keys=3&prefix=listed%2F${next}`
    const page: string = (await insist(authorizer, 'a page', { method: 'GET', target })).body.toString()
    found.push(...[...page.matchAll(/<Key>(.*?)</g)].map(([, key]) => key))
    token = /<NextContinuationToken>(.*?)</.exec(page)?.[1]
  }
  t.same(found, keys, 'a token of one proxy is good at all')
  const served = () => proxies.filter(({ log }) => log.includes('"operation":"ListObjectsV2"'))
  await until('each proxy has got pages', () => served().length === COUNT)
}

for (const { kind, balancer, mode, lease, first } of cases) {
  const options = { skip: kind.skip || balancer.skip, timeout: 300_000 + ROUNDS * 60_000 }
  t.test(`${mode} gateway and ${kind.name} behind ${balancer.name}`, options, async (t) => {
    const store = await kind.start()
    t.teardown(() => store.stop())
    const gateway = await startGateway(t, mode)
    const args = [
      ...['--state', store.url, '--staging', 'gateway', '--lock-lease-seconds', String(lease)],
      ...['--access-key', PAIR.accessKey, '--secret-key', PAIR.secretKey],
    ]
    const start = async () => startDealgate(t, { gateway, args, port: await lastingPort() })
    const proxies = await Promise.all(Array.from({ length: COUNT }, start))
    const ports = proxies.map(({ port }) => port)
    const authorizer = { ...PAIR, endpoint: await balancer.start(t, ports), region: proxies[0]?.region ?? '' }
    await insist(authorizer, 'the bucket is made', { method: 'PUT', target: `/${BUCKET}` })

    await t.test('any proxy goes on with the listing of another', (t) => together(t, authorizer, proxies))

    await t.test('one that is killed takes nothing with it', async (t) => {
      const scene = new WriteScene([authorizer])
      const deals = new Map<string, Promise<string>>()
      for (let round = 0; round < ROUNDS; round++) {
        const dealt = `dealt-${round}`
        await insist(authorizer, dealt, { method: 'PUT', target: `/${BUCKET}/${dealt}`, body: DEALT })
        const parts = [PART, Buffer.from(String(round))]
        const key = await scene.round(round, async () => {
          const uploaded = upload(authorizer, `upload-${round}`, parts)
          deals.set(
            dealt,
            until(`${dealt} has its deal`, () => deal(authorizer, dealt), DEAL_PATIENCE_MS),
          )
          await sleep(Math.random() * 500)
          const victim = proxies[(first + round) % COUNT]
          await victim?.kill9()
          await victim?.start()
          await uploaded
        })
        const wrong = await scene.whatIsWrong(key)
        if (wrong !== undefined) t.fail(`${key}: ${wrong}`, { writes: scene.writes.get(key) })
        await holds(t, authorizer, `upload-${round}`, parts)
      }
      for (const key of scene.writes.keys()) t.equal(await scene.whatIsWrong(key), undefined, `${key} in the end`)
      for (const [key, made] of deals) {
        // A deal whose proxy was killed is reconciled first, which may take longer than all rounds.
        const answered = await made
        const target = `/${BUCKET}/${key}?format=json&x-deal=`
        const history = JSON.parse((await insist(authorizer, key, { method: 'GET', target })).body.toString())
        const cids = history.DealEntry.map(({ Deal }: { Deal: { DealCid: string } }) => Deal.DealCid)
        t.same(cids, [answered], `one deal of ${key}, the one that was answered`)
      }
      const all = [...scene.writes.values()].flat()
      t.ok(all.some(acknowledged), `${all.filter(acknowledged).length} of ${all.length} writes were acknowledged`)
    })
  })
}
