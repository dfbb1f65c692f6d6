import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { createLogger } from '../../src/common/log.js'
import { createProxy } from '../../src/server/create-proxy.js'
import { serve } from '../../src/server/serve.js'
import { legacy, startServices } from '../../src/services/index.js'
import { temporaryFolder } from '../support/content/folders.js'
import { signedRequest } from '../support/sign/signed-request.js'

/** Writes in doubt may be many, and stay so for minutes: docs/consistency.md. */

const KiB = 1024
const MiB = 1024 * KiB
const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const log = createLogger({ level: 'silent' })

t.test('bodies of writes in doubt are not kept', async (t) => {
  const warnings: Error[] = []
  const warned = (warning: Error) => warnings.push(warning)
  process.on('warning', warned)
  t.teardown(() => process.off('warning', warned))
  const data = temporaryFolder(t)
  const services = await startServices({
    data: join(data, 'services'),
    gateway: { host: '127.0.0.1', port: 0, quirks: legacy },
  })
  t.teardown(() => services.stop())
  let held = 0
  // Uploads are not read; all else is passed on.
  const between = http.createServer((request, response) => {
    if (request.method === 'PUT') {
      held++
      return
    }
    const { method, url: path = '', headers } = request
    const target = new URL(path, services.gateway.url)
    const onward = http.request(target, { method, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.rawHeaders)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve))
  t.teardown(() => between.close().closeAllConnections())
  const proxy = await createProxy({
    gateway: {
      url: `http://127.0.0.1:${(between.address() as AddressInfo).port}`,
      account: await services.gateway.credentials(),
      timeoutMs: 4000,
    },
    identities: [keys],
    data: join(data, 'proxy'),
    log,
  })
  t.teardown(() => proxy.close())
  const serving = await serve({ handler: proxy, host: '127.0.0.1', port: 0 })
  t.teardown(() => serving.close(0))
  const send = (path: string, body?: Buffer) =>
    signedRequest(serving.url, keys, {
      method: 'PUT',
      path,
      ...(body && { body, headers: { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } }),
    })
  t.equal((await send('/bucket')).status, 200)

  const body = Buffer.alloc(256 * KiB, 'x')
  const writes = 160
  const before = await bytesInUse()
  for (let i = 0; i < writes; ) {
    const some = Array.from({ length: 80 }, () => send(`/bucket/${i++}`, body))
    for (const { status } of await Promise.all(some)) t.equal(status, 503, 'given up')
  }
  t.equal(held, writes, 'each is in doubt')
  t.match(await send('/bucket/0', body), { status: 503, code: 'SlowDown' })
  // The server between has read some of each, up to 64 KiB.
  const grown = (await bytesInUse()) - before - writes * 64 * KiB
  t.ok(grown < 16 * MiB, `${Math.round(grown / MiB)} MiB are kept of ${(writes * body.length) / MiB}`)
  t.same(
    warnings.filter(({ name }) => name === 'MaxListenersExceededWarning'),
    [],
    'many writes in doubt are no leak',
  )
})

/** Of buffers that something refers to. */
async function bytesInUse(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let i = 0; i < 5; i++) {
    collect()
    await sleep(20)
  }
  return process.memoryUsage().arrayBuffers
}
