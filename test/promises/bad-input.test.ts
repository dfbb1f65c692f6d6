import t, { type Test } from 'tap'
import { bytes, contentMd5, KiB, MiB } from '../support/content/content.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'
import { exchange, headText } from '../support/sign/raw.js'
import { send, sign, targetOf, UNSIGNED_PAYLOAD } from '../support/sign/send.js'

/** Bad input gets a clear error, nothing is lost, and the server stays up. */

const BUCKET = 'bad-input'

inEachMode(t, async (t, server) => {
  const { pid } = server
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const kept = bytes('kept', 10 * KiB)
  await send(server, { method: 'PUT', target: targetOf(BUCKET, 'kept'), body: kept })
  // A legacy gateway refuses keys; what else is wrong never reaches a gateway.
  const tests = server.mode === 'full' ? { documents, targets, framing } : { targets }
  for (const [name, test] of Object.entries(tests)) {
    await t.test(name, (t) => test(t, server))
    const { body } = await send(server, { method: 'GET', target: targetOf(BUCKET, 'kept') })
    t.same(body, kept, `all is well after ${name}`)
  }
  t.ok(server.running && server.pid === pid, 'the same process serves on')
  t.notMatch(server.log, /"level":60|unhandled/i)
})

async function documents(t: Test, server: Dealgate): Promise<void> {
  const created = await send(server, { method: 'POST', target: `${targetOf(BUCKET, 'parts')}?uploads` })
  const id = /<UploadId>([^<]+)</.exec(created.body.toString())?.[1]
  const bomb = `<!DOCTYPE x [<!ENTITY a "${'a'.repeat(100)}">${[...'bcdefgh'].map((c, i) => `<!ENTITY ${c} "${`&${'abcdefg'[i]};`.repeat(100)}">`).join('')}]>`
  const bad: Record<string, Buffer> = {
    'no XML': Buffer.from('hello'),
    'an end without a start': Buffer.from('</Delete>'),
    'a start without an end': Buffer.from('<Delete><Object>'),
    'another root': Buffer.from('<Other/>'),
    'a DTD': Buffer.from('<!DOCTYPE Delete SYSTEM "file:///etc/passwd"><Delete/>'),
    'an external entity': Buffer.from(
      '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><Delete><Object><Key>&e;</Key></Object></Delete>',
    ),
    'a bomb of entities': Buffer.from(`${bomb}<Delete><Object><Key>&h;</Key></Object></Delete>`),
    'invalid UTF-8': Buffer.from('<Delete><Object><Key>\xff\xfe</Key></Object></Delete>', 'latin1'),
    'a thousand levels': Buffer.from('<Delete>'.repeat(1000)),
    'names of objects’ own': Buffer.from('<__proto__><constructor/></__proto__>'),
    'two roots': Buffer.from('<Delete></Delete><Delete></Delete>'),
    'nothing in it': Buffer.from('<Delete></Delete>'),
  }
  const targets = [
    ['POST', `/${BUCKET}?delete`],
    ['POST', `${targetOf(BUCKET, 'parts')}?uploadId=${id}`],
    ['PUT', '/bad-input-bucket'],
  ] as const
  for (const [method, target] of targets) {
    for (const [name, body] of Object.entries(bad)) {
      const answer = await send(server, { method, target, body, headers: contentMd5(body) })
      t.equal(answer.code, 'MalformedXML', `${method} ${target.split('?')[0]}: ${name}`)
    }
    // The client hears of it although it is still sending; more than once, as a race is what could keep it from that.
    const large = Buffer.from(`<Delete>${'<Object><Key>kept</Key></Object>'.repeat(330_000)}</Delete>`)
    const headers = contentMd5(large)
    for (let i = 0; i < 2; i++) {
      const answer = await send(server, { method, target, body: large, headers, payloadHash: UNSIGNED_PAYLOAD })
      t.match([answer.status, answer.code], [400, 'MaxMessageLengthExceeded'], '10 MB')
    }
  }
  t.equal((await send(server, { method: 'HEAD', target: '/bad-input-bucket' })).status, 404)
  await publicAccessBlocks(t, server)
}

/** What is read as no block, or as the first of two, would open what is to stay shut. */
async function publicAccessBlocks(t: Test, server: Dealgate): Promise<void> {
  const target = `/${BUCKET}?publicAccessBlock`
  const put = (content: string) => {
    const body = Buffer.from(`<PublicAccessBlockConfiguration>${content}</PublicAccessBlockConfiguration>`)
    return send(server, { method: 'PUT', target, body })
  }
  const [on, off] = ['true', 'false'].map((word) => `<BlockPublicPolicy>${word}</BlockPublicPolicy>`)
  t.equal((await put(`${on}`)).status, 200)
  const element = '<BlockPublicPolicy><on/></BlockPublicPolicy>'
  for (const content of ['true', `${off}${on}`, `<Blocks>${on}</Blocks>`, element])
    t.equal((await put(content)).code, 'MalformedXML', content)
  t.match((await send(server, { method: 'GET', target })).body.toString(), on)
}

async function targets(t: Test, server: Dealgate): Promise<void> {
  const cases: [target: string, code: RegExp][] = [
    [`/${BUCKET}/%ff%fe`, /^InvalidURI$/],
    [`/${BUCKET}/%c0%ae%c0%ae`, /^InvalidURI$/],
    [`/${BUCKET}/%ed%a0%80`, /^InvalidURI$/],
    [`/${BUCKET}/%zz`, /^(InvalidURI|SignatureDoesNotMatch)$/],
    [`/${BUCKET}/a%`, /^(InvalidURI|SignatureDoesNotMatch)$/],
    [`/%ff`, /^InvalidURI$/],
    [`/${BUCKET}?prefix=%ff`, /^InvalidURI$/],
    [`/${BUCKET}/${'k'.repeat(1025)}`, /^KeyTooLongError$/],
    [`/${BUCKET}/${'%C3%A9'.repeat(513)}`, /^KeyTooLongError$/],
    ['/UPPER/x', /^(NoSuchBucket|InvalidBucketName)$/],
    [`/${'b'.repeat(64)}/x`, /^(NoSuchBucket|InvalidBucketName)$/],
    ['//x', /^InvalidBucketName$/],
    ['/../etc/passwd', /^(NoSuchBucket|InvalidBucketName|InvalidURI)$/],
    ['/-/nothing?format=xml', /^(MethodNotAllowed|NoSuchKey|NotImplemented)$/],
  ]
  for (const [target, code] of cases) t.match((await send(server, { method: 'GET', target })).code, code, target)
  const dots = ['..', '../..', 'a/../../kept', './kept', 'a//b', '/kept', 'a\\..\\b']
  const odd = [...dots, 'nul\0', 'con', '.dealgate', 'kept/']
  for (const key of odd) {
    const target = targetOf(BUCKET, key)
    t.equal((await send(server, { method: 'GET', target })).code, 'NoSuchKey', `${JSON.stringify(key)} is no other key`)
    const put = await send(server, { method: 'PUT', target, body: Buffer.from(key) })
    if (put.status === 200) {
      t.equal((await send(server, { method: 'GET', target })).body.toString(), key)
      t.equal((await send(server, { method: 'DELETE', target })).status, 204)
    } else {
      t.equal(server.mode, 'legacy')
      t.equal(put.status, 400, key)
      t.ok((put.message ?? '').length > 20, `says why: ${put.message}`)
    }
  }
  const whole = (await send(server, { method: 'GET', target: `/${BUCKET}?list-type=2` })).body.toString()
  t.equal(whole.match(/<Key>/g)?.length, 1)
  t.match(whole, '<Key>kept<')
}

async function framing(t: Test, server: Dealgate): Promise<void> {
  const target = targetOf(BUCKET, 'never')
  const host = new URL(server.endpoint).host
  // More of them are in test/server/serve and refuse-broken.
  const cases: Record<string, string> = {
    'a target of 1 MB': `GET /${'x'.repeat(MiB)} HTTP/1.1\r\nhost: ${host}\r\n\r\n`,
    TLS: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
    'a length and chunks': `PUT ${target} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    'a length beyond all bounds': `PUT ${target} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 99999999999999999999\r\n\r\n`,
    'chunks that are none': `PUT ${target} HTTP/1.1\r\nhost: ${host}\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n\r\n`,
    'a header with a NUL': `GET / HTTP/1.1\r\nhost: ${host}\r\nx: a\0b\r\n\r\n`,
  }
  for (const [name, text] of Object.entries(cases)) {
    const { text: answer, closed } = await exchange(server, (socket) => socket.write(text, 'latin1'))
    t.ok(closed || answer.startsWith('HTTP/1.1 '), `${name} gets an answer or the end of the connection`)
    t.notMatch(answer, /^HTTP\/1\.1 (20\d|50[^1]) /, name)
    t.notMatch(answer, /at .*\.(js|ts):\d/, `${name}: no stack`)
  }
  const body = bytes('too large', 1000)
  const length = { 'content-length': String(6 * 1024 * MiB) }
  const signed = sign(server, { method: 'PUT', target, headers: length, payloadHash: UNSIGNED_PAYLOAD })
  const { text } = await exchange(server, (socket) => {
    socket.write(headText('PUT', target, signed.headers))
    socket.write(body)
  })
  t.match(text, /^HTTP\/1\.1 400 [\s\S]*EntityTooLarge/, '6 GiB are refused before they are sent')
  const waiting = { 'content-length': '1000', expect: '100-continue' }
  const { endpoint, region, accessKey } = server
  const wrong = { endpoint, region, accessKey, secretKey: 'wrong-secret' }
  const refused = sign(wrong, { method: 'PUT', target, headers: waiting })
  const { text: early } = await exchange(server, (socket) => socket.write(headText('PUT', target, refused.headers)))
  t.match(early, /^HTTP\/1\.1 403 /, 'who waits for 100-continue is refused without sending')
  const lengthless = sign(server, { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
  const without = await exchange(server, (socket) => socket.write(headText('PUT', target, lengthless.headers)))
  t.match(without.text, /^HTTP\/1\.1 411 [\s\S]*MissingContentLength/)
  t.equal((await send(server, { method: 'HEAD', target })).status, 404)
}
