import t from 'tap'
import { modes, startInProcess } from '../support/in-process.js'
import { signedRequest, type Wanted } from '../support/signed-request.js'

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
