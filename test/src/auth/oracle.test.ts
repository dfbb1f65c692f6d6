import { createHash } from 'node:crypto'
import { HttpRequest } from '@smithy/protocol-http'
import { SignatureV4 } from '@smithy/signature-v4'
import fc from 'fast-check'
import t from 'tap'
import { createAuthenticator } from '../../../src/auth/authenticate.js'
import { staticCredentials } from '../../../src/auth/credentials.js'
import { type HeadOptions, requestHead } from '../../support/sign/request-head.js'
import { example } from '../../support/sign/sign-head.js'
import { Sha256 } from '../../support/sign/signed-request.js'

/** Requests that another implementation of SigV4 has signed are let in, and with one bit changed they are not. */

const signerOptions = { credentials: example, region: 'us-east-1', service: 's3', sha256: Sha256, uriEscapePath: false }
const signingDate = new Date(example.time)

const amz = new SignatureV4(signerOptions)
const authenticate = createAuthenticator({
  credentials: staticCredentials([example]),
  region: 'us-east-1',
  now: () => example.time,
})

const text = fc.string({ unit: 'binary', maxLength: 20 })
const ODD = ['a b', "!'()*", '+', '%', '%2F', '&=?#', '//', '..', 'é', '😀', '~', 'A-Z_0.9', '\u0000']
const awkward = fc.constantFrom(...ODD)
const key = fc
  .array(fc.oneof(text, awkward), { minLength: 1, maxLength: 4 })
  .map((parts) => `/bucket/${parts.join('')}`)
// The other signer keeps parameters in a plain object, in which "__proto__" is not one.
const name = fc.oneof(text, awkward).filter((n) => n !== '' && n !== '__proto__' && !/^x-amz-/i.test(n))
const value = fc.oneof(text, awkward, fc.array(text, { minLength: 1, maxLength: 3 }))
const query = fc.dictionary(name, value, { maxKeys: 4, noNullPrototype: true })
const headerName = fc.constantFrom('x-amz-meta-a', 'x-amz-acl', 'content-type', 'range', 'x-amz-meta-b', 'content-md5')
const headerValue = fc
  .array(fc.constantFrom('a', 'B', ' ', '  ', ',', '"', 'é', '/', '='), { maxLength: 8 })
  .map((v) => v.join(''))
const headers = fc.dictionary(headerName, headerValue, { maxKeys: 4, noNullPrototype: true })
const method = fc.constantFrom('GET', 'HEAD', 'PUT', 'POST', 'DELETE')
/** Decides how the next thing that may be spelled in two ways is spelled. */
const whims = fc.array(fc.boolean(), { minLength: 8, maxLength: 8 })
const requests = fc.record({ method, key, query, headers, whims })
type Generated = typeof requests extends fc.Arbitrary<infer T> ? T : never

function toHttpRequest({ method, key, query, headers }: Generated): HttpRequest {
  return new HttpRequest({
    method,
    hostname: 'example.com',
    path: uriEscape(key, true),
    query: { ...query },
    headers: { host: 'example.com:9000', ...headers },
  })
}

function uriEscape(value: string, keepSlash = false): string {
  const escaped = encodeURIComponent(value).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  return keepSlash ? escaped.replaceAll('%2F', '/') : escaped
}

/** What goes over the wire: the same request, in a spelling that the whims choose. */
function spelled(request: HttpRequest, whims: boolean[]): HeadOptions {
  let turn = 0
  const whim = () => whims[turn++ % whims.length] as boolean
  const respell = (escaped: string) =>
    escaped.replace(/%[0-9A-F]{2}|[A-Za-z]/g, (c) => {
      if (!whim()) return c
      return c.length === 3 ? c.toLowerCase() : `%${c.charCodeAt(0).toString(16)}`
    })
  const pairs = Object.entries(request.query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value ?? '']).map((one) => {
      const spelledName = name.startsWith('X-') ? uriEscape(name) : respell(uriEscape(name))
      return one === '' && whim() ? spelledName : `${spelledName}=${respell(uriEscape(one))}`
    }),
  )
  if (whim()) pairs.reverse()
  const path = respell(request.path)
  return {
    method: request.method,
    target: pairs.length > 0 ? `${path}?${pairs.join('&')}` : path,
    // As UTF-8 bytes, one character each, which is how Node shows them.
    headers: Object.entries(request.headers).map(([n, v]) => [n, Buffer.from(v).toString('latin1')]),
  }
}

async function passes(parts: HeadOptions): Promise<boolean> {
  return authenticate(requestHead(parts)).then(
    (caller) => caller?.identity.accessKeyId === example.accessKeyId,
    (error) => {
      if (error.code === 'SignatureDoesNotMatch') return false
      throw error
    },
  )
}

async function signInHeader(generated: Generated): Promise<HeadOptions> {
  const request = toHttpRequest(generated)
  request.headers['x-amz-content-sha256'] = 'UNSIGNED-PAYLOAD'
  return spelled(HttpRequest.clone((await amz.sign(request, { signingDate })) as HttpRequest), generated.whims)
}

async function presign(generated: Generated): Promise<HeadOptions> {
  const request = toHttpRequest({ ...generated, headers: {} })
  request.headers['x-amz-content-sha256'] = 'UNSIGNED-PAYLOAD'
  const signed = (await amz.presign(request, { signingDate, expiresIn: 60 })) as HttpRequest
  return spelled(signed, generated.whims)
}

for (const [name, signer] of Object.entries({ signInHeader, presign })) {
  t.test(`${name}: what it signs verifies, however it is spelled`, async () => {
    await fc.assert(
      fc.asyncProperty(requests, async (generated) => passes(await signer(generated))),
      { numRuns: 300 },
    )
  })

  t.test(`${name}: another method, key or query does not verify`, async () => {
    await fc.assert(
      fc.asyncProperty(requests, async (generated) => {
        const parts = await signer(generated)
        const [path, query] = parts.target.split('?')
        const changed: HeadOptions[] = [
          { ...parts, method: parts.method === 'GET' ? 'PUT' : 'GET' },
          { ...parts, target: `${path}x${query === undefined ? '' : `?${query}`}` },
          { ...parts, target: `${parts.target}${query === undefined ? '?' : '&'}delete` },
        ]
        for (const one of changed) if (await passes(one)) return false
        return true
      }),
      { numRuns: 50 },
    )
  })
}

t.test('a hash that a presigned URL pins is what its body is measured by', async (t) => {
  const sha256 = createHash('sha256').update('the body').digest('hex')
  const request = new HttpRequest({
    method: 'PUT',
    hostname: 'example.com',
    path: '/bucket/key',
    headers: { host: 'example.com', 'x-amz-content-sha256': sha256 },
  })
  const inQuery = (await amz.presign(request, { signingDate, expiresIn: 60 })) as HttpRequest
  t.notOk('x-amz-content-sha256' in inQuery.headers)
  t.match((await authenticate(requestHead(spelled(inQuery, [false]))))?.payload, { kind: 'signed', sha256 })

  const inHeader = (await amz.presign(request, {
    signingDate,
    expiresIn: 60,
    unhoistableHeaders: new Set(['x-amz-content-sha256']),
  })) as HttpRequest
  t.ok('x-amz-content-sha256' in inHeader.headers)
  t.match((await authenticate(requestHead(spelled(inHeader, [false]))))?.payload, { kind: 'signed', sha256 })
})
