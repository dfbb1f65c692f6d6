import t from 'tap'
import { S3Error } from '../../../../common/errors/s3-error.js'
import { resolveRange } from '../../../../src/gateway/objects/download-body.js'
import { parseRange } from '../../../../src/s3/object/read-conditions.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { modes } from '../../../support/server/modes.js'
import { signedRequest, type Wanted } from '../../../support/sign/signed-request.js'

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

for (const mode of modes) {
  t.test(`${mode}: conditions come before the range, which holds for the object that If-Range names`, async (t) => {
    const { endpoint } = await startInProcess(t, mode, { identities: [keys] })
    const send = (method: string, path: string, more: Partial<Wanted> = {}) =>
      signedRequest(endpoint, keys, { method, path, ...more })
    await send('PUT', '/bucket')
    const { etag } = (await send('PUT', '/bucket/k', { body: 'short' })).headers
    // A client that fetches in parts holds the ETag of a longer object: it must hear that it has changed.
    for (const [name, value] of [
      ['if-match', '"of a longer one"'],
      ['if-unmodified-since', new Date(0).toUTCString()],
    ] as const) {
      const answer = await send('GET', '/bucket/k', { headers: { range: 'bytes=100-200', [name]: value } })
      t.match(answer, { status: 412, code: 'PreconditionFailed' })
    }
    const unconditional = await send('GET', '/bucket/k', {
      headers: { range: 'bytes=100-200', 'if-match': String(etag) },
    })
    t.match(unconditional, { status: 416, code: 'InvalidRange', headers: { 'content-range': 'bytes */5' } })

    const { 'last-modified': modified } = (await send('HEAD', '/bucket/k')).headers
    for (const [value, status] of [
      [etag, 206],
      [modified, 206],
      ['"of another one"', 200],
      [new Date(0).toUTCString(), 200],
      // Weak validators never say that the bytes are the same: RFC 9110 section 13.1.5.
      [`W/${etag}`, 200],
    ] as const) {
      for (const method of ['GET', 'HEAD']) {
        const headers = { range: 'bytes=1-2', 'if-range': String(value) }
        const answer = await send(method, '/bucket/k', { headers })
        t.equal(answer.status, status, `${method} ${value}`)
        t.equal(answer.headers['content-length'], status === 206 ? '2' : '5')
      }
    }
    // A range that the object does not have is none of an object that has changed.
    const outside = { range: 'bytes=100-200', 'if-range': '"of a longer one"' }
    for (const method of ['GET', 'HEAD']) t.equal((await send(method, '/bucket/k', { headers: outside })).status, 200)
  })
}

/** The bytes that a Range header asks for: undefined for the whole, 'refused' for none. */
function cut(header: string, body: string): string | undefined {
  const range = parseRange(header)
  if (!range) return undefined
  try {
    const { first, last } = resolveRange(range, body.length)
    return body.slice(first, last + 1)
  } catch (error) {
    if (error instanceof S3Error && error.code === 'InvalidRange') return 'refused'
    throw error
  }
}

t.test('ranges, with positions of any number of digits', async (t) => {
  const far = '9'.repeat(40)
  for (const [header, expected] of [
    ['bytes=0-0', 'a'],
    ['bytes=3-', 'de'],
    ['bytes=3-9', 'de'],
    ['bytes=-2', 'de'],
    ['bytes=-0', 'refused'],
    ['bytes=5-', 'refused'],
    ['bytes=2-1', undefined],
    ['bytes=-', undefined],
    [`bytes=${far}-`, 'refused'],
    ['bytes=99999999999999999-', 'refused'],
    ['bytes=18446744073709551616-18446744073709551617', 'refused'],
    [`bytes=1-${far}`, 'bcde'],
    [`bytes=-${far}`, 'abcde'],
    [`bytes=${'0'.repeat(30)}1-2`, 'bc'],
    [`bytes=${far}1-${far}0`, undefined],
  ] as const)
    t.equal(cut(header, 'abcde'), expected, header)
})

t.test('a header of nothing but spaces costs next to nothing', async (t) => {
  const started = process.cpuUsage()
  for (const header of [`bytes=${' '.repeat(60_000)}x`, `bytes=1-${' '.repeat(60_000)}x`])
    t.equal(parseRange(header), undefined)
  // Time that grows with the square of the length would be seconds.
  t.ok(process.cpuUsage(started).user < 1_000_000)
})
