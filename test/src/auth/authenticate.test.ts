import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { S3Error } from '../../../common/errors/s3-error.js'
import { EMPTY_SHA256, type Presign, presignQuery } from '../../../common/sigv4.js'
import { type Authenticate, createAuthenticator } from '../../../src/auth/authenticate.js'
import { staticCredentials } from '../../../src/auth/credentials.js'
import { anonymousPayload } from '../../../src/auth/signatures/parsed-signature.js'
import { type HeadOptions, requestHead } from '../../support/sign/request-head.js'
import { example, type SignOptions, signHead } from '../../support/sign/sign-head.js'

const credentials = staticCredentials([example])
const MINUTE = 60_000

function authenticator(now: number = example.time, signedBasePaths: string[] = []): Authenticate {
  return createAuthenticator({ credentials, region: 'us-east-1', now: () => now, signedBasePaths })
}

const host: [string, string] = ['Host', 'examplebucket.s3.amazonaws.com']
const get: HeadOptions = { target: '/bucket/key', headers: [host] }

async function refusal(promise: Promise<unknown>): Promise<S3Error> {
  const [result] = await Promise.allSettled([promise])
  if (result.status === 'fulfilled') throw new Error('was let in')
  const error: unknown = result.reason
  if (!(error instanceof S3Error)) throw error
  const shown = JSON.stringify([error.message, error.fields])
  if (shown.includes(example.secretAccessKey)) throw new Error('the secret is in the error')
  return error
}

type Options = { says?: RegExp; now?: number }
async function refused(t: Test, name: string, code: string, parts: HeadOptions, options: Options = {}) {
  const error = await refusal(authenticator(options.now)(requestHead(parts)))
  t.equal(error.code, code, name)
  if (options.says) t.match(error.message, options.says, `${name}: the message`)
  return error
}

/** The request with one header changed, added or (undefined) left out. */
function altered(parts: HeadOptions, header: string, value: string | undefined): HeadOptions {
  const rest = (parts.headers ?? []).filter(([name]) => name.toLowerCase() !== header.toLowerCase())
  return { ...parts, headers: value === undefined ? rest : [...rest, [header, value]] }
}

function authorization(parts: HeadOptions): string {
  return parts.headers?.find(([name]) => name === 'Authorization')?.[1] ?? ''
}

/** The signed example with its Authorization header edited. */
function edited(from: string | RegExp, to: string): HeadOptions {
  const signed = signHead(get)
  const value = authorization(signed).replace(from, to)
  if (value === authorization(signed)) throw new Error('the edit changed nothing')
  return altered(signed, 'Authorization', value)
}

t.test("AWS's published examples are let in", async (t) => {
  const auth = (headers: string, signature: string): [string, string] => [
    'Authorization',
    `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=${headers},Signature=${signature}`,
  ]
  const ranged = requestHead({
    target: '/test.txt',
    headers: [
      host,
      ['Range', 'bytes=0-9'],
      ['x-amz-content-sha256', EMPTY_SHA256],
      ['x-amz-date', example.timestamp],
      auth(
        'host;range;x-amz-content-sha256;x-amz-date',
        'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
      ),
    ],
  })
  t.match(await authenticator()(ranged), {
    identity: { accessKeyId: example.accessKeyId },
    presigned: false,
    payload: { kind: 'signed', sha256: EMPTY_SHA256 },
  })

  const presigned =
    '/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request' +
    '&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host' +
    '&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404'
  const ofLink = await authenticator()(requestHead({ target: presigned, headers: [host] }))
  t.match(ofLink, { presigned: true, payload: { kind: 'unsigned' } })
  const seedSignature = '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9'

  const chunked = requestHead({
    method: 'PUT',
    target: '/examplebucket/chunkObject.txt',
    headers: [
      ['Host', 's3.amazonaws.com'],
      ['x-amz-date', example.timestamp],
      ['x-amz-storage-class', 'REDUCED_REDUNDANCY'],
      ['x-amz-content-sha256', 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD'],
      ['Content-Encoding', 'aws-chunked'],
      ['x-amz-decoded-content-length', '66560'],
      ['Content-Length', '66824'],
      auth(
        'content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class',
        seedSignature,
      ),
    ],
  })
  const payload = { kind: 'chunked', trailer: false, signing: { seedSignature } }
  t.match(await authenticator()(chunked), { payload })
})

t.test('a request without a signature has no caller, and is no error', async (t) => {
  t.equal(await authenticator()(requestHead(get)), undefined)
  const plain = { target: '/b/k?Expires=1&x-amz-acl=private', headers: [host] }
  t.equal(await authenticator()(requestHead(plain)), undefined)
})

t.test('forms of payload', async (t) => {
  const kinds: [string, object][] = [
    ['UNSIGNED-PAYLOAD', { kind: 'unsigned' }],
    ['STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER', { kind: 'chunked', trailer: true, signing: Object }],
    ['STREAMING-UNSIGNED-PAYLOAD-TRAILER', { kind: 'chunked', trailer: true, signing: undefined }],
    [EMPTY_SHA256.toUpperCase(), { kind: 'signed', sha256: EMPTY_SHA256.toUpperCase() }],
  ]
  for (const [contentSha256, payload] of kinds)
    t.match((await authenticator()(requestHead(signHead(get, { contentSha256 }))))?.payload, payload, contentSha256)
  const wrong: [string, string][] = [
    ['STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD', 'NotImplemented'],
    ['STREAMING-UNSIGNED-PAYLOAD', 'NotImplemented'],
    ['abc', 'InvalidArgument'],
    [EMPTY_SHA256.slice(1), 'InvalidArgument'],
    ['unsigned-payload', 'InvalidArgument'],
  ]
  for (const [contentSha256, code] of wrong) await refused(t, contentSha256, code, signHead(get, { contentSha256 }))
})

t.test('no caller, but claims about the body: they are checked, and signed chunks are refused', async (t) => {
  const declaring = (value: string) => requestHead(altered(get, 'x-amz-content-sha256', value))
  t.same(anonymousPayload(requestHead(get)), { kind: 'unsigned' })
  t.same(anonymousPayload(declaring(EMPTY_SHA256)), { kind: 'signed', sha256: EMPTY_SHA256 })
  const unsigned = declaring('STREAMING-UNSIGNED-PAYLOAD-TRAILER')
  t.same(anonymousPayload(unsigned), { kind: 'chunked', trailer: true, signing: undefined })
  t.throws(() => anonymousPayload(declaring('STREAMING-AWS4-HMAC-SHA256-PAYLOAD')), { code: 'AccessDenied' })
  t.throws(() => anonymousPayload(declaring('STREAMING-OTHER')), { code: 'NotImplemented' })
})

t.test('X-Cloud-* in headers and query', async (t) => {
  t.ok(await authenticator()(requestHead(signHead(get, { brand: 'cloud' }))))
  const byOther = signHead(get, { brand: 'cloud', secretAccessKey: 'wrong-secret' })
  const error = await refused(t, 'wrong', 'SignatureDoesNotMatch', byOther)
  t.equal(error.fields.AWSAccessKeyId, example.accessKeyId)
  t.match((await authenticator()(requestHead(link({ brand: 'Cloud' }))))?.presigned, true)
  const both = { target: `${link({}).target}&X-Cloud-Signature=a`, headers: [host] }
  await refused(t, 'both', 'AuthorizationQueryParametersError', both)
  await refused(t, 'two dates', 'InvalidArgument', altered(signHead(get), 'x-cloud-date', '20130524T000001Z'))
})

t.test('an error does not show the key of a client', async (t) => {
  const name = 'x-amz-server-side-encryption-customer-key'
  const secret = 'c2VjcmV0IGtleSBvZiBhIGNsaWVudCwgMzIgYnl0ZXM='
  const wrong = signHead({ ...get, headers: [...(get.headers ?? []), [name, secret]] }, { secretAccessKey: 'wrong' })
  const { fields } = await refused(t, 'wrong', 'SignatureDoesNotMatch', wrong)
  t.match(fields.CanonicalRequest, `${name}:REDACTED\n`)
  const shown = Object.values(fields).map((value) => Buffer.from(String(value).replaceAll(' ', ''), 'hex'))
  t.notOk([JSON.stringify(fields), ...shown.map(String)].some((text) => text.includes(secret)))
})

// test/src/auth/oracle.test.ts has what the SDK signs, in any spelling.
t.test('what clients sign in other spellings is still verified', async (t) => {
  const accepted: [string, HeadOptions, SignOptions?][] = [
    ['reserved characters unescaped', { ...get, target: "/bucket/a+b=c!'()*@:,$&" }],
    ['path signed as sent', { ...get, target: "/bucket/a+b!'()*" }, { path: "/bucket/a+b!'()*" }],
    ['escaped slash signed as sent', { ...get, target: '/bucket/a%2Fb' }, { path: '/bucket/a%2Fb' }],
    ['query signed as sent', { ...get, target: '/bucket?versions&prefix=a' }, { query: 'versions&prefix=a' }],
    ['literal + as space', { ...get, target: '/bucket?prefix=a+b' }, { query: 'prefix=a%20b' }],
    ['repeated headers', { ...get, headers: [host, ['x-amz-meta-a', '1'], ['X-Amz-Meta-A', ' 2   3 ']] }],
  ]
  for (const [name, parts, options] of accepted)
    t.ok(await authenticator()(requestHead(signHead(parts, options))), name)
  // What the decoder of queries takes for a space was not signed as a plus.
  const plus = signHead({ ...get, target: '/bucket?prefix=a+b' }, { query: 'prefix=a%2Bb' })
  await refused(t, 'literal + as %2B', 'SignatureDoesNotMatch', plus)
})

t.test('Date stands in for x-amz-date', async (t) => {
  const parts = signHead({ ...get, headers: [host, ['Date', 'Fri, 24 May 2013 00:00:00 GMT']] })
  t.ok(await authenticator()(requestHead(parts)), 'beside it')
  const dateOnly = altered(parts, 'x-amz-date', undefined)
  t.match((await refusal(authenticator()(requestHead(dateOnly)))).message, /did not arrive: x-amz-date/)
  for (const date of ['yesterday', '24 May 2013', '2013-05-24T00:00:00Z']) {
    const unsigned = altered(altered(edited(';x-amz-date', ''), 'x-amz-date', undefined), 'Date', date)
    await refused(t, date, 'AccessDenied', unsigned, { says: /x-amz-date/ })
  }
  const noDate = altered(edited(';x-amz-date', ''), 'x-amz-date', undefined)
  await refused(t, 'no date', 'AccessDenied', noDate, { says: /x-amz-date/ })
  const byDate = altered(noDate, 'Date', 'Fri, 24 May 2013 00:00:00 GMT')
  const mismatch = await refused(t, 'Date that is not signed over', 'SignatureDoesNotMatch', byDate)
  t.match(mismatch.fields.StringToSign, /\n20130524T000000Z\n/)
  const byMail = altered(noDate, 'Date', 'Fri, 24 May 2013 00:00:00 -0000')
  const ofMail = await refused(t, 'the form that botocore writes', 'SignatureDoesNotMatch', byMail)
  t.match(ofMail.fields.StringToSign, /\n20130524T000000Z\n/)
})

// s3/malformed/signatures has more, over HTTP.
t.test('faults of the Authorization header', async (t) => {
  const M = 'AuthorizationHeaderMalformed'
  const all = authorization(signHead(get))
  const other = (value: string) => altered(get, 'Authorization', value)
  const ecdsa = edited('AWS4-HMAC-SHA256', 'AWS4-ECDSA-P256-SHA256')
  await refused(t, 'ECDSA', 'UnsupportedSignature', ecdsa, { says: /AWS4-ECDSA-P256-SHA256/ })
  for (const word of ['AWS4-HMAC-SHA256', 'hello', all.replaceAll(' ', '')])
    await refused(t, `one word, ${word}`, 'InvalidArgument', other(word), { says: /one and only one ' '/ })
  await refused(t, 'algorithm run together', 'UnsupportedSignature', other(all.replace(' ', '')))
  await refused(t, 'no =', M, edited(/Signature=.*/, 'Signature'))
  await refused(t, 'trailing comma', M, edited(/$/, ','))
  await refused(t, 'empty signature', M, edited(/Signature=.*/, 'Signature='), { says: /Signature is missing/ })
  await refused(t, 'no access key', M, edited(example.accessKeyId, ''))
  const unsigned = await refused(t, 'host not signed', 'AccessDenied', edited('=host;', '='))
  t.equal(unsigned.fields.HeadersNotSigned, 'host')
  await refused(
    t,
    'the hash is signed and absent',
    'InvalidRequest',
    altered(signHead(get), 'x-amz-content-sha256', undefined),
    {
      says: /Missing required header for this request: x-amz-content-sha256/,
    },
  )
  await refused(t, 'empty name signed', M, edited('=host;', '=host;;'))
  await refused(t, 'name signed twice', M, edited('=host;', '=host;host;'))
  await refused(t, 'empty region', M, signHead(get, { region: '' }))
})

t.test('faults of identity and signature', async (t) => {
  const differs = (name: string, parts: HeadOptions, says?: RegExp) =>
    refused(t, name, 'SignatureDoesNotMatch', parts, { ...(says && { says }) })
  await differs('short signature', edited(/Signature=.*/, 'Signature=ab'))
  await differs('long signature', edited(/$/, '0'))
  const upper = signHead(get).signature.toUpperCase()
  await differs('upper-case signature', edited(/Signature=.*/, `Signature=${upper}`))
  const signed = signHead({ ...get, headers: [host, ['x-amz-meta-a', '1']] })
  await differs('method', { ...signed, method: 'DELETE' })
  await differs('path', { ...signed, target: '/bucket/key2' })
  await differs('query', { ...signed, target: '/bucket/key?acl' })
  await differs('host', altered(signed, 'Host', 'elsewhere'))
  await differs('header', altered(signed, 'x-amz-meta-a', '2'))
  await differs('payload hash', altered(signed, 'x-amz-content-sha256', 'UNSIGNED-PAYLOAD'))
  await differs('signed header gone', altered(signed, 'x-amz-meta-a', undefined), /x-amz-meta-a/)
  await differs('names from Object.prototype', edited('=host;', '=constructor;host;'), /constructor/)
  await refused(t, 'X-Cloud header added', 'AccessDenied', altered(signed, 'x-cloud-meta-a', '1'))
  // Google's load balancers add it to every request on its way.
  const traced = altered(signed, 'x-cloud-trace-context', '105445aa7843bc8bf206b12000100000/1;o=1')
  t.ok(await authenticator()(requestHead(traced)), 'a header that says nothing to us may be added')
})

t.test('clocks: fifteen minutes either way, to the second', async (t) => {
  for (const minutes of [-15, 15])
    t.ok(await authenticator(example.time + minutes * MINUTE)(requestHead(signHead(get))))
  for (const ms of [-15 * MINUTE - 1000, 15 * MINUTE + 1000, 86_400_000, -86_400_000]) {
    const error = await refused(t, `${ms} ms`, 'RequestTimeTooSkewed', signHead(get), { now: example.time + ms })
    t.match(error.fields, { RequestTime: '2013-05-24T00:00:00Z', MaxAllowedSkewMilliseconds: 900_000 })
  }
  for (const timestamp of ['20130231T000000Z', '20130524T250000Z', '2013-05-24T00:00:00Z', '20130524', ''])
    await refused(t, timestamp, 'AccessDenied', signHead(get, { timestamp, date: '20130524' }))
})

function link(changes: Partial<Presign>): HeadOptions {
  const request: Presign = {
    ...{ brand: 'Amz', method: 'GET', path: '/bucket/kéy +%', host: host[1], ...example },
    ...{ expires: 60, now: new Date(example.time), ...changes },
  }
  const path = request.path.split('/').map(encodeURIComponent).join('/')
  return { method: request.method, target: `${path}?${presignQuery(request)}`, headers: [host] }
}

function linkEdited(from: string | RegExp, to: string): HeadOptions {
  const { target } = link({})
  const changed = target.replace(from, to)
  if (changed === target) throw new Error('the edit changed nothing')
  return { target: changed, headers: [host] }
}

// s3/malformed/signatures has more, over HTTP.
t.test('faults of presigned URLs', async (t) => {
  const Q = 'AuthorizationQueryParametersError'
  t.ok(await authenticator()(requestHead(link({}))), 'the one without fault')
  for (const name of ['Algorithm', 'Credential', 'Date', 'Expires', 'SignedHeaders', 'Signature']) {
    await refused(t, `${name} empty`, Q, linkEdited(new RegExp(`X-Amz-${name}=[^&]*`), `X-Amz-${name}=`))
    await refused(t, `${name} twice`, Q, linkEdited(/$/, `&X-Amz-${name}=1`), { says: /more than once/ })
  }
  await refused(t, 'ECDSA', Q, linkEdited('HMAC-SHA256', 'ECDSA-P256-SHA256'), { says: /ECDSA/ })
  await refused(t, 'token', 'InvalidToken', linkEdited(/$/, '&X-Amz-Security-Token=T'))
  for (const expires of ['1e3', '99999999999999999999', '%2B5'])
    await refused(t, `expires ${expires}`, Q, linkEdited('X-Amz-Expires=60', `X-Amz-Expires=${expires}`))
  t.ok(await authenticator()(requestHead(link({ expires: 604_800 }))), 'the longest')
  await refused(t, 'terminal', Q, linkEdited('aws4_request', 'aws4'))
  await refused(t, 'unknown key', 'InvalidAccessKeyId', link({ accessKeyId: 'AKIDNOBODY' }))
  await refused(t, 'other method', 'SignatureDoesNotMatch', { ...link({}), method: 'PUT' })
  await refused(t, 'parameter added', 'SignatureDoesNotMatch', linkEdited(/$/, '&response-content-type=text/html'))
  await refused(t, 'signature cut', 'SignatureDoesNotMatch', linkEdited(/.$/, ''))
  await refused(t, 'header added', 'AccessDenied', altered(link({}), 'x-amz-copy-source', '/b/k'))
  const both = signHead({ ...get, target: link({}).target })
  await refused(t, 'signed in both places', 'InvalidArgument', both)
  await refused(t, 'a stranger in Authorization', 'InvalidArgument', altered(link({}), 'Authorization', 'Basic QQ=='))

  t.ok(await authenticator(example.time + 60_000)(requestHead(link({}))), 'valid through its last second')
  const late = await refused(t, 'expired', 'AccessDenied', link({}), { now: example.time + 61_000, says: /expired/ })
  t.match(late.fields, { 'X-Amz-Expires': 60, Expires: '2013-05-24T00:01:00Z', ServerTime: '2013-05-24T00:01:01Z' })
  t.ok(await authenticator(example.time - 15 * MINUTE)(requestHead(link({}))), 'a clock that is ahead')
  for (const now of [example.time, example.time - MINUTE])
    await refused(t, 'never valid', 'AccessDenied', link({ expires: 0 }), { now, says: /expired/ })
  const early = { now: example.time - 16 * MINUTE, says: /not valid yet/ }
  await refused(t, 'from the future', 'AccessDenied', link({}), early)
})

t.test('a hash pinned in a presigned URL', async (t) => {
  const query = [['X-Amz-Content-Sha256', EMPTY_SHA256]] as const
  // The helper signs UNSIGNED-PAYLOAD, so a link that pins something else does not verify ...
  await refused(t, 'pinned and signed as unsigned', 'SignatureDoesNotMatch', link({ query }))
  const none = link({ query: [['X-Amz-Content-Sha256', 'none']] })
  await refused(t, 'no hash, which is taken for one', 'SignatureDoesNotMatch', none)
  // ... and one that pins what was signed does.
  const open = link({ query: [['X-Amz-Content-Sha256', 'UNSIGNED-PAYLOAD']] })
  t.match((await authenticator()(requestHead(open)))?.payload, { kind: 'unsigned' })
  const other = altered(open, 'x-amz-content-sha256', EMPTY_SHA256)
  await refused(t, 'another value in the header', 'InvalidArgument', other)
  const notSigned = altered(link({}), 'x-amz-content-sha256', 'UNSIGNED-PAYLOAD')
  await refused(t, 'a value without a signature', 'AccessDenied', notSigned)
})

t.test('a body whose hash is signed and not sent (curl --aws-sigv4)', async (t) => {
  const body = Buffer.from('some data')
  const sha256 = createHash('sha256').update(body).digest('hex')
  const post = { method: 'POST', target: '/bucket/key', headers: [host, ['Content-Length', '9'] as const] }
  const signed = signHead(post, { contentSha256: undefined, payloadHash: sha256 })
  const read = (bytes: Buffer) => {
    let times = 0
    const take = async () => {
      times++
      return bytes
    }
    return Object.assign(take, { times: () => times })
  }
  const good = read(body)
  t.same((await authenticator()(requestHead(signed), good))?.payload, { kind: 'buffered', bytes: body })
  t.equal(good.times(), 1)
  const wrong = await refusal(authenticator()(requestHead(signed), read(Buffer.from('other'))))
  t.equal(wrong.code, 'SignatureDoesNotMatch')
  const missing = await refusal(authenticator()(requestHead(signed)))
  t.match(missing, { code: 'MissingSecurityHeader', fields: { MissingHeaderName: 'x-amz-content-sha256' } })

  const empty = signHead(post, { contentSha256: undefined, payloadHash: EMPTY_SHA256 })
  const byCurl = await refusal(authenticator()(requestHead(empty), read(body)))
  t.match(byCurl, { code: 'InvalidRequest', fields: { MissingHeaderName: 'x-amz-content-sha256' } }, 'curl -T')
  t.match(byCurl.message, /UNSIGNED-PAYLOAD/)
  for (const parts of [post, get]) {
    const open = signHead(parts, { contentSha256: undefined, payloadHash: 'UNSIGNED-PAYLOAD' })
    t.equal(
      (await refusal(authenticator()(requestHead(open), read(body)))).code,
      'InvalidRequest',
      String(parts.method),
    )
  }
  const stranger = read(body)
  const nobody = signHead(post, { contentSha256: undefined, accessKeyId: 'AKIDNOBODY' })
  t.equal((await refusal(authenticator()(requestHead(nobody), stranger))).code, 'InvalidAccessKeyId')
  t.equal(stranger.times(), 0, 'nothing is read for an unknown key')

  const noBody = signHead(get, { contentSha256: undefined })
  t.match((await authenticator()(requestHead(noBody)))?.payload, { kind: 'signed', sha256: EMPTY_SHA256 })
})

t.test('a secret that changes takes effect at once', async (t) => {
  let secretAccessKey: string = example.secretAccessKey
  const authenticate = createAuthenticator({
    credentials: async (accessKeyId) => ({ accessKeyId, secretAccessKey }),
    region: 'us-east-1',
    now: () => example.time,
  })
  t.ok(await authenticate(requestHead(signHead(get))))
  secretAccessKey = 'another-secret'
  t.equal((await refusal(authenticate(requestHead(signHead(get))))).code, 'SignatureDoesNotMatch')
  t.ok(await authenticate(requestHead(signHead(get, { secretAccessKey }))))
})

t.test('fixed credentials', async (t) => {
  t.equal(credentials('constructor'), undefined)
  for (const pair of ['ab secret-enough', 'abc,d secret-enough', 'abc secret with space']) {
    const [, accessKeyId = '', secretAccessKey = ''] = /^(\S+) (.*)$/.exec(pair) ?? []
    t.throws(() => staticCredentials([{ accessKeyId, secretAccessKey }]), /^(?!.*secret with).*access key/)
  }
  t.throws(() => staticCredentials([example, example]), /twice/)
})
