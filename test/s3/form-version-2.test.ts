import { CreateBucketCommand } from '@aws-sdk/client-s3'
import t from 'tap'
import { startInProcess } from '../support/server/in-process.js'
import { signVersion2 } from '../support/sign/version-2.js'

const DAY_MS = 86_400_000

t.test('a form of version 2 is good for at most seven days', async (t) => {
  const { endpoint, s3 } = await startInProcess(t, 'full')
  await s3.send(new CreateBucketCommand({ Bucket: 'forms' }))
  const post = (days: number) => {
    const expiration = new Date(Date.now() + days * DAY_MS).toISOString()
    const conditions = [{ bucket: 'forms' }, ['starts-with', '$key', '']]
    const policy = Buffer.from(JSON.stringify({ expiration, conditions })).toString('base64')
    const form = new FormData()
    form.set('key', 'a')
    form.set('AWSAccessKeyId', 'test-key')
    form.set('policy', policy)
    form.set('signature', signVersion2('test-secret', policy))
    form.set('file', new Blob(['text']))
    return fetch(`${endpoint}/forms`, { method: 'POST', body: form })
  }
  t.equal((await post(6.9)).status, 204)
  const refused = await post(7.1)
  t.equal(refused.status, 403)
  t.match(await refused.text(), /within seven days/)
})
