import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { startDealgate } from '../support/server/dealgate.js'
import { insist, send } from '../support/sign/send.js'

/** Notes each batch of messages between the threads of a server, and each request that its gateway gets over HTTP. */
const COUNT = `
import { appendFileSync } from 'node:fs'
import http from 'node:http'
import { MessagePort } from 'node:worker_threads'
const note = (what) => appendFileSync(process.env.NOTES_UNDER_TEST, what + '\\n')
const { postMessage } = MessagePort.prototype
MessagePort.prototype.postMessage = function (message, ...rest) {
  if (Array.isArray(message) && Array.isArray(message[0])) for (const one of message) note('message ' + one[2])
  return postMessage.call(this, message, ...rest)
}
const { emit } = http.Server.prototype
http.Server.prototype.emit = function (event, ...rest) {
  if (event === 'request' && rest[0].url.startsWith('/gateway/')) note('request ' + rest[0].url)
  return emit.call(this, event, ...rest)
}
`
const BODY = Buffer.alloc(1024, 'x')
const VERSIONS = Buffer.from('<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>')

/** What asks the gateway for an object, or for what there is. */
const READS: readonly (readonly [method: string, target: string])[] = [
  ['GET', '/bucket/key'],
  ['HEAD', '/bucket/key'],
  ['GET', '/bucket/large'],
  ['GET', '/bucket/missing'],
  ['GET', '/bucket?list-type=2'],
  ['GET', '/bucket?list-type=2&delimiter=%2F'],
  ['GET', '/bucket?versions'],
  ['GET', '/'],
]

for (const [name, args] of [
  ['one process', []],
  ['workers', ['--workers', '2']],
] as const) {
  t.test(`reads reach no other thread and no other process: ${name}`, async (t) => {
    const folder = temporaryFolder(t)
    const [script, notes] = [join(folder, 'count.mjs'), join(folder, 'notes')]
    writeFileSync(script, COUNT)
    writeFileSync(notes, '')
    const env = {
      NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${pathToFileURL(script)}`,
      NOTES_UNDER_TEST: notes,
    }
    const server = await startDealgate(t, { args, env })
    await insist(server, 'the bucket is made', { method: 'PUT', target: '/bucket' })
    await insist(server, 'it gets versions', {
      method: 'PUT',
      target: '/bucket?versioning',
      headers: { 'content-md5': createHash('md5').update(VERSIONS).digest('base64') },
      body: VERSIONS,
    })
    await insist(server, 'a small object', { method: 'PUT', target: '/bucket/key', body: BODY })
    await insist(server, 'a large object', { method: 'PUT', target: '/bucket/large', body: Buffer.alloc(300_000) })
    const noted = () => readFileSync(notes, 'utf8')
    const writes = noted()
    t.match(writes, args.length === 0 ? /message \/gateway\/upload/ : /request \/gateway\/upload/, 'writes are noted')
    // Each worker logs in, and learns what the gateway can do.
    const settle = async () => {
      for (let n = 0; n < 8; n++) for (const [method, target] of READS) await send(server, { method, target })
    }
    await settle()
    writeFileSync(notes, '')
    for (const [method, target] of READS) {
      const { status, body } = await send(server, { method, target })
      t.equal(status, target.endsWith('missing') ? 404 : 200, `${method} ${target}`)
      if (target === '/bucket/key' && method === 'GET') t.same(body, BODY)
    }
    t.equal(noted(), '')
    await insist(server, 'a write', { method: 'PUT', target: '/bucket/key', body: Buffer.from('new') })
    t.not(noted(), '')
    // Each request has a connection of its own, which any worker takes.
    for (let n = 0; n < 20; n++) {
      await insist(server, 'another write', { method: 'PUT', target: '/bucket/key', body: Buffer.from(`body ${n}`) })
      t.equal((await send(server, { method: 'GET', target: '/bucket/key' })).body.toString(), `body ${n}`)
    }
  })
}
