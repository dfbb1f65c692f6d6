import t, { type Test } from 'tap'
import { bytes, KiB, MiB, md5, sha256 } from '../support/content/content.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'
import { exchange, headText } from '../support/sign/raw.js'
import { send, sign, targetOf, UNSIGNED_PAYLOAD } from '../support/sign/send.js'

/** docs/design.md, promises 2 and 7: what was acknowledged survives a power cut. */

const BUCKET = 'durable'
const SIZES = [0, 1, 5 * KiB, 300 * KiB, 3 * MiB]
const PARTS = [bytes('part 1', 5 * MiB), bytes('part 2', 5 * MiB + 1), bytes('part 3', 10)]

inEachMode(t, async (t, server) => {
  const ask = (method: string, target: string, body?: Buffer, headers: Record<string, string> = {}) =>
    send(server, { method, target, headers, ...(body && { body }) })
  const powerCut = async () => {
    await server.kill9()
    await server.start()
  }
  t.equal((await ask('PUT', `/${BUCKET}`)).status, 200)
  const parts = targetOf(BUCKET, 'parts')
  const begun = await ask('POST', `${parts}?uploads`, undefined, { 'x-amz-meta-a': 'b' })
  const id = /<UploadId>([^<]+)</.exec(begun.body.toString())?.[1]
  const putPart = async (number: number) => {
    const target = `${parts}?partNumber=${number}&uploadId=${id}`
    const body = PARTS[number - 1] ?? Buffer.of()
    t.equal((await send(server, { method: 'PUT', target, body, payloadHash: UNSIGNED_PAYLOAD })).status, 200)
  }
  await putPart(1)
  const headers = { 'content-type': 'x/y', 'x-amz-meta-a': 'b', 'x-amz-checksum-algorithm': 'CRC32' }
  for (const size of SIZES)
    t.equal((await ask('PUT', targetOf(BUCKET, `o/${size}`), bytes(`object ${size}`, size), headers)).status, 200)

  await powerCut()
  for (const size of SIZES) {
    const body = bytes(`object ${size}`, size)
    const got = await ask('GET', targetOf(BUCKET, `o/${size}`))
    t.equal(sha256(got.body), sha256(body), `an object of ${size} bytes`)
    t.match(got.headers, { etag: `"${md5(body)}"`, 'content-type': 'x/y', 'x-amz-meta-a': 'b' })
  }
  await putPart(2)
  await putPart(3)
  t.equal((await ask('DELETE', targetOf(BUCKET, 'o/1'))).status, 204)

  await powerCut()
  t.equal((await ask('HEAD', targetOf(BUCKET, 'o/1'))).status, 404, 'gone stays gone')
  const listing = await ask('GET', `/${BUCKET}?list-type=2&prefix=o/`)
  t.match(listing.body.toString(), `<KeyCount>${SIZES.length - 1}</KeyCount>`)
  const listed = (await ask('GET', `${parts}?uploadId=${id}`)).body.toString()
  for (const body of PARTS) t.match(listed, `<ETag>&quot;${md5(body)}&quot;</ETag><Size>${body.length}</Size>`)
  const list = PARTS.map((body, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${md5(body)}</ETag></Part>`)
  const document = Buffer.from(`<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`)
  const complete = async () => {
    const { status, body } = await ask('POST', `${parts}?uploadId=${id}`, document)
    return [status, /<ETag>(.*?)<\/ETag>/.exec(body.toString())?.[1]]
  }
  const completed = await complete()
  t.match(completed, [200, /-3/])

  await overwriting(t, server)
  const got = await ask('GET', parts)
  t.equal(sha256(got.body), sha256(Buffer.concat(PARTS)), 'the whole is there')
  t.equal(got.headers['x-amz-meta-a'], 'b')
  t.same(await complete(), completed, 'Complete once more has the same answer')
  t.notMatch((await ask('GET', `/${BUCKET}?uploads`)).body.toString(), '<Upload>', 'no upload is left')
})

/** An overwrite that was under way. */
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
