import { deepEqual, equal, rejects } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { S3Error } from '../../../../common/errors/s3-error.js'
import { credentialScope, formatTimestamp, signature, signingKey } from '../../../../common/sigv4.js'
import type { RequestBody } from '../../../../src/api/request.js'
import { createFormAuthenticator } from '../../../../src/auth/authenticate-form.js'
import { FormFields } from '../../../../src/http/form/form-fields.js'
import { checkPolicy, readPolicy } from '../../../../src/http/form/form-policy.js'
import { FormStream } from '../../../../src/http/form/form-stream.js'
import { FileSource } from '../../../../src/http/form/read-form.js'

const BOUNDARY = 'xBOUNDARYx'
// biome-ignore lint/suspicious/noTemplateCurlyInString: S3's variable, word for word
const FILENAME = '${filename}'
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`

interface Part {
  readonly name: string
  readonly value: Buffer | string
  readonly filename?: string
}

function form(parts: readonly Part[], end = `--${BOUNDARY}--\r\n`): Buffer {
  const pieces = parts.flatMap(({ name, value, filename }) => {
    const file = filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: application/octet-stream`
    return [`--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`, value, '\r\n']
  })
  return Buffer.concat([...pieces, end].map((piece) => Buffer.from(piece)))
}

/** A body that comes in these pieces, then perhaps fails. */
function bodyOf(pieces: readonly Buffer[], failure?: Error): RequestBody & { taken: number } {
  const body = {
    length: undefined,
    declaredChecksum: undefined,
    declaredMd5: undefined,
    received: 0,
    empty: false,
    taken: 0,
    async stream(sink: (chunk: Buffer) => void | Promise<void>) {
      for (const piece of pieces) {
        await sink(Buffer.from(piece))
        body.taken++
        await new Promise(setImmediate)
      }
      if (failure) throw failure
      return { size: 0 }
    },
    collect: () => Promise.reject(new Error('not here')),
  }
  return body
}

const NOTHING = { sha256: undefined, md5: undefined, checksum: undefined, trailer: undefined }
const ANY = { min: 0, max: Number.MAX_SAFE_INTEGER }

async function receive(body: RequestBody, more: { type?: string; declared?: object; size?: typeof ANY } = {}) {
  const stream = new FormStream(body, more.type ?? TYPE)
  try {
    const file = await stream.file
    if (!file) {
      await stream.ended
      return { fields: Object.fromEntries(stream.fields.entries()), file: undefined }
    }
    const pieces: Buffer[] = []
    const source = new FileSource(stream, file, { ...NOTHING, ...more.declared }, more.size ?? ANY)
    const take = async (chunk: Buffer) => {
      await new Promise(setImmediate)
      pieces.push(chunk)
    }
    const facts = await source.stream(take, { md5: true })
    const fields = Object.fromEntries(stream.fields.entries())
    return { fields, filename: file.filename, file: Buffer.concat(pieces), facts }
  } catch (error) {
    stream.stop(error as Error)
    throw error
  }
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [0, ...[...at].map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end))
}

t.test('a form is read the same however it is split', async () => {
  const text = fc
    .string({ unit: fc.constantFrom('a', '-', '\r', '\n', 'é', '😀', '"', BOUNDARY), maxLength: 12 })
    .filter((value) => !value.includes(`--${BOUNDARY}`))
  const name = fc.stringMatching(/^[a-z][a-z-]{0,10}$/).filter((name) => name !== 'file')
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(name, text, { maxKeys: 5, noNullPrototype: true }),
      fc.uint8Array({ maxLength: 3000 }).map((bytes) => Buffer.from(bytes)),
      fc.array(fc.nat(), { maxLength: 20 }),
      fc.boolean(),
      async (fields, content, at, trailing) => {
        const parts: Part[] = Object.entries(fields).map(([name, value]) => ({ name, value }))
        parts.push({ name: 'file', value: content, filename: 'fi lé.txt' })
        if (trailing) parts.push({ name: 'late', value: 'ignored' })
        const { facts, ...got } = await receive(bodyOf(cut(form(parts), at)))
        deepEqual(got, { fields, filename: 'fi lé.txt', file: content })
        deepEqual(facts?.md5, createHash('md5').update(content).digest())
      },
    ),
    { numRuns: 300 },
  )
})

t.test('a form that is cut anywhere, or whose connection breaks, gives no file', async () => {
  const whole = form([
    { name: 'key', value: 'k' },
    { name: 'file', value: 'content of the file', filename: 'f' },
  ])
  // The last boundary needs no line end.
  for (let length = 0; length < whole.length - 2; length++) {
    const received = receive(bodyOf([whole.subarray(0, length)]))
    await rejects(received, { code: 'MalformedPOSTRequest' }, `cut at ${length}`)
    const lost = new S3Error('IncompleteBody')
    const broken = receive(bodyOf(cut(whole.subarray(0, length), [length / 2]), lost))
    equal(await broken.catch((thrown) => thrown), lost, `broken at ${length}`)
  }
})

t.test('the client waits while the form is looked at, and is let go when it is refused', async (t) => {
  const whole = form([{ name: 'file', value: Buffer.alloc(100_000), filename: 'f' }])
  const pieces = cut(whole, [50, 200, 500, 5000, 50_000])
  const body = bodyOf(pieces)
  const stream = new FormStream(body, TYPE)
  t.ok(await stream.file)
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.ok(body.taken < 3, `${body.taken} of ${pieces.length} pieces taken`)
  const refusal = new S3Error('AccessDenied')
  stream.stop(refusal)
  t.equal(await stream.ended.catch((error) => error), refusal)
})

t.test('forms that are refused', async (t) => {
  const file: Part = { name: 'file', value: 'x', filename: 'f' }
  const many = Array.from({ length: 30 }, (_, i) => ({ name: `a${i}`, value: 'x'.repeat(1000) }))
  const refused: [string, readonly Part[]][] = [
    ['MaxPostPreDataLengthExceededError', [{ name: 'a', value: 'x'.repeat(21_000) }, file]],
    ['MaxPostPreDataLengthExceededError', [{ name: 'a', value: 'x'.repeat(2_000_000) }, file]],
    ['MaxPostPreDataLengthExceededError', many],
    ['MaxPostPreDataLengthExceededError', [file, { name: 'late', value: 'x'.repeat(2_000_000) }]],
    ['InvalidArgument', [{ name: 'key', value: 'a' }, { name: 'KEY', value: 'a' }, file]],
    ['InvalidArgument', [{ name: 'key', value: Buffer.from([0x61, 0xff]) }, file]],
    ['MaxPostPreDataLengthExceededError', [{ name: 'photo', value: 'x'.repeat(21_000), filename: 'f' }, file]],
    ['InvalidArgument', [file, { ...file }]],
    ['EntityTooLarge', [{ name: 'file', value: 'x'.repeat(1_048_577) }]],
  ]
  const everyPiece = Array.from({ length: 40 }, (_, i) => i * 65_536)
  for (const [code, parts] of refused) {
    const names = parts.map(({ name }) => name).join()
    await t.rejects(receive(bodyOf(cut(form(parts), everyPiece))), { code }, `${code} ${names.slice(0, 40)}`)
  }
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', '', undefined])
    t.throws(() => new FormStream(bodyOf([]), type), { code: 'PreconditionFailed' })
  t.throws(() => new FormStream(bodyOf([]), 'multipart/form-data'), { code: 'MalformedPOSTRequest' })
  t.equal((await receive(bodyOf([form([{ name: 'key', value: 'k' }])]))).file, undefined, 'no file')
  const asText = await receive(bodyOf([form([{ name: 'file', value: 'as text' }])]))
  t.match(asText, { file: Buffer.from('as text'), filename: '' })
})

t.test('the name of the file does not make fields longer than they may be', async (t) => {
  const fields = new FormFields()
  fields.add('policy', FILENAME)
  fields.add('Cache-Control', FILENAME.repeat(200))
  t.doesNotThrow(() => fields.substitute('x'.repeat(50)))
  const grown = new FormFields()
  grown.add('Cache-Control', FILENAME.repeat(200))
  t.throws(() => grown.substitute('x'.repeat(200)), { code: 'MaxPostPreDataLengthExceededError' })
})

t.test('fields', async (t) => {
  const fields = new FormFields()
  fields.add('Key', `up/${FILENAME}`)
  fields.add('policy', FILENAME)
  fields.add('x-amz-meta-from', `${FILENAME} é`)
  fields.add('Content-Type', 'text/plain')
  fields.add('acl', 'private')
  fields.add('x-amz-signature', 'no header')
  fields.add('submit', 'no header')
  fields.substitute('a$&b.txt')
  t.equal(fields.get('key'), 'up/a$&b.txt')
  t.equal(fields.get('policy'), FILENAME)
  t.same(fields.headers(), {
    'x-amz-meta-from': Buffer.from('a$&b.txt é').toString('latin1'),
    'content-type': 'text/plain',
    'x-amz-acl': 'private',
  })
  for (const [name, value] of [
    ['x-amz-meta-a', 'a\r\nx-evil: 1'],
    ['x-amz-meta-a b', 'a'],
    ['cache-control', '\0'],
  ] as const) {
    const bad = new FormFields()
    bad.add(name, value)
    t.throws(() => bad.headers(), { code: 'InvalidArgument' }, JSON.stringify(value))
  }
})

const encode = (policy: unknown) =>
  Buffer.from(typeof policy === 'string' ? policy : JSON.stringify(policy)).toString('base64')
const expiration = '2030-01-01T00:00:00.000Z'
const NOW = Date.parse('2029-12-31T00:00:00Z')

t.test('policy documents that are none', async (t) => {
  const conditions = [
    [{}, [[]], ['eq'], [null], [['eq', 'key', 'a']], [['like', '$key', 'a']], [['eq', '$key']], [['eq', '$key', {}]]],
    [[{}], [{ key: null }], [['content-length-range', 1]], [['content-length-range', -1, 5]]],
    [[['content-length-range', 5, 1]], [['content-length-range', 0, 'x']]],
  ].flat()
  for (const bad of [
    ...['', '[]', 'null', '{'],
    ...[{ conditions: [] }, { expiration }, { EXPIRATION: expiration, conditions: [] }],
    ...['2030-01-01', '2030-13-01T00:00:00Z', 5].map((expiration) => ({ expiration, conditions: [] })),
    ...conditions.map((conditions) => ({ expiration, conditions })),
  ])
    t.throws(() => readPolicy(encode(bad)), { code: 'InvalidPolicyDocument' }, JSON.stringify(bad))
  const deep = `{"expiration":"2030-01-01T00:00:00Z","conditions":${'['.repeat(200_000)}${']'.repeat(200_000)}}`
  t.throws(() => readPolicy(Buffer.from(deep).toString('base64')), { code: 'InvalidPolicyDocument' }, 'deep nesting')
  t.throws(() => readPolicy('~~~'), { code: 'InvalidPolicyDocument' })
  const started = process.cpuUsage()
  t.throws(() => readPolicy(`${' '.repeat(60_000)}~`), { code: 'InvalidPolicyDocument' })
  // Time that grows with the square of the length would be seconds.
  t.ok(process.cpuUsage(started).user < 1_000_000)
  const lines = encode({ expiration, conditions: [] }).replace(/.{20}/g, '$&\r\n')
  t.same(readPolicy(`${lines} \n`).conditions, [], 'in lines, as some tools write it')
  t.throws(() => readPolicy(Buffer.from([0x22, 0xff, 0x22]).toString('base64')), { code: 'InvalidPolicyDocument' })
})

t.test('what a policy lets a form do', async (t) => {
  const check = (conditions: unknown[], fields: Record<string, string>, now = NOW) =>
    checkPolicy(readPolicy(encode({ expiration, conditions })), new Map(Object.entries(fields)), now)
  const allowed: [unknown[], Record<string, string>][] = [
    [[{ bucket: 'b' }, ['eq', '$key', 'k']], { bucket: 'b', key: 'k', policy: 'p', file: 'f', 'x-amz-signature': 's' }],
    [[{ BUCKET: 'b' }, ['STARTS-WITH', '$Key', 'u/']], { bucket: 'b', key: 'u/k', 'x-ignore-me': 'x' }],
    [[['STARTS-WITH', '$Key', 'u/']], { key: 'u/k', 'x-cloud-signature': 's' }],
    [[['starts-with', '$key', '']], { key: 'anything' }],
    [[['starts-with', '$key', '']], {}],
    [[['starts-with', '$Content-Type', 'image/']], { 'content-type': 'image/png, image/gif' }],
    [[{ success_action_status: 201 }], { success_action_status: '201' }],
    [[['eq', '\\$key', '\\$foo']], { key: '\\$foo' }],
  ]
  for (const [conditions, fields] of allowed)
    t.doesNotThrow(() => check(conditions, fields), JSON.stringify([conditions, fields]))
  const refused: [unknown[], Record<string, string>][] = [
    [[['eq', '$key', 'k']], { key: 'K' }],
    [[['eq', '$key', 'k']], {}],
    [[{ key: 'k' }], { key: 'k', bucket: 'b' }],
    [[{ key: 'k' }], { key: 'k', 'x-amz-meta-a': '' }],
    [[['starts-with', '$key', 'u/']], { key: 'v/u/' }],
    [[['starts-with', '$x-amz-meta-a', 'x']], {}],
    [[['starts-with', '$Content-Type', 'image/']], { 'content-type': 'image/png, text/html' }],
    [['a', 'ab'].map((beginning) => ['starts-with', '$key', beginning]), { key: 'ac' }],
  ]
  for (const [conditions, fields] of refused)
    t.throws(() => check(conditions, fields), { code: 'AccessDenied' }, JSON.stringify([conditions, fields]))
  t.throws(() => check([], {}, Date.parse(expiration) + 1), { code: 'AccessDenied', message: /expired/ })
  const ranges = [1, '9', 0, 5]
  const conditions = [ranges.slice(0, 2), ranges.slice(2)].map((range) => ['content-length-range', ...range])
  t.same(readPolicy(encode({ expiration, conditions })).size, { min: 1, max: 5 })
  const escaped = `{"expiration":"${expiration}","conditions":[["eq","\\$key","\\$a\\\\"]]}`
  t.same(readPolicy(encode(escaped)).conditions, [{ kind: 'eq', field: 'key', value: '$a\\' }])
})

t.test('signatures of policies', async (t) => {
  const identity = { accessKeyId: 'AKID', secretAccessKey: 'secret-of-akid' }
  const time = Date.parse('2029-12-30T12:00:00Z')
  const sign = (more: Record<string, string> = {}, brand = 'amz') => {
    const timestamp = formatTimestamp(new Date(time))
    const scope = credentialScope('20291230', 'us-east-1', 's3')
    const policy = encode({ expiration, conditions: [] })
    const key = signingKey(identity.secretAccessKey, '20291230', 'us-east-1', 's3')
    const fields = {
      ...{ policy, [`x-${brand}-algorithm`]: 'AWS4-HMAC-SHA256', [`x-${brand}-credential`]: `AKID/${scope}` },
      ...{ [`x-${brand}-date`]: timestamp, [`x-${brand}-signature`]: signature(key, policy), ...more },
    }
    return new Map(Object.entries<string>(fields).filter(([, value]) => value !== ''))
  }
  const options = { credentials: (id: string) => (id === 'AKID' ? identity : undefined), region: 'us-east-1' }
  const at = (now: number, sessionToken?: 'ignore') =>
    createFormAuthenticator({ ...options, now: () => now, sessionToken })
  const authenticate = at(time + 1000)
  t.equal(await authenticate(new Map()), undefined)
  t.equal((await authenticate(sign()))?.identity, identity)
  t.equal((await authenticate(sign({}, 'cloud')))?.identity, identity)
  const refused: [string, Record<string, string>][] = [
    ['SignatureDoesNotMatch', { 'x-amz-signature': 'short' }],
    ['SignatureDoesNotMatch', { policy: encode({ expiration, conditions: [{}] }) }],
    ['InvalidArgument', { 'x-amz-credential': 'AKID/20291230/eu-west-1/s3/aws4_request' }],
    ['InvalidArgument', { 'x-amz-credential': 'AKID/20291229/us-east-1/s3/aws4_request' }],
    ['InvalidArgument', { 'x-amz-date': '' }],
    ['InvalidArgument', { 'x-amz-algorithm': 'AWS4-HMAC-SHA1' }],
    ['InvalidArgument', { 'x-cloud-signature': 'x' }],
    ['InvalidToken', { 'x-amz-security-token': 'x' }],
    ['InvalidArgument', { 'x-amz-signature': '', awsaccesskeyid: 'AKID' }],
  ]
  for (const [code, more] of refused) await t.rejects(authenticate(sign(more)), { code }, JSON.stringify(more))
  t.ok(await at(time, 'ignore')(sign({ 'x-amz-security-token': 'x' })))
  const DAY = 24 * 60 * 60 * 1000
  t.ok(await at(time + 7 * DAY)(sign()))
  await t.rejects(at(time + 7 * DAY + 1)(sign()), { code: 'AccessDenied' })
  t.ok(await at(time - DAY / 96)(sign()))
  await t.rejects(at(time - DAY / 96 - 1)(sign()), { code: 'AccessDenied' })
})
