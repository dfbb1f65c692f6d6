import http from 'node:http'
import { pipeline, Transform } from 'node:stream'
import t from 'tap'
import { startInProcess } from '../../../support/server/in-process.js'
import { listen } from '../../../support/server/listen.js'
import { modes } from '../../../support/server/modes.js'
import { signedRequest, type Wanted } from '../../../support/sign/signed-request.js'

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

interface Relay {
  /** What it returns for a request is waited for before the request is passed on. */
  readonly hold: (request: http.IncomingMessage) => Promise<void> | undefined
  /** What it returns for a request is waited for before the last bytes of its answer are passed on. */
  readonly holdEnd: (request: http.IncomingMessage) => Promise<void> | undefined
}

/** Passes everything on to `url`. */
async function relayTo(t: { teardown(run: () => unknown): void }, url: string, { hold, holdEnd }: Relay) {
  const server = http.createServer(async (request, response) => {
    await hold(request)
    const { method, url: path, headers } = request
    const onward = http.request(new URL(url), { method, path, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.rawHeaders)
      const end = holdEnd(request)
      if (end) pipeline(answer, withLate(end), response, () => {})
      else answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
  return listen(server, t)
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}

/** Passes all on but the last chunk, which waits for `end`. */
function withLate(end: Promise<void>): Transform {
  let last: Buffer | undefined
  return new Transform({
    transform(chunk, _encoding, next) {
      const before = last
      last = chunk
      next(null, before)
    },
    flush: (next) => void end.then(() => next(null, last)),
  })
}

for (const mode of modes) {
  t.test(`${mode}: a copy onto itself does not bring old bytes back over newer ones`, async (t) => {
    const { gateway } = await startInProcess(t, mode)
    let copying: (() => Promise<void>) | undefined
    // The copy cannot have come to its last bytes, and its lock, when the other request does.
    let overtaken = withResolvers()
    const url = await relayTo(t, gateway.url, {
      hold(request) {
        if (request.method !== 'PUT' || copying === undefined) return undefined
        const held = copying().finally(overtaken.resolve)
        overtaken = withResolvers()
        copying = undefined
        return held
      },
      holdEnd: ({ method }) => (method === 'GET' && copying ? overtaken.promise : undefined),
    })
    const relayed = { url, account: gateway.account }
    const { endpoint } = await startInProcess(t, mode, { identities: [keys], gateway: relayed })
    const send = (method: string, path: string, more: Partial<Wanted> = {}) =>
      signedRequest(endpoint, keys, { method, path, ...more })
    const touch = (path: string) =>
      send('PUT', path, {
        headers: { 'x-amz-copy-source': path, 'x-amz-metadata-directive': 'REPLACE', 'x-amz-meta-mtime': '1' },
      })
    await send('PUT', '/bucket')

    const old = Buffer.alloc(2 * 1024 * 1024, 'old')
    const unsigned = { body: old, headers: { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } }
    for (const [what, method, times, outcome, status] of [
      ['overwritten', 'PUT', 1, { status: 200 }, 200],
      ['removed', 'DELETE', 1, { status: 404, code: 'NoSuchKey' }, 404],
    ] as const) {
      const key = `/bucket/${what.replaceAll(' ', '-')}`
      t.equal((await send('PUT', key, unsigned)).status, 200)
      let meanwhile: Promise<{ status: number }> | undefined
      let left: number = times
      copying = async () => {
        if (left-- <= 0) return
        meanwhile = send(method, key, method === 'PUT' ? { body: 'new' } : {})
        await meanwhile
      }
      const copied = await touch(key)
      t.match(await meanwhile, { status: method === 'PUT' ? 200 : 204 })
      t.match(copied, outcome, `${what} while it was copied`)
      const now = await send('GET', key)
      t.equal(now.status, status)
      if (status === 200) t.equal(now.body, 'new')
      t.equal(now.headers['x-amz-meta-mtime'], outcome.status === 200 ? '1' : undefined)
    }

    t.equal((await send('PUT', '/bucket/restless', unsigned)).status, 200)
    let overwritten = 0
    const again = async () => {
      const body = Buffer.alloc(old.length, `new ${++overwritten} `)
      t.equal((await send('PUT', '/bucket/restless', { ...unsigned, body })).status, 200)
      copying = again
    }
    copying = again
    const restless = await touch('/bucket/restless')
    copying = undefined
    // After a while the 200 has gone out, and the error stands in the document.
    t.match(restless.body, /<Code>ServiceUnavailable<\/Code>.*repeatedly overwritten/s, 'it gives up')
    t.equal(overwritten, 5, 'after five times')
    t.match((await send('GET', '/bucket/restless')).body.slice(0, 6), 'new 5 ', 'and has changed nothing')

    t.equal((await send('PUT', '/bucket/quiet', unsigned)).status, 200)
    t.equal((await touch('/bucket/quiet')).status, 200)
    t.match(await send('HEAD', '/bucket/quiet'), { status: 200, headers: { 'x-amz-meta-mtime': '1' } })
  })
}
