import { hash } from 'node:crypto'
import { HttpRequest } from '@smithy/protocol-http'
import { SignatureV4 } from '@smithy/signature-v4'
import t from 'tap'
import { RequestSigner, type SigningKeys } from '../../common/sign-request.js'
import { canonicalQuery, uriEncode } from '../../common/sigv4.js'
import { Sha256 } from '../support/sign/signed-request.js'

const region = 'eu-west-1'
const host = 'store.example:9000'

t.test('a request that leaves the program is signed as another implementation signs it', async (t) => {
  for (const keys of [
    { accessKeyId: 'key', secretAccessKey: 'secret' },
    { accessKeyId: 'key', secretAccessKey: 'secret', sessionToken: 'a/token+==' },
  ] satisfies SigningKeys[]) {
    const signer = new RequestSigner(keys, region)
    const other = new SignatureV4({ credentials: keys, region, service: 's3', sha256: Sha256, uriEscapePath: false })
    for (const [method, path, query, body, date] of [
      ['GET', '/bucket/a key/é+%', {}, '', '2026-11-29T23:59:59Z'],
      // The key of the day is another one.
      ['PUT', '/bucket/x', { partNumber: '1', uploadId: 'a+b/c==' }, 'body', '2026-11-30T00:00:00Z'],
      ['POST', '/-/jobs', { 'list-type': '2', prefix: '~a b' }, '{}', '2026-11-30T00:00:01Z'],
    ] as const) {
      const now = new Date(date)
      const payloadHash = hash('sha256', body, 'hex')
      const encoded = Object.entries(query).map(([name, value]) => `${uriEncode(name)}=${uriEncode(value)}`)
      const asked = { method, path: uriEncode(path, true), query: canonicalQuery(encoded.join('&')), host, payloadHash }
      const headers = { host, 'x-amz-content-sha256': payloadHash }
      const request = new HttpRequest({ method, hostname: host, path: asked.path, query: { ...query }, headers })
      const { headers: expected } = await other.sign(request, { signingDate: now })
      t.same(signer.sign(asked, now), expected, `${method} ${path}`)
    }
  }
})
