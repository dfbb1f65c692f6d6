import { GetObjectCommand, HeadObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import t from 'tap'
import { startInProcess } from '../support/server/in-process.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

/** The fields of a line: those in quotes and brackets count as one. */
const FIELD = /\[[^\]]*\]|"[^"]*"|\S+/g

t.test('the access log in the format of S3', async (t) => {
  const lines: string[] = []
  const { s3, endpoint } = await startInProcess(t, 'full', {
    accessLog: true,
    accessFormat: 's3',
    accessLine: (line) => void lines.push(line),
  })
  const owner = { endpoint, region: 'us-east-1', accessKey: 'test-key', secretKey: 'test-secret' }
  await send(owner, { method: 'PUT', target: '/logged' })
  await s3.send(new PutObjectCommand({ Bucket: 'logged', Key: 'in/a key "with" é', Body: 'abcd' }))
  await (await s3.send(new GetObjectCommand({ Bucket: 'logged', Key: 'in/a key "with" é' }))).Body?.transformToString()
  await t.rejects(s3.send(new HeadObjectCommand({ Bucket: 'logged', Key: 'absent' })))
  await send(owner, { method: 'GET', target: '/logged?versioning=', headers: { 'user-agent': 'two words "x"' } })
  await fetch(`${endpoint}/logged/x?X-Amz-Signature=topsecret&X-Amz-Credential=topsecret`)
  await until('all requests are logged', () => lines.length === 6)
  const fields = lines.map((line) => line.match(FIELD) ?? [])
  for (const each of fields) t.equal(each.length, 26, each.join(' '))
  const [create, put, get, head, versioning, refused] = fields
  t.match(create?.[2], /^\[\d\d\/[A-Z][a-z]{2}\/20\d\d:\d\d:\d\d:\d\d \+0000\]$/)
  t.same(create?.slice(6, 8), ['REST.PUT.BUCKET', '-'])
  t.same(put?.slice(1, 2), ['logged'])
  t.same(put?.slice(3, 5), ['127.0.0.1', 'test-key'])
  t.equal(put?.[6], 'REST.PUT.OBJECT')
  t.equal(put?.[7], `in/${encodeURIComponent(encodeURIComponent('a key "with" é'))}`)
  t.same(put?.slice(9, 13), ['200', '-', '-', '4'])
  t.same(get?.slice(9, 13), ['200', '-', '4', '4'])
  t.equal(put?.[19], 'SigV4')
  t.equal(put?.[21], 'AuthHeader')
  t.same(head?.slice(9, 11), ['404', 'NoSuchKey'])
  t.equal(versioning?.[6], 'REST.GET.VERSIONING')
  t.equal(versioning?.[16], '"two%20words%20%22x%22"'.replaceAll('%20', ' '))
  t.equal(refused?.[21], 'QueryString')
  t.notMatch(lines.join('\n'), /topsecret/)
})
