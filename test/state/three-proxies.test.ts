import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Endpoint } from '../suites/sign.js'
import { MiB } from '../support/content/content.js'
import { startGateway } from '../support/gateway/embedded.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { lastingPort } from '../support/server/ports.js'
import { insist, send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { haproxy, nginx } from './balancers.js'
import { postgres, redis } from './servers.js'

// Three proxies behind a balancer that knows nothing of them, on one state store and one gateway. They are killed in
// turn during uploads and deals: each of them in one case or the other. `npm run stress` does 100 rounds.
// test/history has writes while proxies are killed.

const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 1)
const PAIR = { accessKey: 'three-access', secretKey: 'three-secret-key' }
const BUCKET = 'shared'
const COUNT = 3
/** Large enough for the price of a deal. */
const DEALT = Buffer.alloc(150_000, 'deal')
const TERMS = { MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518400, FastRetrieval: true }
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
  const target = `/${BUCKET}/${key}?format=json&x-deal=`
  const headers = { 'content-type': 'application/json', 'x-amz-client-token': `token-${key}`, prefer: 'wait=60' }
  const body = Buffer.from(JSON.stringify(TERMS))
  const answer = await insist(server, `a deal of ${key}`, { method: 'POST', target, headers, body })
  const told = JSON.parse(answer.body.toString())
  if (answer.status === 200) return told.Deal.DealCid
  // Without client tokens the gateway cannot prove that a request of a killed proxy never came: that is an operator's
  // decision, and one who has looked for a minute retries the job.
  if (told.Status === 'Unknown') await send(server, { method: 'POST', target: `/-/jobs/v1/${told.JobId}/retry` })
  return undefined
}

/** A multipart upload. Repeats each request until it succeeds. */
async function upload(server: Endpoint, key: string, parts: readonly Buffer[]): Promise<void> {
  const target = `/${BUCKET}/${key}`
  const begun = await insist(server, `${key} begins`, { method: 'POST', target: `${target}?uploads=` })
  const id = /<UploadId>(.*?)</.exec(begun.body.toString())?.[1]
  const etags = await Promise.all(
    parts.map(async (body, i) => {
      const query = `partNumber=${i + 1}&uploadId=${id}`
      const stored = await insist(server, `part ${i + 1}`, { method: 'PUT', target: `${target}?${query}`, body })
      return stored.headers.etag
    }),
  )
  const list = etags.map((etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag}</ETag></Part>`).join('')
  const body = Buffer.from(`<CompleteMultipartUpload>${list}</CompleteMultipartUpload>`)
  await until(`${key} ends`, async () => {
    const done = await insist(server, `${key} ends`, { method: 'POST', target: `${target}?uploadId=${id}`, body })
    // A completion may have sent 200 long before its error.
    if (done.code === 'ServiceUnavailable') return undefined
    if (!/CompleteMultipartUploadResult/.test(done.body.toString())) throw new Error(`${key}: ${done.body}`)
    return done
  })
}

async function holds(t: Test, server: Endpoint, key: string, parts: readonly Buffer[]): Promise<void> {
  const found = await insist(server, `${key} is read`, { method: 'GET', target: `/${BUCKET}/${key}` })
  t.ok(found.body.equals(Buffer.concat(parts)), `${key} is whole`)
}

/** test/state/shared-staging and shared-settings have the uploads and the settings that proxies share. */
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
  const served = proxies.filter(({ log }) => log.includes('"operation":"ListObjectsV2"'))
  t.equal(served.length, COUNT, 'each proxy has got pages')
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
      const deals = new Map<string, Promise<string>>()
      for (let round = 0; round < ROUNDS; round++) {
        const dealt = `dealt-${round}`
        await insist(authorizer, dealt, { method: 'PUT', target: `/${BUCKET}/${dealt}`, body: DEALT })
        const parts = [PART, Buffer.from(String(round))]
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
        await holds(t, authorizer, `upload-${round}`, parts)
      }
      for (const [key, made] of deals) {
        // A deal whose proxy was killed is reconciled first, which may take longer than all rounds.
        const answered = await made
        const target = `/${BUCKET}/${key}?format=json&x-deal=`
        const history = JSON.parse((await insist(authorizer, key, { method: 'GET', target })).body.toString())
        const cids = history.DealEntry.map(({ Deal }: { Deal: { DealCid: string } }) => Deal.DealCid)
        t.same(cids, [answered], `one deal of ${key}, the one that was answered`)
      }
    })
  })
}
