import { chmodSync, readdirSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import t from 'tap'
import { createLogger } from '../../src/common/log.js'
import { createProxy } from '../../src/server/create-proxy.js'
import { serve } from '../../src/server/serve.js'
import { startServices } from '../../src/services/index.js'
import { DealClient } from '../services/deal-client.js'
import { connectTo } from '../services/gateway-client.js'
import { temporaryFolder } from '../support/content/folders.js'
import { signedRequest } from '../support/sign/signed-request.js'

/** Everything below the data folder is readable by the account of the server alone. */

const identity = { accessKeyId: 'key', secretAccessKey: 'secret-key' }

async function start(data: string) {
  const services = await startServices({
    data: join(data, 'services'),
    gateway: { host: '127.0.0.1', port: 0 },
    // No epoch ends while the test runs.
    network: { epochSeconds: 86_400 },
  })
  const proxy = await createProxy({
    gateway: { url: services.gateway.url, account: await services.gateway.credentials() },
    data,
    identities: [identity],
    log: createLogger({ level: 'silent' }),
  })
  const serving = await serve({ handler: proxy, host: '127.0.0.1', port: 0 })
  return {
    gateway: services.gateway,
    ask: (method: string, path: string, body?: string, query?: Record<string, string>) =>
      signedRequest(serving.url, identity, {
        method,
        path,
        ...(body !== undefined && { body }),
        ...(query && { query }),
      }),
    async stop() {
      await serving.close(0)
      await proxy.close()
      await services.stop()
    },
  }
}

/** Files and folders that others than the owner may do anything with. */
function loose(data: string): string[] {
  return readdirSync(data, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => (statSync(path).mode & 0o077) !== 0)
    .map((path) => relative(data, path))
}

t.test('files and folders are made for the owner alone, also under a loose umask', async (t) => {
  const data = temporaryFolder(t)
  const umask = process.umask(0)
  t.teardown(() => process.umask(umask))
  const server = await start(data)
  t.teardown(() => server.stop())
  t.equal((await server.ask('PUT', '/photos')).status, 200)
  t.equal((await server.ask('PUT', '/photos/small', 'x')).status, 200)
  t.equal((await server.ask('PUT', '/photos/large', 'x'.repeat(300_000))).status, 200)
  const { body } = await server.ask('POST', '/photos/parts', '', { uploads: '' })
  const uploadId = /<UploadId>(.*)<\/UploadId>/.exec(body)?.[1] ?? ''
  const part = await server.ask('PUT', '/photos/parts', 'x'.repeat(300_000), { partNumber: '1', uploadId })
  t.equal(part.status, 200)
  const deals = new DealClient(await connectTo(server))
  t.equal((await deals.deal('photos', 'large')).status, 'success')
  const files = readdirSync(data, { recursive: true }).map(String)
  for (const kind of [/records\.sqlite$/, /-wal$/, /-shm$/, /objects\/.+/, /staging\/.+/, /\.car$/, /index\.db$/]) {
    t.ok(
      files.some((file) => kind.test(file)),
      `there is a file such as ${kind}`,
    )
  }
  t.same(loose(data), [])
})

t.test('what an earlier version left open is closed at the next start', async (t) => {
  const data = temporaryFolder(t)
  const first = await start(data)
  t.equal((await first.ask('PUT', '/photos')).status, 200)
  await first.stop()
  const left = readdirSync(data, { recursive: true, withFileTypes: true })
  for (const entry of left) {
    const folder = entry.name === 'staging' ? entry.parentPath === data : /^(state|spool|gateway)$/.test(entry.name)
    if (folder || /\.(sqlite|db)|^lock/.test(entry.name)) {
      chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644)
    }
  }
  t.ok(loose(data).length >= 6, loose(data).join())
  const second = await start(data)
  t.teardown(() => second.stop())
  t.equal((await second.ask('GET', '/photos')).status, 200)
  t.same(loose(data), [])
})
