import t from 'tap'
import { CHUNK_BYTES, cidOfChunks } from '../network/second-v0.js'
import { newKeys, startPaymentScene } from './payment-client.js'

t.setTimeout(3_600_000)

const MIB = 2 ** 20
/** `npm run stress` uploads 1 GiB. */
const LENGTH = process.env.DEALGATE_STRESS_ROUNDS === undefined ? 64 * MIB : 1024 * MIB

/** Chunks that all differ. */
function* chunks(length: number): Iterable<Uint8Array> {
  const chunk = Buffer.alloc(CHUNK_BYTES, 'a chunk ')
  for (let at = 0; at < length; at += CHUNK_BYTES) {
    chunk.writeUInt32BE(at / CHUNK_BYTES)
    yield chunk.subarray(0, Math.min(CHUNK_BYTES, length - at))
  }
}

/** A form with one file, made as it is sent. */
function* form(wallet: string, length: number): Iterable<Uint8Array> {
  const part = (head: string, text = ''): Buffer =>
    Buffer.from(`--x\r\nContent-Disposition: form-data; ${head}\r\n\r\n${text}`)
  yield part('name="duration"', '525\r\n')
  yield part('name="wallet_address"', `${wallet}\r\n`)
  yield part('name="file"; filename="large"')
  for (const chunk of chunks(length)) yield Uint8Array.from(chunk)
  yield Buffer.from('\r\n--x--\r\n')
}

for (const length of [CHUNK_BYTES, CHUNK_BYTES + 1, LENGTH]) {
  t.test(`an upload of ${length} bytes has the CID of a second implementation`, async (t) => {
    const { payment } = await startPaymentScene(t, { variant: 'b' })
    const response = await fetch(`${payment.url}/api/v1/storage/ipfs/upload`, {
      method: 'POST',
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
      body: ReadableStream.from(form(newKeys().address, length)),
      duplex: 'half',
    })
    t.equal(response.status, 200)
    const { data } = (await response.json()) as { data: { payload_cid: string; file_size: number; ipfs_url: string } }
    t.match(data, { payload_cid: cidOfChunks(chunks(length)), file_size: length })
    const last = await fetch(data.ipfs_url, { headers: { range: 'bytes=-1' } })
    t.equal(last.headers.get('content-range'), `bytes ${length - 1}-${length - 1}/${length}`)
    t.equal((await last.arrayBuffer()).byteLength, 1)
  })
}
