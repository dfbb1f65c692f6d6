import { join } from 'node:path'
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { isInstalled, runText } from '../../support/programs/run.js'
import { startInProcess } from '../../support/server/in-process.js'
import { signedRequest } from '../../support/sign/signed-request.js'
import { examplePlugin } from './example-plugin.js'

const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

async function start(t: Test) {
  const { endpoint } = await startInProcess(t, 'full', { identities: [owner], plugins: [examplePlugin()] })
  await signedRequest(endpoint, owner, { method: 'PUT', path: '/bucket' })
  const folder = t.testdir({ 'body.json': '{"MinerId":"f01"}' })
  return { endpoint, folder, body: join(folder, 'body.json') }
}

t.test('curl --aws-sigv4', { skip: !isInstalled('curl') && 'curl is not installed' }, async (t) => {
  const { endpoint, body } = await start(t)
  const signing = ['--aws-sigv4', 'aws:amz:us-east-1:s3', '-u', 'owner:owner-secret', '-s']
  const curl = async (...args: string[]) => (await runText('curl', [...signing, ...args])).stdout
  const bucket = '<ListBucketThingsResult xmlns="urn:dealgate:test:1"><Bucket>bucket</Bucket></ListBucketThingsResult>'
  t.match(await curl(`${endpoint}/bucket?x-test=`), bucket)
  t.match(await curl(`${endpoint}/bucket?x-test`), bucket, 'without the =, which it signs as it stands')
  t.match(await curl(`${endpoint}/bucket?x-test&format=xml`), bucket, 'not in order')
  const got = '{"Got":{"MinerId":"f01"}}\n'
  const quote = `${endpoint}/bucket/k?format=json&x-test-quote=`
  t.equal(await curl('-d', '{"MinerId":"f01"}', quote), got, '-d calls everything a form')
  t.equal(await curl('-d', 'MinerId=f01', quote), got, 'and a form it is')
  t.equal(await curl('--data-binary', `@${body}`, quote), got)
  t.equal(await curl('-H', 'content-type: application/xml', '-d', '<x><MinerId>f01</MinerId></x>', quote), got)
  const put = `${endpoint}/-/test/v1/things/x`
  t.equal(await curl('-T', body, '-H', 'x-amz-content-sha256: UNSIGNED-PAYLOAD', put), got)
  t.equal(await curl('-X', 'PUT', '--data-binary', `@${body}`, put), got)
  const list = JSON.parse(await curl(`${endpoint}/-/test/v1/things?kind=big&max-items=2&min-size=20`))
  t.match(list, { Thing: [{ Name: 'thing-20' }, { Name: 'thing-21' }], IsTruncated: true })
  const job = await curl('-i', '-d', '{"How":"soon"}', `${endpoint}/bucket/k?x-test=`)
  t.match(
    job,
    /^HTTP\/1.1 200 [\s\S]*x-dealgate-job-id: j-[\s\S]*<CreateThingResult xmlns="urn:dealgate:test:1"><Made>/,
  )
  const id = /x-dealgate-job-id: (\S+)/.exec(job)?.[1]
  t.match(JSON.parse(await curl(`${endpoint}/-/jobs/v1/${id}`)), { JobId: id, Status: 'Complete' })
})

t.test('an SDK for S3', async (t) => {
  const { endpoint } = await start(t)
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: owner,
  })
  t.teardown(() => client.destroy())
  const at = (Key: string) => ({ Bucket: '-', Key: `test/v1/things/${Key}` })
  const { Body } = await client.send(new GetObjectCommand(at('thing-3')))
  t.equal(await Body?.transformToString(), '{"Name":"thing-3","Size":3}\n')
  await t.rejects(client.send(new GetObjectCommand(at('none'))), { name: 'NoSuchKey' })
  await client.send(new PutObjectCommand({ ...at('x'), Body: '{"MinerId":"f01"}' }))
  await t.rejects(client.send(new PutObjectCommand({ ...at('x'), Body: '{"Other":1}' })), { name: 'InvalidArgument' })
})
