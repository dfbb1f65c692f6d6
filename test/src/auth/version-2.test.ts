import t, { type Test } from 'tap'
import type { RequestHead } from '../../../src/api/request.js'
import { type AuthenticatorOptions, createAuthenticator } from '../../../src/auth/authenticate.js'
import { staticCredentials } from '../../../src/auth/credentials.js'
import { isCoveredParameter } from '../../../src/auth/signatures/version-2.js'
import { subResourcesOf } from '../../../src/plugins/refuse-keys.js'
import { s3Plugin } from '../../../src/s3/index.js'
import { type HeadOptions, requestHead } from '../../support/sign/request-head.js'
import { example } from '../../support/sign/sign-head.js'
import { signVersion2 } from '../../support/sign/version-2.js'

const credentials = staticCredentials([example])
const MINUTE = 60_000
const host: [string, string] = ['Host', 's3.example.com']

function at(now: number, more: Partial<AuthenticatorOptions> = {}) {
  return createAuthenticator({ credentials, region: 'us-east-1', now: () => now, ...more })
}

/** A head with bucket and key, as the server reads it. */
function headFor(parts: HeadOptions, hostBucket?: string): RequestHead {
  const head = requestHead({ ...parts, headers: [host, ...(parts.headers ?? [])] })
  const path = hostBucket === undefined ? head.path : `/${hostBucket}${head.path}`
  const [, bucket = '', ...key] = path.split('/')
  const resource = bucket === '' ? 'service' : key.join('/') === '' ? 'bucket' : 'object'
  return { ...head, hostBucket, resource, bucket, key: key.join('/') } as RequestHead
}

const hmac = (toSign: string): string => signVersion2(example.secretAccessKey, toSign)

type Header = readonly [name: string, value: string]
const to = (request: string, ...headers: Header[]): HeadOptions => {
  const [method = '', target = ''] = request.split(' ')
  return { method, target, headers }
}
const dated = (request: string, time: string, ...headers: Header[]) =>
  to(request, ['Date', `Tue, 27 Mar 2007 ${time} +0000`], ...headers)

// https://docs.aws.amazon.com/AmazonS3/latest/API/RESTAuthentication.html#RESTAuthenticationExamples, of today and
// before
const published: [signature: string, parts: HeadOptions, hostBucket: string][] = [
  ['qgk2+6Sv9/oM7G3qLEjTH1a1l1g=', dated('GET /photos/puppy.jpg', '19:36:42'), 'awsexamplebucket1'],
  ['htDYFYduRNen8P9ZfE/s9SuKy0U=', dated('GET /?prefix=photos&max-keys=50&marker=puppy', '19:42:41'), 'johnsmith'],
  ['c2WLPFtWHVgbEmeEG93a4cG37dM=', dated('GET /?acl', '19:44:46'), 'johnsmith'],
  [
    'ilyl83RwaSoYIEdixDQcA4OnAnc=',
    dated(
      'PUT /db-backup.dat.gz',
      '21:06:08',
      ['User-Agent', 'curl/7.15.5'],
      ['x-amz-acl', 'public-read'],
      ['content-type', 'application/x-download'],
      ['Content-MD5', '4gJE4saaMU4BqNR0kLY+lw=='],
      ['X-Amz-Meta-ReviewedBy', 'joe@johnsmith.net'],
      ['X-Amz-Meta-ReviewedBy', 'jane@johnsmith.net'],
      ['X-Amz-Meta-FileChecksum', '0x02661779'],
      ['X-Amz-Meta-ChecksumAlgorithm', 'crc32'],
      ['Content-Disposition', 'attachment; filename=database.dat'],
      ['Content-Encoding', 'gzip'],
      ['Content-Length', '5913339'],
    ),
    'static.johnsmith.net',
  ],
]

t.test("AWS's published examples are let in", async (t) => {
  for (const [signature, parts, hostBucket] of published) {
    const headers = [...(parts.headers ?? []), ['Authorization', `AWS ${example.accessKeyId}:${signature}`] as const]
    const time = Date.parse(headers.find(([name]) => name === 'Date')?.[1] ?? '')
    const caller = await at(time)(headFor({ ...parts, headers }, hostBucket))
    t.match(caller, {
      identity: { accessKeyId: example.accessKeyId },
      presigned: false,
      signatureVersion: 'AWS',
      authType: 'REST-HEADER',
      payload: { kind: 'unsigned' },
    })
    const elsewhere = at(time)(headFor({ ...parts, headers }, `${hostBucket}x`))
    await t.rejects(elsewhere, { code: 'SignatureDoesNotMatch' }, 'another bucket')
  }
})

const NOW = Date.parse('2026-01-02T03:04:05Z')
const DATE = 'Fri, 02 Jan 2026 03:04:05 GMT'

/** Signs a request in the header: what is signed ends in `resource`, with the headers of S3 before it. */
function byHeader(request: string, resource: string, headers: Header[] = [], date: Header = ['Date', DATE]) {
  const parts = to(request, ...headers, date)
  const signature = hmac(`${parts.method}\n\n\n${date[0] === 'Date' ? DATE : ''}\n${resource}`)
  const authorization: Header = ['Authorization', `AWS ${example.accessKeyId}:${signature}`]
  return { ...parts, headers: [...(parts.headers ?? []), authorization] }
}

type Refusals = Readonly<Record<string, readonly (readonly [what: string, parts: HeadOptions, now?: number])[]>>

async function refused(t: Test, refusals: Refusals): Promise<void> {
  for (const [code, cases] of Object.entries(refusals))
    for (const [what, parts, now = NOW] of cases) await t.rejects(at(now)(headFor(parts)), { code }, what)
}

t.test('the header', async (t) => {
  const unsigned: Header = ['x-cloud-content-sha256', 'UNSIGNED-PAYLOAD']
  const cloud: Header = ['x-cloud-date', DATE]
  const many = '/b/k?versionId=a%2Fb&max-parts=2&uploadId=x%20y&encryption'
  const sorted = '/b/k?encryption&uploadId=x y&versionId=a/b'
  const two: Header[] = ['x-amz-meta-a-b:2', 'x-amz-meta-a: 1 '].map((line) => line.split(':') as [string, string])
  const accepted: [what: string, parts: HeadOptions][] = [
    ['x-amz-date takes the place of Date', byHeader('GET /b/k', `x-amz-date:${DATE}\n/b/k`, [], ['x-amz-date', DATE])],
    ['the other brand', byHeader('PUT /b/k', `${unsigned.join(':')}\nx-cloud-date:${DATE}\n/b/k`, [unsigned], cloud)],
    ['names are in order, not lines', byHeader('GET /b/k', 'x-amz-meta-a:1\nx-amz-meta-a-b:2\n/b/k', two)],
    ['every sub-resource, sorted, and no other parameter', byHeader(`GET ${many}`, sorted)],
    ['an empty value with =', byHeader('GET /b/k?acl=', '/b/k?acl=')],
    ['an empty value without =', byHeader('GET /b/k?acl=', '/b/k?acl')],
    ['values as sent', byHeader('GET /b/k?versionId=a%2Fb', '/b/k?versionId=a%2Fb')],
    ['a bucket with a final slash', byHeader('GET /b', '/b/')],
    ['a bucket without one', byHeader('GET /b/', '/b')],
    ['a path that an intermediary decoded', byHeader('GET /b/a=b', '/b/a%3Db')],
    ['odd keys', byHeader('GET /b/a%20b//%C3%BC%3Facl+', '/b/a%20b//%C3%BC%3Facl+')],
    ['the trace of a load balancer', byHeader('GET /b/k', '/b/k', [['x-cloud-trace-context', '1']])],
  ]
  for (const [what, parts] of accepted) t.ok(await at(NOW)(headFor(parts)), what)

  const plain = byHeader('GET /b/k', '/b/k')
  const sha256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
  const hashed = (hash: string) =>
    byHeader('PUT /b/k', `x-amz-content-sha256:${hash}\n/b/k`, [['x-amz-content-sha256', hash]])
  t.match(await at(NOW)(headFor(hashed(sha256))), { payload: { kind: 'signed', sha256 } }, 'a declared hash is checked')
  t.ok(await at(NOW, { signedBasePaths: ['/store'] })(headFor(byHeader('GET /b/k', '/store/b/k'))))
  t.ok(await at(NOW + 15 * MINUTE)(headFor(plain)))

  const signed = (authorization: string) => to('GET /b/k', ['Date', DATE], ['Authorization', authorization])
  const adding = (name: string, value: string) => ({ ...plain, headers: [...plain.headers, [name, value] as const] })
  const unclear = '/b/k?response-content-disposition=a&tagging'
  await refused(t, {
    InvalidArgument: [
      ['no key id', signed('AWS :c2ln')],
      ['signed in the query too', { ...plain, target: `/b/k?AWSAccessKeyId=a&Signature=b&Expires=1` }],
      ['signed with version 4 too', { ...plain, target: '/b/k?X-Amz-Signature=1' }],
      ['an override whose end does not show', byHeader(`GET ${unclear}`, unclear)],
    ],
    SignatureDoesNotMatch: [
      ['a wrong signature', signed(`AWS ${example.accessKeyId}:c2ln`)],
      ['another key', { ...plain, target: '/b/k2' }],
      ['another method', { ...plain, method: 'DELETE' }],
      ['one more sub-resource', { ...plain, target: '/b/k?retention' }],
      ['a header of S3 that is not signed', adding('x-amz-copy-source', '/a/b')],
    ],
    RequestTimeTooSkewed: [
      ['too late', plain, NOW + 15 * MINUTE + 1],
      ['too early', plain, NOW - 15 * MINUTE - 1],
    ],
    InvalidToken: [['a temporary key', adding('x-amz-security-token', 'x')]],
    AccessDenied: [['signed chunks', hashed('STREAMING-AWS4-HMAC-SHA256-PAYLOAD')]],
  })
  // AWS's exact message makes s3cmd, which tries version 2 after other errors, return to version 4.
  const message = 'The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.'
  const off = at(NOW, { signatureV2: false })(headFor(plain))
  await t.rejects(off, { code: 'InvalidRequest', message }, '--signature-v2 off')
  const { accessKeyId: AWSAccessKeyId } = example
  const fields = { StringToSign: `GET\n\n\n${DATE}\n/b/k`, SignatureProvided: 'c2ln', AWSAccessKeyId }
  const error = await at(NOW)(headFor(signed(`AWS ${example.accessKeyId}:c2ln`))).catch((thrown: unknown) => thrown)
  t.match(error, { fields }, 'the error shows what to sign')
})

/** A link until `expires`, seconds; `toSign` is what is signed behind the time. */
function link(request: string, toSign: string, { expires = NOW / 1000 + 60, before = '\n\n' } = {}): HeadOptions {
  const parts = to(request)
  const signature = encodeURIComponent(hmac(`${parts.method}\n${before}${expires}\n${toSign}`))
  const own = `AWSAccessKeyId=${example.accessKeyId}&Signature=${signature}&Expires=${expires}`
  return { ...parts, target: `${parts.target}${parts.target.includes('?') ? '&' : '?'}${own}` }
}

t.test('links', async (t) => {
  const before = (1175139620 - 60) * 1000
  const path = '/photos/puppy.jpg'
  const own = `AWSAccessKeyId=${example.accessKeyId}&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=1175139620`
  const documented = headFor({ target: `${path}?${own}` }, 'johnsmith')
  t.match(await at(before)(documented), {
    presigned: true,
    signatureVersion: 'AWS',
    authType: 'REST-QUERY-STRING',
    payload: { kind: 'unsigned' },
  })
  t.ok(await at(before)(headFor({ target: `/johnsmith${path}?${own}` })), 'with the bucket in the path')

  const type: Header = ['Content-Type', 'a/b']
  const inQuery = 'PUT /b/k?x-amz-acl=private&content-type=a%2Fb&content-md5=m'
  const overrides = 'response-content-type=a%2Fb&response-content-disposition=x%20%C3%BC'
  const accepted: [what: string, parts: HeadOptions][] = [
    ...['PUT', 'DELETE', 'HEAD'].map((method): [string, HeadOptions] => [method, link(`${method} /b/k`, '/b/k')]),
    ['UploadPart', link('PUT /b/k?partNumber=1&uploadId=u', '/b/k?partNumber=1&uploadId=u')],
    ['CreateMultipartUpload', link('POST /b/k?uploads', '/b/k?uploads')],
    [
      'overrides, decoded',
      link(`GET /b/k?${overrides}`, '/b/k?response-content-disposition=x ü&response-content-type=a/b'),
    ],
    ['headers in the query', { ...link(inQuery, 'x-amz-acl:private\n/b/k', { before: 'm\na/b\n' }), headers: [type] }],
    ['a bucket', link('GET /b?list-type=2&encoding-type=url', '/b')],
  ]
  for (const [what, parts] of accepted) t.ok(await at(NOW)(headFor(parts)), what)

  const plain = link('GET /b/k', '/b/k')
  const { target } = plain
  const until = (expires: number) => link('GET /b/k', '/b/k', { expires: NOW / 1000 + expires })
  await refused(t, {
    SignatureDoesNotMatch: [
      ['another key', { target: target.replace('/k?', '/k2?') }],
      ['another method', { target, method: 'PUT' }],
      ['one more sub-resource', { target: target.replace('?', '?tagging&') }],
      ['a header of S3', { target, headers: [['x-amz-meta-a', '1']] }],
      ['a header of S3 in the query', { target: `${target}&x-amz-acl=public-read` }],
      ['a type that is not signed', { target, headers: [type] }],
    ],
    InvalidArgument: [
      ['two values of one header', { target: `${target}&x-amz-acl=private`, headers: [['x-amz-acl', 'public-read']] }],
      ['a header too', { target, headers: [['Authorization', 'AWS a:b']] }],
      ['version 4 too', { target: `${target}&X-Amz-Signature=1` }],
    ],
    AuthorizationQueryParametersError: [
      ['a parameter that is not covered', { target: `${target}&prefix=a` }],
      ['the other brand in the query', { target: `${target}&x-cloud-date=a` }],
      ['two of a kind', { target: `${target}&Expires=9975139620` }],
      ['more than a week ahead', until(604_801)],
    ],
    AccessDenied: [['after its time', plain, NOW + 60_000]],
    InvalidRequest: [['a POST', link('POST /b?delete', '/b?delete')]],
    InvalidToken: [['a temporary key', { target: `${target}&x-amz-security-token=x` }]],
  })
  t.ok(await at(NOW)(headFor(until(604_800))))
  await t.rejects(at(NOW, { signatureV2: false })(headFor(plain)), { code: 'InvalidRequest' })
})

t.test('every sub-resource that selects an operation is covered', async (t) => {
  const names =
    'acl cors delete legal-hold lifecycle ownershipControls policyStatus publicAccessBlock retention tagging'
  const { ofS3 } = subResourcesOf(s3Plugin.operations)
  for (const name of names.split(' ')) t.ok(ofS3.has(name) && isCoveredParameter(name), name)
  t.notOk(isCoveredParameter('list-type') || isCoveredParameter('x-deal') || isCoveredParameter('prefix'))
})

t.test('a line feed in a parameter moves nothing of the signed text', async (t) => {
  const now = 1_700_000_000_000
  const expires = String(now / 1000 + 60)
  const toSign = `PUT\n\n\n${expires}\nx-amz-meta-a:1\nx-amz-tagging:s=q\n/bucket/key`
  const query = (more: string) =>
    `/bucket/key?AWSAccessKeyId=${example.accessKeyId}&Expires=${expires}&Signature=${encodeURIComponent(hmac(toSign))}&${more}`
  const send = (more: string) => at(now)(headFor({ method: 'PUT', target: query(more) }))
  await t.resolves(send('x-amz-meta-a=1&x-amz-tagging=s%3Dq'))
  await t.rejects(send('x-amz-meta-a=1%0Ax-amz-tagging:s%3Dq'), { code: 'InvalidArgument' })
})
