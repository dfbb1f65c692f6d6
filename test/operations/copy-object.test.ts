import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { createProxy } from '../../src/create-proxy.js'
import { createLogger } from '../../src/log.js'
import { serve } from '../../src/serve.js'
import { legacy, startServices } from '../../src/services/index.js'
import { modes, startInProcess } from '../support/in-process.js'
import { signedRequest, type Wanted } from '../support/signed-request.js'

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

/** Passes everything on to `url`; what `hold` returns for a request is waited for first. */
async function relayTo(
  t: { teardown(run: () => unknown): void },
  url: string,
  hold: (request: http.IncomingMessage) => Promise<void> | undefined,
) {
  const server = http.createServer(async (request, response) => {
    await hold(request)
    const { method, url: path, headers } = request
    const onward = http.request(new URL(url), { method, path, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.rawHeaders)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close().closeAllConnections())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

for (const mode of modes) {
  t.test(`${mode}: a copy onto itself does not bring old bytes back over newer ones`, async (t) => {
    const data = t.testdir()
    const services = await startServices({
      data: join(data, 'services'),
      gateway: { host: '127.0.0.1', port: 0, quirks: mode === 'legacy' ? legacy : [] },
    })
    t.teardown(() => services.stop())
    let copying: (() => Promise<void>) | undefined
    const url = await relayTo(t, services.gateway.url, (request) => {
      if (request.method !== 'PUT') return undefined
      const held = copying?.()
      copying = undefined
      return held
    })
    const proxy = await createProxy({
      gateway: { url, account: await services.gateway.credentials() },
      identities: [keys],
      data: join(data, 'proxy'),
      log: createLogger({ level: 'silent' }),
    })
    t.teardown(() => proxy.close())
    const serving = await serve({ handler: proxy, host: '127.0.0.1', port: 0 })
    t.teardown(() => serving.close(0))
    const send = (method: string, path: string, more: Partial<Wanted> = {}) =>
      signedRequest(serving.url, keys, { method, path, ...more })
    const touch = (path: string) =>
      send('PUT', path, {
        headers: { 'x-amz-copy-source': path, 'x-amz-metadata-directive': 'REPLACE', 'x-amz-meta-mtime': '1' },
      })
    await send('PUT', '/bucket')

    // More than fits into buffers on the way, so that the copy cannot have come to its last bytes, and its lock, when the other request does.
    const old = Buffer.alloc(16 * 1024 * 1024, 'old')
    const unsigned = { body: old, headers: { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } }
    for (const [what, method, status] of [
      ['overwritten', 'PUT', 200],
      ['removed', 'DELETE', 404],
    ] as const) {
      const key = `/bucket/${what}`
      t.equal((await send('PUT', key, unsigned)).status, 200)
      let meanwhile: Promise<{ status: number }> | undefined
      copying = async () => {
        meanwhile = send(method, key, method === 'PUT' ? { body: 'new' } : {})
        await meanwhile
      }
      const copied = await touch(key)
      t.match(await meanwhile, { status: method === 'PUT' ? 200 : 204 })
      t.match(copied, { status: 412, code: 'PreconditionFailed' }, `${what} while it was copied`)
      const now = await send('GET', key)
      t.equal(now.status, status)
      if (status === 200) t.equal(now.body, 'new')
    }

    t.equal((await send('PUT', '/bucket/quiet', unsigned)).status, 200)
    t.equal((await touch('/bucket/quiet')).status, 200)
    t.match(await send('HEAD', '/bucket/quiet'), { status: 200, headers: { 'x-amz-meta-mtime': '1' } })
  })
}

for (const mode of modes) {
  t.test(`${mode}: a source key that no object can have is refused before the gateway is asked`, async (t) => {
    const { endpoint } = await startInProcess(t, mode, { identities: [keys] })
    const send = (path: string, more: Partial<Wanted>) =>
      signedRequest(endpoint, keys, { method: 'PUT', path, ...more })
    await send('/bucket', {})
    const begun = await signedRequest(endpoint, keys, { method: 'POST', path: '/bucket/k', query: { uploads: '' } })
    const uploadId = /<UploadId>(.*?)</.exec(begun.body)?.[1] ?? ''
    for (const bytes of [1025, 54_000]) {
      const headers = { 'x-amz-copy-source': `/bucket/${'k'.repeat(bytes)}` }
      t.match(await send('/bucket/copy', { headers }), { status: 400, code: 'KeyTooLongError' })
      const part = await send('/bucket/k', { headers, query: { uploadId, partNumber: '1' } })
      t.match(part, { status: 400, code: 'KeyTooLongError' })
    }
  })
}
