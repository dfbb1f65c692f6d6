import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:https'
import { text } from 'node:stream/consumers'
import { type ConnectionOptions, connect } from 'node:tls'
import t, { type Test } from 'tap'
import { serve } from '../../../cli/process/listen.js'
import { Certificates } from '../../../cli/process/tls.js'
import { Authority } from '../../support/content/certificates.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { keptLog } from '../../support/server/kept-log.js'
import { until } from '../../support/waiting.js'

interface Seen {
  readonly serial: string
  readonly protocol: string | null
  readonly alpn: string | false | null
}

/** Connects, and tells what the server has shown. Rejects with the code of the failure. */
function handshake(url: string, options: ConnectionOptions): Promise<Seen> {
  const { hostname: host, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), ...options }, () => {
      resolve({
        serial: socket.getPeerCertificate().serialNumber,
        protocol: socket.getProtocol(),
        alpn: socket.alpnProtocol,
      })
      socket.destroy()
    })
    socket.on('error', (error) => reject(error))
  })
}

/** Reads `/` to its end. */
function read(url: string, ca: string, agent: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { ca, agent }, (response) => {
      resolve(text(response))
    }).on('error', reject)
  })
}

async function start(t: Test) {
  const folder = temporaryFolder(t)
  const authority = new Authority(folder)
  const one = authority.issue('one', 'DNS:localhost,IP:127.0.0.1')
  const two = authority.issue('two', 'DNS:*.second.example')
  const { log, lines } = keptLog()
  const certificates = new Certificates([one, two], log, 20)
  t.teardown(() => certificates.close())
  const serving = await serve({
    handler: (req, res) => {
      res.write('begun ')
      // The body ends the response, so that a request lasts through a change.
      req.on('end', () => setTimeout(() => res.end('and ended'), 30)).resume()
    },
    host: '127.0.0.1',
    port: 0,
    tls: certificates,
  })
  t.teardown(() => serving.close(0))
  return { folder, authority, one, two, lines, certificates, serving, url: serving.url, ca: authority.pem }
}

t.test('the certificate is that of the name that the client asks for', async (t) => {
  const { url, ca } = await start(t)
  t.match(url, /^https:\/\/127\.0\.0\.1:\d+$/)
  const first = await handshake(url, { ca, servername: 'localhost' })
  const second = await handshake(url, { ca, servername: 'a.second.example' })
  t.not(first.serial, second.serial)
  t.equal((await handshake(url, { ca })).serial, first.serial, 'without a name: the first one')
  await t.rejects(handshake(url, { ca, servername: 'other.example' }), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  await t.rejects(handshake(url, { servername: 'localhost' }), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
})

t.test('HTTP/1.1 over TLS 1.2 and 1.3 alone', async (t) => {
  const { url, ca } = await start(t)
  const one = { ca, servername: 'localhost' }
  t.equal((await handshake(url, { ...one, maxVersion: 'TLSv1.2' })).protocol, 'TLSv1.2')
  t.equal((await handshake(url, one)).protocol, 'TLSv1.3')
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
  await t.rejects(handshake(url, { ...one, ...old }), { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' })
  t.equal((await handshake(url, { ...one, ALPNProtocols: ['h2', 'http/1.1'] })).alpn, 'http/1.1')
})

t.test('a changed certificate is used, and no request fails meanwhile', async (t) => {
  const { url, ca, authority, lines } = await start(t)
  const serial = async (servername: string) => (await handshake(url, { ca, servername })).serial
  const before = { one: await serial('localhost'), two: await serial('a.second.example') }
  const agents = [new Agent({ keepAlive: true }), new Agent({ keepAlive: false })]
  t.teardown(() => {
    for (const agent of agents) agent.destroy()
  })
  let running = true
  let answered = 0
  const clients = [...agents, ...agents].map(async (agent) => {
    while (running) {
      t.equal(await read(url, ca, agent), 'begun and ended')
      answered += 1
    }
  })
  await until('requests are under way', () => answered > 4)
  authority.issue('one', 'DNS:localhost,IP:127.0.0.1')
  authority.issue('two', 'DNS:*.second.example')
  await until('new connections get the new certificates', async () => {
    return (await serial('localhost')) !== before.one && (await serial('a.second.example')) !== before.two
  })
  const then = answered
  await until('further requests were answered', () => answered > then + 8)
  running = false
  await Promise.all(clients)
  t.notOk(lines.some(({ level }) => level >= 40))
  t.ok(lines.some(({ certificates }) => JSON.stringify(certificates ?? '').includes('second.example')))
})

t.test('a pair that cannot be used leaves the former one in use, and the log says why', async (t) => {
  const { url, ca, one, two, certificates, authority, folder, lines } = await start(t)
  const serial = async () => (await handshake(url, { ca, servername: 'localhost' })).serial
  const before = await serial()
  const key = readFileSync(one.key, 'utf8')
  writeFileSync(one.key, readFileSync(two.key))
  const reason = () => lines.filter(({ level }) => level === 50).map((line) => String(line.reason))
  await until('the log has the mismatch', () => reason().some((text) => text.includes('not the private key')))
  t.equal(await serial(), before)
  t.equal(reason().length, 1, 'the log has it once')
  t.notOk(JSON.stringify(lines).includes('PRIVATE'))
  const missing = [{ cert: one.cert, key: `${folder}/none` }]
  t.throws(() => certificates.prepare(missing), { message: /cannot read .*ENOENT/ })
  t.throws(() => certificates.prepare([{ cert: one.cert, key: one.cert }]), {
    message: /contains no private key in PEM/,
  })
  t.throws(() => certificates.prepare([{ cert: one.key, key: one.key }]), { message: /contains no certificate in PEM/ })
  t.equal(await serial(), before)

  writeFileSync(one.key, key)
  const third = authority.issue('third', 'DNS:localhost')
  const use = certificates.prepare([third])
  t.equal(await serial(), before, 'not before it is told to')
  use?.()
  t.not(await serial(), before)
  t.equal(certificates.prepare([third]), undefined, 'nothing has changed')
})
