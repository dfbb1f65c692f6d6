import { spawnSync } from 'node:child_process'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { run } from '../../support/programs/run.js'
import { CHUNK_BYTES, cidOfChunks } from '../network/second-v0.js'
import { newKeys, startPaymentScene } from './payment-client.js'

t.setTimeout(3_600_000)

const MIB = 2 ** 20
/**
 * CIDs by `ipfs add -Q --only-hash` of Kubo 0.24.0 for the bytes of `chunks`. Kubo is built by
 * `go build github.com/ipfs/kubo/cmd/ipfs` in a module that requires v0.24.0.
 */
const OF_KUBO: readonly (readonly [length: number, cid: string])[] = [
  [0, 'QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH'],
  [1, 'QmS9JArPwa55ePgDnyg6TzX24mYTS1b1vLqWNebyVotKxQ'],
  [CHUNK_BYTES, 'QmeibWAcGHXZf3ZDYiMZ2x4PXLM7s6NVjUKBBpmEwYywPM'],
  [CHUNK_BYTES + 1, 'QmYDkXjKy3WVrzLEDRwwK7kf4dDjNsJq6BLbPgcQqRWf8L'],
  [64 * MIB, 'QmUso5sGRDgkE9FQd59xFMGgupYf4wTYj31p7YccVsoRMQ'],
]
/** `npm run stress` also uploads 1 GiB. */
const LARGEST = [1024 * MIB, 'QmXVHQmroucWDRsYgrthy5RPqtVSGu92zsaUhv7U2BBqZB'] as const
const VECTORS = process.env.DEALGATE_STRESS_ROUNDS === undefined ? OF_KUBO : [...OF_KUBO, LARGEST]

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

for (const [length, cid] of VECTORS) {
  t.test(`an upload of ${length} bytes has the CID of Kubo, and of a second implementation`, async (t) => {
    const { payment } = await startPaymentScene(t, { variant: 'b' })
    const response = await fetch(`${payment.url}/api/v1/storage/ipfs/upload`, {
      method: 'POST',
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
      body: ReadableStream.from(form(newKeys().address, length)),
      duplex: 'half',
    })
    t.equal(response.status, 200)
    const { data } = (await response.json()) as { data: { payload_cid: string; file_size: number; ipfs_url: string } }
    t.match(data, { payload_cid: cid, file_size: length })
    t.equal(cidOfChunks(chunks(length)), cid)
    const last = await fetch(data.ipfs_url, { headers: { range: 'bytes=-1' } })
    if (length > 0) t.equal(last.headers.get('content-range'), `bytes ${length - 1}-${length - 1}/${length}`)
    t.equal((await last.arrayBuffer()).byteLength, Math.min(length, 1))
  })
}

// No registry has Kubo as a program; OF_KUBO is its output.
const ipfs = spawnSync('ipfs', ['--version'], { stdio: 'ignore' }).status === 0 ? 'ipfs' : undefined

t.test('ipfs add gives these CIDs', { skip: !ipfs && 'ipfs is not installed' }, async (t) => {
  if (!ipfs) return
  const folder = temporaryFolder(t)
  const env = { IPFS_PATH: join(folder, 'repo'), HOME: folder }
  await run(ipfs, ['init', '--empty-repo'], { env })
  for (const [length, cid] of OF_KUBO) {
    const file = join(folder, String(length))
    writeFileSync(file, '')
    for (const chunk of chunks(length)) appendFileSync(file, chunk)
    const said = await run(ipfs, ['--offline', 'add', '--quieter', '--only-hash', file], { env })
    t.equal(said.toString().trim(), cid, `${length} bytes`)
  }
})
