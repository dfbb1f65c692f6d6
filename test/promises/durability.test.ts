import t, { type Test } from 'tap'
import { bytes, KiB, MiB, md5, sha256 } from '../support/content/content.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'
import { exchange, headText } from '../support/sign/raw.js'
import { send, sign, targetOf, UNSIGNED_PAYLOAD } from '../support/sign/send.js'

/** docs/design.md, promises 2 and 7: what was acknowledged survives a power cut. */

const BUCKET = 'durable'
const OLD = { target: targetOf(BUCKET, 'overwritten'), body: bytes('old', 2 * MiB) }

inEachMode(t, async (t, server) => {
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const objects = new Objects(server)
  const upload = new Upload(server)
  await t.test('is stored', async (t) => {
    await upload.begin(t)
    await upload.put(t, 1)
    await objects.store(t)
  })
  await powerCut(server)
  await t.test('is there after a power cut, and goes on', async (t) => {
    await objects.are(t)
    await upload.put(t, 2)
    await upload.put(t, 3)
    await objects.removeOne(t)
  })
  await powerCut(server)
  await t.test('is there after another one, and ends', async (t) => {
    await objects.lackOne(t)
    await upload.lists(t)
    t.equal((await send(server, { method: 'PUT', ...OLD })).status, 200)
    await upload.complete(t)
  })
  await t.test('an overwrite that was under way', (t) => overwriting(t, server))
  await t.test('an upload that was complete', (t) => upload.is(t))
})

async function powerCut(server: Dealgate): Promise<void> {
  await server.kill9()
  await server.start()
}

class Objects {
  static readonly #SIZES = [0, 1, 5 * KiB, 300 * KiB, 3 * MiB]
  readonly #server: Dealgate

  constructor(server: Dealgate) {
    this.#server = server
  }

  async store(t: Test): Promise<void> {
    const headers = { 'content-type': 'x/y', 'x-amz-meta-a': 'b', 'x-amz-checksum-algorithm': 'CRC32' }
    for (const size of Objects.#SIZES) {
      const body = bytes(`object ${size}`, size)
      const put = await send(this.#server, { method: 'PUT', target: targetOf(BUCKET, `o/${size}`), body, headers })
      t.equal(put.status, 200)
    }
  }

  async are(t: Test): Promise<void> {
    for (const size of Objects.#SIZES) {
      const body = bytes(`object ${size}`, size)
      const got = await send(this.#server, { method: 'GET', target: targetOf(BUCKET, `o/${size}`) })
      t.equal(sha256(got.body), sha256(body), `an object of ${size} bytes`)
      t.match(got.headers, { etag: `"${md5(body)}"`, 'content-type': 'x/y', 'x-amz-meta-a': 'b' })
    }
  }

  async removeOne(t: Test): Promise<void> {
    t.equal((await send(this.#server, { method: 'DELETE', target: targetOf(BUCKET, 'o/1') })).status, 204)
  }

  async lackOne(t: Test): Promise<void> {
    const found = await send(this.#server, { method: 'HEAD', target: targetOf(BUCKET, 'o/1') })
    t.equal(found.status, 404, 'gone stays gone')
    const listing = await send(this.#server, { method: 'GET', target: `/${BUCKET}?list-type=2&prefix=o/` })
    t.match(listing.body.toString(), `<KeyCount>${Objects.#SIZES.length - 1}</KeyCount>`)
  }
}

class Upload {
  readonly #server: Dealgate
  readonly #target = targetOf(BUCKET, 'parts')
  readonly #bodies = [bytes('part 1', 5 * MiB), bytes('part 2', 5 * MiB + 1), bytes('part 3', 10)]
  readonly #etags: string[] = []
  #id: string | undefined
  #etag: string | undefined

  constructor(server: Dealgate) {
    this.#server = server
  }

  async begin(t: Test): Promise<void> {
    const headers = { 'x-amz-meta-a': 'b' }
    const created = await send(this.#server, { method: 'POST', target: `${this.#target}?uploads`, headers })
    t.equal(created.status, 200)
    this.#id = /<UploadId>([^<]+)</.exec(created.body.toString())?.[1]
  }

  async put(t: Test, number: number): Promise<void> {
    const target = `${this.#target}?partNumber=${number}&uploadId=${this.#id}`
    const body = this.#bodies[number - 1] ?? Buffer.of()
    const put = await send(this.#server, { method: 'PUT', target, body, payloadHash: UNSIGNED_PAYLOAD })
    t.equal(put.status, 200)
    this.#etags.push(put.headers.etag ?? '')
  }

  async lists(t: Test): Promise<void> {
    const target = `${this.#target}?uploadId=${this.#id}`
    const listed = (await send(this.#server, { method: 'GET', target })).body.toString()
    for (const body of this.#bodies) t.match(listed, `<ETag>&quot;${md5(body)}&quot;</ETag><Size>${body.length}</Size>`)
  }

  async complete(t: Test): Promise<void> {
    const { status, etag } = await this.#complete()
    t.equal(status, 200)
    this.#etag = etag
  }

  async is(t: Test): Promise<void> {
    const got = await send(this.#server, { method: 'GET', target: this.#target })
    t.equal(sha256(got.body), sha256(Buffer.concat(this.#bodies)), 'the whole is there')
    t.equal(got.headers['x-amz-meta-a'], 'b')
    t.equal((await this.#complete()).etag, this.#etag, 'Complete once more has the same answer')
    const uploads = await send(this.#server, { method: 'GET', target: `/${BUCKET}?uploads` })
    t.notMatch(uploads.body.toString(), '<Upload>', 'no upload is left')
  }

  async #complete() {
    const list = this.#etags.map((etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag}</ETag></Part>`)
    const body = Buffer.from(`<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`)
    const { status, body: told } = await send(this.#server, {
      method: 'POST',
      target: `${this.#target}?uploadId=${this.#id}`,
      body,
    })
    return { status, etag: /<ETag>(.*?)<\/ETag>/.exec(told.toString())?.[1] }
  }
}

async function overwriting(t: Test, server: Dealgate): Promise<void> {
  const { target, body: old } = OLD
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
