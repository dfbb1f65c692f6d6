import { createHash } from 'node:crypto'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { checksumAlgorithms, createChecksum, prepareChecksum } from '../../../common/checksums/checksums.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { PayloadMode } from '../../../src/api/identity.js'
import type { BodyFacts, BodyOptions } from '../../../src/api/request.js'
import { openBody } from '../../../src/http/body/open-body.js'
import { defaultLimits } from '../../../src/server/limits.js'
import { frame, signing } from '../../support/sign/chunks.js'
import { requestHead } from '../../support/sign/request-head.js'

for (const algorithm of checksumAlgorithms) await prepareChecksum(algorithm)

type Headers = Record<string, string>

interface Sent {
  payload?: PayloadMode
  headers?: Headers
  method?: string
  target?: string
  options?: BodyOptions
  maxPutBytes?: number
}

/** Sends a body in the given pieces and tells what came out of it. */
async function receive(pieces: readonly Buffer[], sent: Sent = {}): Promise<{ bytes: Buffer; facts: BodyFacts }> {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  const incoming = new IncomingMessage(new Socket())
  for (const piece of pieces) incoming.push(piece)
  incoming.push(null)
  const { kind } = sent.payload ?? { kind: 'unsigned' }
  const framed = kind === 'chunked' || (kind === 'unsigned' && sent.headers?.['content-encoding'] !== undefined)
  // Only a framed body of unknown length may leave the length of the data open.
  const sized: Headers = framed ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(length) }
  const headers = { ...sized, ...sent.headers }
  const { method = 'PUT', target = '/bucket/key' } = sent
  const head = requestHead({ method, target, headers: Object.entries(headers) })
  const limits = { ...defaultLimits, maxPutBytes: sent.maxPutBytes ?? defaultLimits.maxPutBytes }
  const body = openBody(incoming, head, sent.payload ?? { kind: 'unsigned' }, limits)
  const out: Buffer[] = []
  const facts = await body.stream((chunk) => void out.push(chunk), sent.options)
  return { bytes: Buffer.concat(out), facts }
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'none'
  } catch (error) {
    if (error instanceof S3Error) return error.code
    throw error
  }
}

async function refused(t: Test, name: string, code: string, pieces: Buffer[], sent: Sent): Promise<void> {
  t.equal(await codeOf(receive(pieces, sent)), code, name)
}

const data = Buffer.from('Welcome to Amazon S3.')
const other = Buffer.from('Welcome to Amazon S4.')
const md5Base64 = (bytes: Buffer) => createHash('md5').update(bytes).digest('base64')

function checksum(algorithm: (typeof checksumAlgorithms)[number], bytes: Buffer): string {
  const running = createChecksum(algorithm)
  running.update(bytes)
  return running.digest()
}

t.test(
  'the memory of a body is freed once all of it is used, unless the application watches the request',
  async (t) => {
    const bytes = Buffer.alloc(64 * 1024, 'x')
    const freed = async (sent: Buffer, headers: Headers, { watched = false, kept = 0 } = {}): Promise<boolean> => {
      const incoming = new IncomingMessage(new Socket())
      if (watched) incoming.on('data', () => {})
      incoming.push(sent)
      incoming.push(null)
      const head = requestHead({ method: 'PUT', target: '/bucket/key', headers: Object.entries(headers) })
      let pieces = 0
      await openBody(incoming, head, { kind: 'unsigned' }, defaultLimits).stream((_, release) => {
        if (pieces++ >= kept) release?.()
      })
      return sent.length === 0
    }
    const plain = { 'content-length': String(bytes.length) }
    const chunked = { 'content-encoding': 'aws-chunked', 'transfer-encoding': 'chunked' }
    /** With memory of its own. */
    const own = (all: Buffer) => Buffer.from(new Uint8Array(all).buffer)
    const chunks = () => own(frame([bytes, bytes]))
    t.equal(await freed(own(bytes), plain, { watched: true }), false, 'it may have kept them')
    t.equal(await freed(chunks(), chunked, { kept: 1 }), false, 'one of two chunks is still in use')
    t.equal(await freed(chunks(), chunked), true)
    t.equal(await freed(own(bytes), plain), true)
  },
)

t.test('a plain body and what is known of it', async (t) => {
  const plain = await receive([data.subarray(0, 5), data.subarray(5)])
  t.same(plain.bytes, data)
  t.same(plain.facts, { size: data.length })
  const asked = await receive([data], { options: { md5: true, checksum: 'CRC64NVME' } })
  t.equal(asked.facts.md5?.toString('base64'), md5Base64(data))
  t.same(asked.facts.checksum, { algorithm: 'CRC64NVME', value: checksum('CRC64NVME', data) })
})

t.test('length, emptiness and limits', async (t) => {
  const open = (headers: Headers, payload: PayloadMode = { kind: 'unsigned' }) => {
    const head = requestHead({ method: 'PUT', target: '/b/k', headers: Object.entries(headers) })
    return openBody(new IncomingMessage(new Socket()), head, payload, defaultLimits)
  }
  const chunked: PayloadMode = { kind: 'chunked', signing: undefined, trailer: true }
  t.match(open({}), { length: 0, empty: true, declaredChecksum: undefined })
  t.match(open({ 'content-length': '0' }), { length: 0, empty: true })
  t.match(open({ 'content-length': '7' }), { length: 7, empty: false })
  t.throws(() => open({ 'transfer-encoding': 'gzip, chunked' }), { code: 'NotImplemented' })
  t.match(open({ 'transfer-encoding': 'chunked' }), { length: undefined, empty: false })
  t.match(open({ 'content-length': '90', 'x-amz-decoded-content-length': '7' }, chunked), { length: 7 })
  t.match(open({ 'transfer-encoding': 'chunked' }, chunked), { length: undefined, empty: false })
  t.match(open({ 'x-amz-trailer': 'x-amz-checksum-crc32c' }, chunked), { declaredChecksum: 'CRC32C' })
  t.match(open({}, { kind: 'buffered', bytes: data }), { length: data.length, empty: false })
  t.same((await open({}, { kind: 'buffered', bytes: data }).collect(100)).bytes, data)
  t.equal(await codeOf(open({}, { kind: 'buffered', bytes: data }).collect(20)), 'MaxMessageLengthExceeded')
  t.same(await open({}).stream(() => void t.fail('no bytes')), { size: 0 })
  t.throws(() => open({}, { ...chunked, signing }), { code: 'MissingContentLength' })
  t.throws(() => open({ 'content-length': '90' }, chunked), { code: 'MissingContentLength' })
  for (const bad of ['', '-1', '1.5', 'x', '99999999999999999'])
    t.throws(() => open({ 'x-amz-decoded-content-length': bad }, chunked), { code: 'MissingContentLength' }, bad)
  await refused(t, 'declared too large', 'EntityTooLarge', [data], { maxPutBytes: 20 })
  await refused(t, 'too large, undeclared', 'EntityTooLarge', [frame([data])], { maxPutBytes: 20, payload: chunked })
  const twice = open({})
  await twice.collect(1)
  await t.rejects(twice.collect(1), /only once/)
})

const docData = Buffer.alloc(66_560, 'a')

/** Body of the examples in Amazon's documentation: 64 KiB, 1 KiB and the end, with the signatures printed there. */
function documented(signatures: [string, string, string], trailer = ''): Buffer {
  const [first, second, last] = signatures
  return Buffer.concat([
    Buffer.from(`10000;chunk-signature=${first}\r\n`),
    docData.subarray(0, 65_536),
    Buffer.from(`\r\n400;chunk-signature=${second}\r\n`),
    docData.subarray(65_536),
    Buffer.from(`\r\n0;chunk-signature=${last}\r\n${trailer}\r\n`),
  ])
}

t.test("AWS's examples of chunked uploads", async (t) => {
  const headers = { 'x-amz-decoded-content-length': '66560' }
  const signed = documented([
    'ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648',
    '0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497',
    'b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9',
  ])
  t.equal(signed.length, 66_824, 'as long as the documentation says')
  const payload: PayloadMode = { kind: 'chunked', signing, trailer: false }
  t.same((await receive([signed], { payload, headers })).bytes, docData)

  const withTrailer = documented(
    [
      'b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2',
      '1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7',
      '2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992',
    ],
    'x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n',
  )
  const { facts } = await receive([withTrailer], {
    payload: {
      kind: 'chunked',
      trailer: true,
      signing: { ...signing, seedSignature: '106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e' },
    },
    headers: { ...headers, 'x-amz-trailer': 'x-amz-checksum-crc32c' },
  })
  t.same(facts, { size: 66_560, checksum: { algorithm: 'CRC32C', value: 'sOO8/Q==' } })
})

/** Of every signed chunk but the last one with data. */
const MIN_SIGNED = 8192

interface Form {
  name: string
  body(chunks: readonly Buffer[]): Buffer
  sent(content: Buffer): Sent
}

const crcTrailer = (content: Buffer) => `x-amz-checksum-crc32:${checksum('CRC32', content)}`
const trailing = { 'x-amz-trailer': 'x-amz-checksum-crc32' }
const decoded = (content: Buffer) => ({ 'x-amz-decoded-content-length': String(content.length) })

const forms: Form[] = [
  {
    name: 'signed',
    body: (chunks) => frame(chunks, { signing }),
    sent: (content) => ({ payload: { kind: 'chunked', signing, trailer: false }, headers: decoded(content) }),
  },
  ...(['crlf', 'minio'] as const).flatMap((style): Form[] => [
    {
      name: `signed with trailer, ${style}`,
      body: (chunks) => frame(chunks, { signing, style, trailer: crcTrailer(Buffer.concat(chunks)) }),
      sent: (content) => ({
        payload: { kind: 'chunked', signing, trailer: true },
        headers: { ...decoded(content), ...trailing },
      }),
    },
    {
      name: `unsigned with trailer, ${style}`,
      body: (chunks) => frame(chunks, { style, trailer: crcTrailer(Buffer.concat(chunks)) }),
      sent: () => ({ payload: { kind: 'chunked', signing: undefined, trailer: true }, headers: trailing }),
    },
  ]),
  {
    name: 'no trailer announced and none there',
    body: (chunks) => frame(chunks),
    sent: (content) => ({ payload: { kind: 'chunked', signing: undefined, trailer: true }, headers: decoded(content) }),
  },
]

function split(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b)
  return at.slice(1).map((end, i) => bytes.subarray(at[i], end))
}

/** Chunks that are large enough where each is signed, with the same bytes ahead. */
function sized(form: Form, chunks: readonly Buffer[]): Buffer[] {
  const least = form.name.startsWith('signed') ? MIN_SIGNED : 0
  return chunks.map((chunk, i) =>
    i < chunks.length - 1 ? Buffer.concat([chunk, Buffer.alloc(Math.max(0, least - chunk.length))]) : chunk,
  )
}

/** All positions in framing, and some in the midst of the data of a large chunk. */
function places(whole: Buffer): number[] {
  return Array.from(whole, (_, i) => i).filter((i) => i < 200 || i > MIN_SIGNED - 50 || i % 97 === 0)
}

const chunksOfData = fc.array(
  fc.uint8Array({ minLength: 1, maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  { maxLength: 5 },
)

for (const form of forms) {
  t.test(`${form.name}: any split of the stream gives the same bytes`, async (t) => {
    await fc.assert(
      fc.asyncProperty(chunksOfData, fc.array(fc.nat(), { maxLength: 12 }), async (any, cuts) => {
        const chunks = sized(form, any)
        const content = Buffer.concat(chunks)
        const { bytes, facts } = await receive(split(form.body(chunks), cuts), form.sent(content))
        return bytes.equals(content) && facts.size === content.length
      }),
      { numRuns: 200 },
    )
    const two = sized(form, [data, other])
    const content = Buffer.concat(two)
    const whole = form.body(two)
    const single = Array.from(whole, (_, i) => whole.subarray(i, i + 1))
    t.same((await receive(single, form.sent(content))).bytes, content)
    for (const at of places(whole)) {
      const { facts } = await receive(split(whole, [at]), form.sent(content))
      if (facts.size !== content.length) t.fail(`cut at ${at}`)
    }
  })

  t.test(`${form.name}: every truncation is refused`, async (t) => {
    const two = sized(form, [data, other])
    const whole = form.body(two)
    // Without the very last empty line nothing is missing.
    for (const length of places(whole).filter((length) => length < whole.length - 2)) {
      const code = await codeOf(receive([whole.subarray(0, length)], form.sent(Buffer.concat(two))))
      // What stands before an empty line that ends nothing may be complete as well.
      if (code === 'none')
        t.ok(form.name.includes('minio') && whole.subarray(length).toString().trim() === '', `${length}`)
      else if (!/^(IncompleteBody|InvalidRequest|MalformedTrailerError|SignatureDoesNotMatch)$/.test(code))
        t.fail(`${length}: ${code}`)
    }
  })

  t.test(`${form.name}: no changed byte passes unless it changes nothing`, async (t) => {
    const two = sized(form, [data, other])
    const content = Buffer.concat(two)
    const whole = form.body(two)
    const lastHeader = whole.lastIndexOf('\r\n0') + 2
    const trailerAt = whole.indexOf('\n', lastHeader) + 1
    const unprotected = (i: number) => i >= trailerAt || form.name.startsWith('no trailer')
    for (const i of places(whole)) {
      for (const flip of [0x01, 0x20, 0x80]) {
        const bent = Buffer.from(whole)
        bent[i] = (bent[i] as number) ^ flip
        const outcome = await receive([bent], form.sent(content)).then(
          ({ bytes }) => bytes,
          (error: unknown) => {
            if (error instanceof S3Error) return undefined
            throw error
          },
        )
        if (outcome === undefined) continue
        if (!unprotected(i)) t.fail(`byte ${i} ^ ${flip} passed`)
        else if (i >= trailerAt && !outcome.equals(content)) t.fail(`byte ${i} ^ ${flip} changed the data`)
      }
    }
  })
}

t.test('framing that is wrong', async (t) => {
  const unsigned: Sent = { payload: { kind: 'chunked', signing: undefined, trailer: true } }
  const text = (body: string) => [Buffer.from(body)]
  const cases: [string, string, string][] = [
    ['size is no number', 'IncompleteBody', 'x\r\n'],
    ['size is 0x1', 'IncompleteBody', '0x1\r\na\r\n0\r\n\r\n'],
    ['size is beyond safe integers', 'IncompleteBody', 'ffffffffffffff\r\n'],
    ['header ends with LF alone', 'IncompleteBody', '1\na\r\n0\r\n\r\n'],
    ['header is long', 'IncompleteBody', `1;${'x'.repeat(600)}\r\n`],
    ['header never ends', 'IncompleteBody', '1'.repeat(100_000)],
    ['data longer than its size', 'IncompleteBody', '1\r\nab\r\n0\r\n\r\n'],
    ['data without CR LF', 'IncompleteBody', '1\r\na0\r\n\r\n'],
    ['no last chunk', 'IncompleteBody', '1\r\na\r\n'],
    ['trailer not announced', 'MalformedTrailerError', '1\r\na\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n'],
    ['trailer is long', 'IncompleteBody', `0\r\n${'x'.repeat(5000)}`],
  ]
  for (const [name, code, body] of cases) await refused(t, name, code, text(body), unsigned)
  t.same((await receive(text('1;any=thing\r\na\r\n0\r\n\r\n'), unsigned)).bytes.toString(), 'a', 'an extension')

  const short = { ...unsigned, headers: { 'x-amz-decoded-content-length': '5' } }
  await refused(t, 'fewer bytes than declared', 'IncompleteBody', [frame([data.subarray(0, 4)])], short)
  await refused(t, 'more bytes than declared', 'IncompleteBody', [frame([data.subarray(0, 6)])], short)

  // s3/what-clients-send has more trailers, over HTTP.
  const announced = { ...unsigned, headers: trailing }
  const ended = (trailer: string) => text(`1\r\na\r\n0\r\n${trailer}\r\n`)
  const right = `x-amz-checksum-crc32:${checksum('CRC32', Buffer.from('a'))}\r\n`
  const spelled = right.replace('x-amz-checksum-crc32:', 'X-Amz-Checksum-CRC32: ')
  t.ok(await receive(ended(spelled), announced), 'another spelling of the name')
  t.ok(await receive(ended(right.replace(':', ' \t: ')), announced), 'white space around the colon')
  await refused(t, 'white space ahead of the name', 'MalformedTrailerError', ended(` ${right}`), announced)
})

t.test('signed chunks have 8 KiB at least, all but the last', async (t) => {
  const [signed, ...others] = forms as [Form, ...Form[]]
  const chunk = (bytes: number) => Buffer.alloc(bytes, 'c')
  const outcome = (form: Form, sizes: number[]) => {
    const chunks = sizes.map(chunk)
    return receive([form.body(chunks)], form.sent(Buffer.concat(chunks)))
  }
  for (const sizes of [[1], [8191], [8192, 1], [8192, 10_000, 8191]]) {
    t.equal(
      (await outcome(signed, sizes)).bytes.length,
      sizes.reduce((sum, size) => sum + size),
    )
  }
  for (const [sizes, Chunk, BadChunkSize] of [
    [[3, 2], 2, 3],
    [[8191, 8192], 2, 8191],
    [[8192, 8191, 1], 3, 8191],
  ] as const) {
    for (const form of [signed, ...others.filter(({ name }) => name.startsWith('signed'))]) {
      await t.rejects(outcome(form, [...sizes]), {
        code: 'InvalidChunkSizeError',
        status: 403,
        fields: { Chunk, BadChunkSize },
      })
    }
  }
  for (const form of others.filter(({ name }) => !name.startsWith('signed'))) {
    t.equal((await outcome(form, [1, 1, 8191, 1])).bytes.length, 8194, 'unsigned, as aws-sdk-js-v3 sends them')
  }
})

t.test('signed framing that is wrong', async (t) => {
  const signed = forms[0] as Form
  const withTrailer = forms[1] as Form
  const bent = (form: Form, from: string | RegExp, to: string) =>
    Buffer.from(form.body([data]).toString('latin1').replace(from, to), 'latin1')
  await refused(t, 'chain of another request', 'SignatureDoesNotMatch', [signed.body([data])], {
    ...signed.sent(data),
    payload: { kind: 'chunked', trailer: false, signing: { ...signing, seedSignature: '0'.repeat(64) } },
  })
  const trailerFaults: [string, RegExp, string, string][] = [
    ['signature of the trailer missing', /x-amz-trailer-signature:.*\r\n/, '', 'IncompleteBody'],
    [
      'signature of the trailer wrong',
      /x-amz-trailer-signature:./,
      'x-amz-trailer-signature:g',
      'SignatureDoesNotMatch',
    ],
    ['trailer gone, signature there', /x-amz-checksum-crc32:.*\r\n/, '', 'IncompleteBody'],
    ['both gone', /x-amz-checksum-crc32:.*\r\nx-amz-trailer-signature:.*\r\n/, '', 'MalformedTrailerError'],
    ['something behind the signature', /\r\n\r\n$/, '\r\nx-amz-meta-a:1\r\n\r\n', 'MalformedTrailerError'],
  ]
  for (const [name, from, to, code] of trailerFaults)
    await refused(t, name, code, [bent(withTrailer, from, to)], withTrailer.sent(data))
  await refused(
    t,
    'a trailer in the form that has none',
    'MalformedTrailerError',
    [withTrailer.body([data])],
    signed.sent(data),
  )
})
