import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import {
  type ChecksumAlgorithm,
  checksumAlgorithms,
  checksumHeader,
  createChecksum,
  prepareChecksum,
} from '../../common/checksums/checksums.js'
import { bytes, KiB, md5, sha256 } from '../support/content/content.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'
import { signedChunks, unsignedChunks } from '../support/sign/chunks.js'
import { exchange, headText } from '../support/sign/raw.js'
import {
  type Answer,
  answerTo,
  open,
  type Sending,
  send,
  sign,
  targetOf,
  UNSIGNED_PAYLOAD,
} from '../support/sign/send.js'

for (const algorithm of checksumAlgorithms) await prepareChecksum(algorithm)

/** docs/design.md, promises 1 and 2: nothing unverified is ever stored, and a failed PUT leaves the old object. */

const BUCKET = 'unverified'
const STREAMING = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD'
const STREAMING_TRAILER = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER'
const UNSIGNED_TRAILER = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER'

type Put = (server: Dealgate, target: string, body: Buffer) => Promise<Pick<Answer, 'status' | 'code'> | undefined>

/**
 * A PUT that must not take effect. Of the error codes any will do; none: the connection may just end.
 * test/src/http/body and test/src/s3/what-clients-send have all that can be wrong with the framing: a few forms of it
 * stand for them here.
 */
type Bad = readonly [name: string, codes: readonly string[], put: Put]

const flipped = (data: Buffer) => {
  const copy = Buffer.from(data)
  copy[copy.length - 1] = (copy.at(-1) ?? 0) ^ 1
  return copy
}

const sumOf = (algorithm: ChecksumAlgorithm, data: Buffer) => {
  const checksum = createChecksum(algorithm)
  checksum.update(data)
  return checksum.digest()
}

/** Sends the head and some of the body, then lets go in the way `end` says; resolves to what came back. */
async function sendPartly(
  server: Dealgate,
  target: string,
  headers: Record<string, string>,
  part: Buffer,
  end: 'half-close' | 'reset',
): Promise<Pick<Answer, 'status' | 'code'> | undefined> {
  const signed = sign(server, { method: 'PUT', target, headers, payloadHash: UNSIGNED_PAYLOAD })
  const { text } = await exchange(server, (socket) => {
    socket.write(headText('PUT', target, signed.headers))
    socket.write(part, () => (end === 'half-close' ? socket.end() : socket.resetAndDestroy()))
  })
  if (text === '') return undefined
  return { status: Number(text.slice(9, 12)), code: /<Code>(\w+)</.exec(text)?.[1] }
}

/** A PUT that is whole, and wrong in what it says of its body. */
const lying =
  (lie: (body: Buffer) => Partial<Sending>): Put =>
  (server, target, body) =>
    send(server, { method: 'PUT', target, body, ...lie(body) })

/** An aws-chunked PUT of what `build` makes of the body. */
const chunked =
  (
    payloadHash: string,
    trailer: string | undefined,
    build: (body: Buffer, signed: ReturnType<typeof sign>) => Buffer,
  ): Put =>
  async (server, target, body) => {
    const headers: Record<string, string> = {
      'content-encoding': 'aws-chunked',
      'x-amz-decoded-content-length': String(body.length),
      ...(trailer ? { 'x-amz-trailer': trailer } : {}),
    }
    const signed = sign(server, { method: 'PUT', target, headers, payloadHash })
    const sent = build(body, signed)
    const request = open(server, 'PUT', target, { ...signed.headers, 'content-length': String(sent.length) })
    const answer = answerTo(request)
    request.end(sent)
    return answer
  }

const wrongMd5 = (body: Buffer) => ({ 'content-md5': Buffer.from(md5(flipped(body)), 'hex').toString('base64') })

/** The last signature of chunks begins with zeros. */
function withSignature(sent: Buffer, mark: string): Buffer {
  const text = sent.toString('latin1')
  const at = text.lastIndexOf(mark) + mark.length
  return Buffer.from(`${text.slice(0, at)}00000000${text.slice(at + 8)}`, 'latin1')
}

const CRC32 = 'x-amz-checksum-crc32'

const badOnes = (algorithms: readonly ChecksumAlgorithm[]): readonly Bad[] => [
  ['a wrong payload hash', ['XAmzContentSHA256Mismatch'], lying(() => ({ payloadHash: sha256('other') }))],
  ['a wrong Content-MD5', ['BadDigest'], lying((body) => ({ headers: wrongMd5(body) }))],
  ...algorithms.flatMap((algorithm): Bad[] => {
    const header = checksumHeader(algorithm)
    const wrong = (body: Buffer) => sumOf(algorithm, flipped(body))
    const trailing = (body: Buffer) => unsignedChunks(body, { trailer: [`${header}:${wrong(body)}`] })
    return [
      [`a wrong ${algorithm} header`, ['BadDigest'], lying((body) => ({ headers: { [header]: wrong(body) } }))],
      [`a wrong ${algorithm} trailer`, ['BadDigest'], chunked(UNSIGNED_TRAILER, header, trailing)],
    ]
  }),
  [
    'a trailer with a wrong signature',
    ['SignatureDoesNotMatch'],
    chunked(STREAMING_TRAILER, CRC32, (body, signed) => {
      const sent = signedChunks(signed, body, { trailer: [`${CRC32}:${sumOf('CRC32', body)}`] })
      return withSignature(sent, 'trailer-signature:')
    }),
  ],
  [
    'a chunk whose bytes were changed',
    ['SignatureDoesNotMatch'],
    chunked(STREAMING, undefined, (body, signed) => {
      const sent = signedChunks(signed, body)
      const at = sent.lastIndexOf(body.subarray(-20)) + 5
      sent[at] = (sent[at] ?? 0) ^ 1
      return sent
    }),
  ],
  [
    'a truncated chunk',
    ['IncompleteBody'],
    chunked(UNSIGNED_TRAILER, undefined, (body) => unsignedChunks(body).subarray(0, -100)),
  ],
  [
    'a body shorter than declared, then silence',
    ['IncompleteBody'],
    (server, target, body) =>
      sendPartly(server, target, { 'content-length': String(body.length + 1) }, body, 'half-close'),
  ],
  [
    'a client that dies in the middle of a body',
    [],
    (server, target, body) => {
      const headers = { 'content-length': String(body.length) }
      return sendPartly(server, target, headers, body.subarray(0, -1), 'reset')
    },
  ],
  [
    'a client that dies in a body of unknown length',
    [],
    (server, target, body) => {
      const sent = Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')])
      return sendPartly(server, target, { 'transfer-encoding': 'chunked' }, sent, 'reset')
    },
  ],
]

/** Neither the gateway nor the size of a body has to do with the algorithm: elsewhere, one stands for all. */
const ONE: readonly ChecksumAlgorithm[] = ['CRC32']

inEachMode(t, async (t, server) => {
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  // One size is collected and sent in one piece, the other is streamed with its end held back.
  for (const [size, algorithms] of [
    [100 * KiB, server.mode === 'full' ? checksumAlgorithms : ONE],
    [700 * KiB, ONE],
  ] as const)
    await t.test(`PUT of ${size} bytes`, (t) => puts(t, server, size, badOnes(algorithms)))
  await t.test('a part that fails leaves the part before it', (t) => parts(t, server))
  await t.test('bytes beyond the declared length are no part of the object', (t) => excess(t, server))
})

async function puts(t: Test, server: Dealgate, size: number, bad: readonly Bad[]): Promise<void> {
  const target = targetOf(BUCKET, `old-${size}`)
  const fresh = targetOf(BUCKET, `fresh-${size}`)
  const old = bytes(`old ${size}`, size + 3)
  const headers = { 'content-type': 'x/old', 'x-amz-meta-age': 'old' }
  t.equal((await send(server, { method: 'PUT', target, body: old, headers })).status, 200)
  const data = bytes(`new ${size}`, size)
  for (const [name, codes, put] of bad) {
    for (const at of [target, fresh]) {
      const mark = randomUUID()
      const answer = await put(server, `${at}?x-job=${mark}`, data)
      if (codes.length > 0) {
        t.ok(codes.includes(answer?.code ?? ''), `${name} is refused with ${codes.join(' or ')}, got ${answer?.code}`)
        t.ok((answer?.status ?? 0) >= 400 && (answer?.status ?? 0) < 600, name)
      }
      await server.untilEnded(mark)
    }
    const kept = await send(server, { method: 'GET', target })
    t.equal(kept.status, 200)
    t.equal(sha256(kept.body), sha256(old), `${name} leaves the old bytes`)
    t.match(kept.headers, { etag: `"${md5(old)}"`, 'content-type': 'x/old', 'x-amz-meta-age': 'old' })
    t.equal((await send(server, { method: 'HEAD', target: fresh })).status, 404, `${name} makes no object`)
  }
  const listing = await send(server, { method: 'GET', target: `/${BUCKET}?list-type=2&prefix=fresh-` })
  t.match(listing.body.toString(), '<KeyCount>0</KeyCount>')
}

async function parts(t: Test, server: Dealgate): Promise<void> {
  const target = targetOf(BUCKET, 'in-parts')
  const created = await send(server, { method: 'POST', target: `${target}?uploads` })
  const id = /<UploadId>([^<]+)</.exec(created.body.toString())?.[1]
  const part = `${target}?partNumber=1&uploadId=${id}`
  const old = bytes('old part', 10 * KiB)
  t.equal((await send(server, { method: 'PUT', target: part, body: old })).status, 200)
  for (const [name, , put] of badOnes(ONE)) {
    const mark = randomUUID()
    await put(server, `${part}&x-job=${mark}`, bytes('new part', 11 * KiB))
    await server.untilEnded(mark)
    const listed = (await send(server, { method: 'GET', target: `${target}?uploadId=${id}` })).body.toString()
    t.match(listed, `<ETag>&quot;${md5(old)}&quot;</ETag><Size>${old.length}</Size>`, name)
  }
  t.equal((await send(server, { method: 'DELETE', target: `${target}?uploadId=${id}` })).status, 204)
}

async function excess(t: Test, server: Dealgate): Promise<void> {
  const target = targetOf(BUCKET, 'excess')
  const data = bytes('excess', 1000)
  const signed = sign(server, {
    method: 'PUT',
    target,
    headers: { 'content-length': '1000' },
    payloadHash: UNSIGNED_PAYLOAD,
  })
  const { text } = await exchange(server, (socket) => {
    socket.write(headText('PUT', target, signed.headers))
    socket.write(Buffer.concat([data, Buffer.from('and more than that\r\n\r\n')]))
  })
  t.match(text, /^HTTP\/1\.1 200 [^<]*$/, 'what follows is no request')
  t.same((await send(server, { method: 'GET', target })).body, data)
}
