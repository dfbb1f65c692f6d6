import t from 'tap'
import { startInProcess } from '../support/server/in-process.js'
import { modes } from '../support/server/modes.js'
import { signedRequest, type Wanted } from '../support/sign/signed-request.js'

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

for (const mode of modes) {
  t.test(`${mode}: conditions come before the range`, async (t) => {
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
  })
}

for (const mode of modes) {
  t.test(`${mode}: a range holds only for the object that If-Range names, for HEAD as for GET`, async (t) => {
    const { endpoint } = await startInProcess(t, mode, { identities: [keys] })
    const send = (method: string, path: string, more: Partial<Wanted> = {}) =>
      signedRequest(endpoint, keys, { method, path, ...more })
    await send('PUT', '/bucket')
    await send('PUT', '/bucket/k', { body: 'short' })
    const { etag, 'last-modified': modified } = (await send('HEAD', '/bucket/k')).headers
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
