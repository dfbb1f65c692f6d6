import t from 'tap'
import { bytes } from '../support/content/content.js'
import { firstAccount } from '../support/gateway/embedded.js'
import { inEachMode } from '../support/server/dealgate.js'
import { presigned, send, targetOf } from '../support/sign/send.js'

/** docs/design.md, promise 10: secrets do not leak, not in logs and not in answers. */

inEachMode(
  t,
  async (t, server) => {
    const target = targetOf('secrets', 'object')
    const path = '/secrets/object'
    const said: string[] = []
    const signatures: string[] = []
    const visit = async (url: string, init: RequestInit = {}) => {
      signatures.push(...[...url.matchAll(/Signature=([^&]+)/g)].map(([, value = '']) => decodeURIComponent(value)))
      const response = await fetch(url, init)
      said.push(JSON.stringify([...response.headers]), await response.text())
      return response.status
    }
    t.equal((await send(server, { method: 'PUT', target: '/secrets' })).status, 200)
    t.equal((await send(server, { method: 'PUT', target, body: bytes('x', 1000) })).status, 200)
    for (const brand of ['Amz', 'Cloud'] as const) {
      t.equal(await visit(presigned(server, 'GET', path, brand)), 200, brand)
      t.equal(await visit(presigned(server, 'PUT', path, brand), { method: 'PUT', body: 'new' }), 200)
      t.equal(await visit(presigned(server, 'GET', '/secrets/none', brand)), 404)
      t.equal(await visit(presigned(server, 'GET', path, brand).replace('/object', '/other')), 403)
      t.equal(await visit(`${presigned(server, 'GET', path, brand)}&torrent`), 403)
      t.equal(await visit(presigned(server, 'PATCH', path, brand), { method: 'PATCH' }), 405)
    }
    const { endpoint, region, accessKey, secretKey } = server
    for (const credentials of [
      { accessKey, secretKey: 'x'.repeat(20) },
      { accessKey: 'NOBODY', secretKey },
    ]) {
      const answer = await send({ endpoint, region, ...credentials }, { method: 'GET', target })
      t.equal(answer.status, 403)
      said.push(answer.body.toString())
    }
    // A key that looks like a query, and requests that end in an error of the gateway's.
    await send(server, { method: 'GET', target: targetOf('secrets', 'a?token=abcdefgh&X-Amz-Signature=deadbeef') })
    await send(server, { method: 'GET', target: '/no-such-bucket/x' })
    await send(server, {
      method: 'GET',
      target: `${target}?x-job=nightly&x-other-signature=abcdefgh&x-auth-token=abcdefgh&x-api-key=abcdefgh&x-why=a%3Ftoken%3Dabcdefgh`,
    })
    const { code } = await server.stop()
    t.equal(code, 0)

    // The embedded gateway keeps its account in the data folder.
    const gatewaySecret = firstAccount(server.data).secretKey
    const secrets: Record<string, string> = { 'the secret key': secretKey, 'the gateway’s secret key': gatewaySecret }
    for (const [name, secret] of Object.entries(secrets)) {
      t.ok(secret.length >= 8)
      t.notOk(server.log.includes(secret), `${name} is not in the log`)
      t.notOk(said.join('\n').includes(secret), `${name} is in no answer`)
    }
    for (const signature of signatures) t.notOk(server.log.includes(signature), 'a signature is not in the log')
    t.notMatch(server.log, /eyJ[\w-]{8,}\.[\w-]{8,}/, 'nor is a token')
    t.notMatch(server.log, /token=(?!REDACTED)\w/i)
    t.notMatch(server.log, 'abcdefgh')
    t.match(server.log, '"operation":"GetObject"', 'though requests are')
    t.match(server.log, '"marks":{"x-job":"nightly","x-why":"a?token=REDACTED"}', 'and what users mark them with')
    t.notMatch(said.join('\n'), /eyJ[\w-]{8,}\.[\w-]{8,}/)
  },
  { args: ['--log-level', 'debug'] },
)
