import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { type Ended, findAwsClis, isInstalled, runText } from '../../support/programs/run.js'
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

t.test('aws-cli', { skip: !isInstalled('aws') && 'aws-cli is not installed' }, async (t) => {
  const { endpoint, folder, body } = await start(t)
  const env = {
    AWS_ACCESS_KEY_ID: owner.accessKeyId,
    AWS_SECRET_ACCESS_KEY: owner.secretAccessKey,
    AWS_DEFAULT_REGION: 'us-east-1',
    AWS_MAX_ATTEMPTS: '1',
  }
  const s3api = (operation: string, key: string, ...args: string[]): Promise<Ended> =>
    runText('aws', ['--endpoint-url', endpoint, 's3api', operation, '--bucket', '-', '--key', key, ...args], env)
  const file = join(folder, 'thing')
  t.equal((await s3api('get-object', 'test/v1/things/thing-3', file)).code, 0)
  t.equal(readFileSync(file, 'utf8'), '{"Name":"thing-3","Size":3}\n')
  t.match((await s3api('get-object', 'test/v1/things/none', file)).stderr, 'An error occurred (NoSuchKey)')
  t.equal((await s3api('put-object', 'test/v1/things/x', '--body', body)).code, 0)
  writeFileSync(body, '<Thing><Other/></Thing>')
  t.match((await s3api('put-object', 'test/v1/things/x', '--body', body)).stderr, 'An error occurred (InvalidArgument)')
})

t.test('aws-cli with the model of the server', async (t) => {
  for (const cli of (await findAwsClis(t)).slice(-1)) {
    await t.test(cli, async (t) => {
      const { endpoint } = await start(t)
      const home = t.testdir({})
      const env = {
        HOME: home,
        AWS_ACCESS_KEY_ID: owner.accessKeyId,
        AWS_SECRET_ACCESS_KEY: owner.secretAccessKey,
        AWS_DEFAULT_REGION: 'us-east-1',
        AWS_MAX_ATTEMPTS: '1',
      }
      const aws = (...args: string[]) => runText(cli, ['--endpoint-url', endpoint, '--output', 'json', ...args], env)
      const call = async (...args: string[]) => {
        const { code, stdout, stderr } = await aws('dealgate', ...args)
        return code === 0 ? JSON.parse(stdout) : stderr
      }
      const model = join(home, 'model.json')
      t.equal((await aws('s3', 'cp', 's3://-/aws-model.json', model)).code, 0)
      const added = await aws(
        'configure',
        'add-model',
        '--service-name',
        'dealgate',
        '--service-model',
        `file://${model}`,
      )
      t.equal(added.code, 0, added.stderr)
      // Without it, AWS CLI 2 signs for an unknown service and encodes the path twice.
      const signing = ['configure', 'set', 'default.dealgate.signature_version', 's3v4']
      t.equal((await aws(...signing)).code, 0)

      t.same(await call('get-thing', '--name', 'thing-3'), { Name: 'thing-3', Size: 3 })
      t.match(
        await call('get-thing', '--name', 'none'),
        'An error occurred (NoSuchKey) when calling the GetThing operation',
      )
      const list = ['list-things', '--kind', 'big', '--min-size', '20', '--max-items', '2']
      const { Thing, IsTruncated, NextContinuationToken } = await call(...list)
      t.match([Thing, IsTruncated], [[{ Name: 'thing-20' }, { Name: 'thing-21' }], true])
      t.match(await call(...list, '--continuation-token', NextContinuationToken), { Thing: [{ Name: 'thing-22' }, {}] })
      t.same(await call('list-bucket-things', '--bucket', 'bucket'), { Bucket: 'bucket' })
      const body = ['--miner-id', 'f01', '--price', '0.5', '--count', '3', '--no-fast']
      const nested = ['--tags', 'a', 'b', '--terms', 'Class=big', 'Class=small', '--extra', 'a=b']
      const whole = { MinerId: 'f01', Price: '0.5', Count: 3, Fast: false, Tags: ['a', 'b'], Extra: { a: 'b' } }
      const Got = { ...whole, Terms: [{ Class: 'big' }, { Class: 'small' }] }
      t.same(await call('quote-thing', '--bucket', 'bucket', '--key', 'a b/é+(1)', ...body, ...nested), { Got })
      t.same(await call('replace-thing', '--name', 'a/b c', ...body, ...nested), { Got })

      const create = ['create-thing', '--bucket', 'bucket', '--key', 'k', '--how']
      t.same(await call(...create, 'soon'), { Made: '/bucket/k' })
      t.same(await call(...create, 'soon', '--client-token', 'one', '--force'), { Made: '/bucket/k' })
      t.same(await call(...create, 'soon', '--client-token', 'one'), { Made: '/bucket/k' }, 'the same job')
      t.match(await call(...create, 'badly'), /\(DealRejected\).*too cheap/)
      const { JobId, ClientToken } = await call(...create, 'late', '--prefer', 'wait=0')
      t.match(ClientToken, /^[\w-]{36}$/, 'made up by aws-cli')
      t.match(await call('cancel-job', '--job-id', JobId), { JobId, Operation: 'test:CreateThing' })
    })
  }
})

t.test('the model of one plugin', async (t) => {
  const { endpoint } = await start(t)
  const one = await signedRequest(endpoint, owner, {
    method: 'GET',
    path: '/-/aws-model.json',
    query: { plugin: 'test' },
  })
  t.same(Object.keys(JSON.parse(one.body).operations).sort(), [
    ...['CreateThing', 'GetThing', 'ListBucketThings', 'ListThings', 'QuoteThing', 'ReplaceThing'],
  ])
  const none = await signedRequest(endpoint, owner, {
    method: 'GET',
    path: '/-/aws-model.json',
    query: { plugin: 'absent' },
  })
  t.match(JSON.parse(none.body), { Code: 'InvalidArgument', Details: { ArgumentName: 'plugin' } })
})
