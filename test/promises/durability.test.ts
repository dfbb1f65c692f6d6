import t, { type Test } from 'tap'
import { bytes, KiB, MiB, md5, sha256 } from '../support/content/content.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'
import { exchange, headText } from '../support/sign/raw.js'
import { send, sign, targetOf, UNSIGNED_PAYLOAD } from '../support/sign/send.js'

/** DESIGN section 4, promises 2 and 7: what was acknowledged survives a power cut. */

const BUCKET = 'durable'

inEachMode(
  t,
  async (t, server) => {
    t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
    await t.test('objects', (t) => objects(t, server))
    await t.test('an upload in parts', (t) => parts(t, server))
    await t.test('an overwrite that was under way', (t) => overwriting(t, server))
  },
  { ownProcess: true },
)

async function powerCut(server: Dealgate): Promise<void> {
  await server.kill9()
  await server.start()
}

async function objects(t: Test, server: Dealgate): Promise<void> {
  const headers = { 'content-type': 'x/y', 'x-amz-meta-a': 'b', 'x-amz-checksum-algorithm': 'CRC32' }
  const sizes = [0, 1, 5 * KiB, 300 * KiB, 3 * MiB]
  for (const size of sizes) {
    const body = bytes(`object ${size}`, size)
    const put = await send(server, { method: 'PUT', target: targetOf(BUCKET, `o/${size}`), body, headers })
    t.equal(put.status, 200)
  }
  await powerCut(server)
  for (const size of sizes) {
    const body = bytes(`object ${size}`, size)
    const got = await send(server, { method: 'GET', target: targetOf(BUCKET, `o/${size}`) })
    t.equal(sha256(got.body), sha256(body), `an object of ${size} bytes`)
    t.match(got.headers, { etag: `"${md5(body)}"`, 'content-type': 'x/y', 'x-amz-meta-a': 'b' })
  }
  t.equal((await send(server, { method: 'DELETE', target: targetOf(BUCKET, 'o/1') })).status, 204)
  await powerCut(server)
  t.equal((await send(server, { method: 'HEAD', target: targetOf(BUCKET, 'o/1') })).status, 404, 'gone stays gone')
  const listing = await send(server, { method: 'GET', target: `/${BUCKET}?list-type=2&prefix=o/` })
  t.match(listing.body.toString(), `<KeyCount>${sizes.length - 1}</KeyCount>`)
}

async function parts(t: Test, server: Dealgate): Promise<void> {
  const target = targetOf(BUCKET, 'parts')
  const created = await send(server, { method: 'POST', target: `${target}?uploads`, headers: { 'x-amz-meta-a': 'b' } })
  const id = /<UploadId>([^<]+)</.exec(created.body.toString())?.[1]
  const bodies = [bytes('part 1', 5 * MiB), bytes('part 2', 5 * MiB + 1), bytes('part 3', 10)]
  const etags: string[] = []
  for (const [i, body] of bodies.entries()) {
    const part = `${target}?partNumber=${i + 1}&uploadId=${id}`
    const put = await send(server, { method: 'PUT', target: part, body, payloadHash: UNSIGNED_PAYLOAD })
    t.equal(put.status, 200)
    etags.push(put.headers.etag ?? '')
    if (i !== 1) await powerCut(server)
  }
  const listed = (await send(server, { method: 'GET', target: `${target}?uploadId=${id}` })).body.toString()
  for (const body of bodies) t.match(listed, `<ETag>&quot;${md5(body)}&quot;</ETag><Size>${body.length}</Size>`)
  const list = etags.map((etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag}</ETag></Part>`)
  const body = Buffer.from(`<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`)
  const complete = () => send(server, { method: 'POST', target: `${target}?uploadId=${id}`, body })
  const done = await complete()
  t.equal(done.status, 200)
  const etag = /<ETag>(.*?)<\/ETag>/.exec(done.body.toString())?.[1]
  await powerCut(server)
  const got = await send(server, { method: 'GET', target })
  t.equal(sha256(got.body), sha256(Buffer.concat(bodies)), 'the whole is there')
  t.equal(got.headers['x-amz-meta-a'], 'b')
  const again = await complete()
  t.equal(/<ETag>(.*?)<\/ETag>/.exec(again.body.toString())?.[1], etag, 'Complete once more has the same answer')
  const uploads = await send(server, { method: 'GET', target: `/${BUCKET}?uploads` })
  t.notMatch(uploads.body.toString(), '<Upload>', 'no upload is left')
}

async function overwriting(t: Test, server: Dealgate): Promise<void> {
  const target = targetOf(BUCKET, 'overwritten')
  const old = bytes('old', 2 * MiB)
  t.equal((await send(server, { method: 'PUT', target, body: old })).status, 200)
  const data = bytes('new', 2 * MiB)
  const headers = { 'content-length': String(data.length) }
  const signed = sign(server, { method: 'PUT', target, headers, payloadHash: UNSIGNED_PAYLOAD })
  await exchange(server, (socket) => {
    socket.write(headText('PUT', target, signed.headers))
    socket.write(data.subarray(0, -1), () => void server.kill9())
  })
  await server.start()
  const got = await send(server, { method: 'GET', target })
  t.equal(sha256(got.body), sha256(old), 'the old object is there')
  t.equal(got.headers.etag, `"${md5(old)}"`)
}
