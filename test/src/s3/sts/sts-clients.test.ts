import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { S3 } from '@aws-sdk/client-s3'
import t from 'tap'
import { awsVersions } from '../../../support/programs/aws-cli.js'
import { run } from '../../../support/programs/run.js'
import { signedRequest } from '../../../support/sign/signed-request.js'
import { ROLE, startSts } from './sts-scene.js'

t.test('stock clients', async (t) => {
  const scene = await startSts(t)
  const token = await scene.newUser('client@example.com')
  const file = join(scene.folder, 'web-identity-token')
  writeFileSync(file, token)
  const buckets = ['of-the-sdk']

  await t.test('the AWS SDK for JavaScript finds credentials by itself', async (t) => {
    const env = {
      AWS_WEB_IDENTITY_TOKEN_FILE: file,
      AWS_ROLE_ARN: ROLE,
      AWS_ENDPOINT_URL_STS: scene.endpoint,
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_SHARED_CREDENTIALS_FILE: join(scene.folder, 'absent'),
      AWS_CONFIG_FILE: join(scene.folder, 'absent'),
      AWS_REGION: 'us-east-1',
    }
    const former = Object.keys({ ...env, AWS_ACCESS_KEY_ID: '' }).map((name) => [name, process.env[name]] as const)
    t.teardown(() => {
      for (const [name, value] of former) {
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
    })
    delete process.env.AWS_ACCESS_KEY_ID
    Object.assign(process.env, env)
    const s3 = new S3({ endpoint: scene.endpoint, region: 'us-east-1', forcePathStyle: true, maxAttempts: 1 })
    t.teardown(() => s3.destroy())
    await s3.createBucket({ Bucket: 'of-the-sdk' })
    const { Buckets } = await s3.listBuckets({})
    t.same(
      Buckets?.map(({ Name }) => Name),
      buckets,
    )
  })

  for (const { path, name, modern } of await awsVersions(t, 'each')) {
    await t.test(name, async (t) => {
      const home = {
        HOME: scene.folder,
        AWS_DEFAULT_REGION: 'us-east-1',
        AWS_EC2_METADATA_DISABLED: 'true',
        AWS_PAGER: '',
        AWS_MAX_ATTEMPTS: '1',
      }
      const aws = async (args: readonly string[], env: Readonly<Record<string, string>>) =>
        JSON.parse((await run(path, [...args, '--output', 'json'], { env: { ...home, ...env } })).toString('utf8'))
      const at = ['--endpoint-url', scene.endpoint]
      const names = ['--role-arn', ROLE, '--role-session-name', 'cli', '--web-identity-token', token]
      const assumed = await aws([...at, 'sts', 'assume-role-with-web-identity', ...names], {})
      t.match(assumed, { AssumedRoleUser: { Arn: /:assumed-role\/platform-user\/cli$/ }, Provider: String })
      const keys = {
        AWS_ACCESS_KEY_ID: assumed.Credentials.AccessKeyId,
        AWS_SECRET_ACCESS_KEY: assumed.Credentials.SecretAccessKey,
        AWS_SESSION_TOKEN: assumed.Credentials.SessionToken,
      }
      const whoami = await aws([...at, 'sts', 'get-caller-identity'], keys)
      t.equal(whoami.Arn, assumed.AssumedRoleUser.Arn)
      const found = await aws([...at, 's3api', 'list-buckets'], keys)
      t.same(
        found.Buckets.map((bucket: { Name: string }) => bucket.Name),
        buckets,
      )
      t.equal(found.Owner.ID, whoami.Account)
      const own = { AWS_ACCESS_KEY_ID: 'test-key', AWS_SECRET_ACCESS_KEY: 'test-secret' }
      const issued = await aws([...at, 'sts', 'get-session-token', '--duration-seconds', '900'], own)
      t.match(issued.Credentials, { AccessKeyId: /^DGS/, SessionToken: String, Expiration: String })
      if (!modern) return
      const env = { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: ROLE, AWS_ENDPOINT_URL: scene.endpoint }
      t.same((await aws(['s3api', 'list-buckets'], env)).Buckets, found.Buckets, 'without a call of sts')
    })
  }

  await t.test('a permanent key pair', async (t) => {
    const keys = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }
    const body = 'Action=GetCallerIdentity&Version=2011-06-15'
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await signedRequest(scene.endpoint, keys, { method: 'POST', path: '/', headers, body })
    t.equal(answer.status, 200, answer.body)
    t.match(answer.body, /<Arn>arn:aws:iam::[0-9a-f]{64}:user\/test-key<\/Arn>/)
    const wrong = { ...keys, secretAccessKey: 'wrong-secret' }
    const refused = await signedRequest(scene.endpoint, wrong, { method: 'POST', path: '/', headers, body })
    t.match(refused, { status: 403, code: 'SignatureDoesNotMatch' })
    const unknown = { ...keys, accessKeyId: 'unknown-key' }
    const none = await signedRequest(scene.endpoint, unknown, { method: 'POST', path: '/', headers, body })
    t.match(none, { status: 403, code: 'InvalidClientTokenId' })
  })
})
