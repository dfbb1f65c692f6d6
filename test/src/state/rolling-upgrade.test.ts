import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import t from 'tap'
import { startGateway } from '../../support/gateway/embedded.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { lastingPort } from '../../support/server/ports.js'
import { until } from '../../support/waiting.js'
import { haproxy } from './balancers.js'
import { MixedLoad } from './mixed-load.js'
import { redis } from './servers.js'

// Clients that work through new configurations and restarts notice nothing of them.

const PAIR = { accessKey: 'rolling-access', secretKey: 'rolling-secret-key' }
const KEYS = ['--access-key', PAIR.accessKey, '--secret-key', PAIR.secretKey]
const CREDENTIALS = { accessKeyId: PAIR.accessKey, secretAccessKey: PAIR.secretKey }
const BUCKET = 'rolling'

async function hangup(server: Dealgate): Promise<void> {
  const reloads = () => server.log.split('"msg":"reloaded the configuration"').length
  const before = reloads()
  process.kill(server.pid, 'SIGHUP')
  await until('the configuration is reloaded', () => reloads() > before)
}

const skip = redis.skip || haproxy.skip
t.test('restarts of two of three proxies in turn, behind HAProxy', { skip, timeout: 300_000 }, async (t) => {
  const store = await redis.start()
  t.teardown(() => store.stop())
  const gateway = await startGateway(t, 'full')
  const args = ['--state', store.url, '--staging', 'gateway', '--shutdown-delay-seconds', '4', ...KEYS]
  const start = async () => startDealgate(t, { gateway, args, port: await lastingPort() })
  const proxies = await Promise.all([start(), start(), start()])
  const endpoint = await haproxy.start(
    t,
    proxies.map(({ port }) => port),
  )
  const region = proxies[0].region
  const s3 = new S3Client({ endpoint, region, forcePathStyle: true, credentials: CREDENTIALS })
  t.teardown(() => s3.destroy())
  await s3.send(new CreateBucketCommand({ Bucket: BUCKET }))
  const load = new MixedLoad(s3, BUCKET)
  const progress = async () => {
    const { done } = load
    await until('the clients have done more', () => load.done > done + 10 || load.failures.length > 0)
  }
  await progress()
  for (const proxy of proxies.slice(1)) {
    await hangup(proxy)
    t.match(await proxy.stop('SIGTERM'), { code: 0 })
    await progress()
    await proxy.start()
    await progress()
  }
  await load.stop()
  t.same(load.failures, [], `${load.done} requests, and none has failed`)
  for (const proxy of proxies) t.notMatch(proxy.log, 'connections were cut', 'each request has ended')
})
