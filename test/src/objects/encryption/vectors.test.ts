import { createHash } from 'node:crypto'
import { inflateSync } from 'node:zlib'
import * as vectors from 'cctv-age'
import t from 'tap'
import { headerEnd, openHeader } from '../../../../src/objects/encryption/age-header.js'
import {
  CHUNK_BYTES,
  NONCE_BYTES,
  PayloadDecrypter,
  PayloadEncrypter,
  payloadKey,
  payloadLength,
  sizeInPayload,
} from '../../../../src/objects/encryption/payload.js'

// The test vectors of the format, https://github.com/C2SP/CCTV/tree/main/age, in the package `cctv-age`. Their licence
// is 0BSD, CC0-1.0 or Unlicense, to choice. Passphrases and armour are not for stored objects.

interface Vector {
  readonly expect: string
  readonly payload: string | undefined
  readonly identities: readonly string[]
  readonly skipped: boolean
  readonly file: Buffer
}

function readVector(bytes: Uint8Array): Vector {
  const whole = Buffer.from(bytes)
  const end = whole.indexOf('\n\n')
  const lines = whole
    .subarray(0, end)
    .toString()
    .split('\n')
    .map((line) => line.split(': ') as [string, string])
  const of = (name: string) => lines.filter(([key]) => key === name).map(([, value]) => value)
  const file = whole.subarray(end + 2)
  return {
    expect: of('expect')[0] ?? '',
    payload: of('payload')[0],
    identities: of('identity'),
    skipped: of('passphrase').length > 0 || of('armored').length > 0,
    file: of('compressed').length > 0 ? inflateSync(file) : file,
  }
}

interface Decrypted {
  /** As the vectors name it. */
  readonly outcome: string
  /** All bytes that were passed on. */
  readonly passed: Buffer
}

async function decrypt({ file, identities }: Vector, pieces: number): Promise<Decrypted> {
  const passed: Buffer[] = []
  const ended = (outcome: string): Decrypted => ({ outcome, passed: Buffer.concat(passed) })
  const end = headerEnd(file)
  if (end === undefined || file.length < end + NONCE_BYTES) return ended('header failure')
  const fileKey = await openHeader(file.subarray(0, end), identities)
  if (typeof fileKey === 'string') return ended(fileKey === 'no key' ? 'no match' : 'header failure')
  try {
    const payload = file.subarray(end)
    const decrypter = new PayloadDecrypter(payloadKey(fileKey, payload.subarray(0, NONCE_BYTES)), payload.length)
    for (let at = NONCE_BYTES; at < payload.length; at += pieces)
      passed.push(...decrypter.take(payload.subarray(at, at + pieces)))
    decrypter.end()
    return ended('success')
  } catch {
    return ended('payload failure')
  }
}

function sha256Of(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

const all = Object.entries(vectors as unknown as Record<string, Uint8Array>)
  .filter(([name]) => name !== 'default')
  .map(([name, bytes]) => [name, readVector(bytes)] as const)
const used = all.filter(([, { skipped }]) => !skipped)
t.ok(used.length >= 60, `${used.length} of ${all.length} vectors are used`)

for (const [name, vector] of used) {
  t.test(name, async (t) => {
    const expected = vector.expect === 'HMAC failure' ? 'header failure' : vector.expect
    for (const pieces of [vector.file.length, 1021]) {
      const { outcome, passed } = await decrypt(vector, pieces)
      t.equal(outcome, expected, `in pieces of ${pieces}`)
      if (vector.payload === undefined) continue
      // The vectors are for readers that do not know the length, which pass on a chunk before they miss the last one.
      const earlier = outcome === 'payload failure' && passed.length % CHUNK_BYTES === 0
      t.ok(earlier || sha256Of(passed) === vector.payload, 'nothing else was passed on')
    }
  })
}

t.test('what the vectors decrypt to becomes the same files again', async (t) => {
  for (const [name, vector] of used.filter(([, { expect }]) => expect === 'success')) {
    const { file, identities } = vector
    const end = headerEnd(file) ?? 0
    const fileKey = (await openHeader(file.subarray(0, end), identities)) as Buffer
    const payload = file.subarray(end)
    const key = payloadKey(fileKey, payload.subarray(0, NONCE_BYTES))
    const content = [...new PayloadDecrypter(key, payload.length).take(payload.subarray(NONCE_BYTES))]
    const size = content.reduce((sum, { length }) => sum + length, 0)
    t.equal(sizeInPayload(payload.length), size, name)
    t.equal(payloadLength(size), payload.length)
    const encrypter = new PayloadEncrypter(key)
    const chunks = content.flatMap((bytes) => [...encrypter.take(bytes)])
    t.ok(Buffer.concat([...chunks, encrypter.end()]).equals(payload.subarray(NONCE_BYTES)))
  }
})
