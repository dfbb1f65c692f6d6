import t, { type Test } from 'tap'
import { bytes, contentMd5, KiB } from '../support/content/content.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'
import { send, targetOf, UNSIGNED_PAYLOAD } from '../support/sign/send.js'

/**
 * Bad input gets a clear error, nothing is lost, and the server stays up. test/src/s3/malformed has what S3 refuses,
 * and test/cli/process what is no HTTP.
 */

const BUCKET = 'bad-input'

inEachMode(t, async (t, server) => {
  const { pid } = server
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const kept = bytes('kept', 10 * KiB)
  await send(server, { method: 'PUT', target: targetOf(BUCKET, 'kept'), body: kept })
  // A legacy gateway refuses keys; what else is wrong never reaches a gateway.
  const tests = server.mode === 'full' ? { documents, targets } : { targets }
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
    'a bomb of entities': Buffer.from(`${bomb}<Delete><Object><Key>&h;</Key></Object></Delete>`),
    'invalid UTF-8': Buffer.from('<Delete><Object><Key>\xff\xfe</Key></Object></Delete>', 'latin1'),
    'a thousand levels': Buffer.from('<Delete>'.repeat(1000)),
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
    // The client hears of it although it is still sending.
    const large = Buffer.from(`<Delete>${'<Object><Key>kept</Key></Object>'.repeat(330_000)}</Delete>`)
    const sending = { method, target, body: large, headers: contentMd5(large), payloadHash: UNSIGNED_PAYLOAD }
    t.match(await send(server, sending), { status: 400, code: 'MaxMessageLengthExceeded' }, '10 MB')
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
    [`/${BUCKET}/%zz`, /^(InvalidURI|SignatureDoesNotMatch)$/],
    [`/%ff`, /^InvalidURI$/],
    [`/${BUCKET}?prefix=%ff`, /^InvalidURI$/],
    [`/${BUCKET}/${'k'.repeat(1025)}`, /^KeyTooLongError$/],
    ['//x', /^InvalidBucketName$/],
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
