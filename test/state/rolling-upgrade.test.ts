import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:https'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { Authority } from '../support/content/certificates.js'
import { temporaryFolder } from '../support/content/folders.js'
import { startGateway } from '../support/gateway/embedded.js'
import { runCli } from '../support/server/cli.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { lastingPort } from '../support/server/ports.js'
import { until } from '../support/waiting.js'
import { haproxy } from './balancers.js'
import { MixedLoad } from './mixed-load.js'
import { redis } from './servers.js'

// Clients that work through changes of the configuration, new certificates and restarts notice nothing of them.

const PAIR = { accessKey: 'rolling-access', secretKey: 'rolling-secret-key' }
const KEYS = ['--access-key', PAIR.accessKey, '--secret-key', PAIR.secretKey]
const CREDENTIALS = { accessKeyId: PAIR.accessKey, secretAccessKey: PAIR.secretKey }
const BUCKET = 'rolling'

async function loaded(t: Test, s3: S3Client, changes: (progress: () => Promise<void>) => Promise<void>): Promise<void> {
  t.teardown(() => s3.destroy())
  await s3.send(new CreateBucketCommand({ Bucket: BUCKET }))
  const load = new MixedLoad(s3, BUCKET)
  const progress = async () => {
    const { done } = load
    await until('the clients have done more', () => load.done > done + 10 || load.failures.length > 0)
  }
  await progress()
  await changes(progress)
  await load.stop()
  t.same(load.failures, [], `${load.done} requests, and none has failed`)
}

async function hangup(server: Dealgate): Promise<void> {
  const reloads = () => server.log.split('"msg":"reloaded the configuration"').length
  const before = reloads()
  process.kill(server.pid, 'SIGHUP')
  await until('the configuration is reloaded', () => reloads() > before)
}

/** The serial number of the certificate that a new connection gets. */
function serialOf(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

t.test('a new configuration, a new certificate and backups with two workers', { timeout: 300_000 }, async (t) => {
  const folder = temporaryFolder(t)
  const authority = new Authority(folder)
  const [first, second] = [authority.issue('first', 'IP:127.0.0.1'), authority.issue('second', 'IP:127.0.0.1')]
  const used = { cert: join(folder, 'used.crt'), key: join(folder, 'used.key') }
  const use = ({ cert, key }: typeof used) => {
    copyFileSync(cert, used.cert)
    copyFileSync(key, used.key)
  }
  use(first)
  const file = join(folder, 'dealgate.json')
  writeFileSync(file, '{}')
  const tls = ['--tls-cert', used.cert, '--tls-key', used.key]
  const server = await startDealgate(t, {
    args: ['--config', file, '--workers', '2', ...tls, ...KEYS],
  })
  const httpsAgent = new Agent({ ca: readFileSync(authority.file), keepAlive: true, maxSockets: 8 })
  const { endpoint, region } = server
  const s3 = new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    credentials: CREDENTIALS,
    requestHandler: { httpsAgent },
  })
  await loaded(t, s3, async (progress) => {
    const before = await serialOf(server.port)
    use(second)
    writeFileSync(file, '{"logLevel": "debug", "requestRate": "100000"}')
    await hangup(server)
    t.not(await serialOf(server.port), before, 'new connections get the new certificate')
    await progress()
    writeFileSync(file, '{"requestRate": "none"}')
    process.kill(server.pid, 'SIGHUP')
    await until('it is refused', () => server.log.includes('could not reload the configuration'))
    await progress()
    for (let n = 0; n < 2; n++) {
      const { code, stderr } = await runCli(['backup', join(folder, 'backups'), '--data', server.data])
      t.equal(code, 0, stderr)
      await progress()
    }
  })
})

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
  await loaded(t, s3, async (progress) => {
    for (const proxy of proxies.slice(1)) {
      await hangup(proxy)
      t.match(await proxy.stop('SIGTERM'), { code: 0 })
      await progress()
      await proxy.start()
      await progress()
    }
  })
  for (const proxy of proxies) t.notMatch(proxy.log, 'connections were cut', 'each request has ended')
})
