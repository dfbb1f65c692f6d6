import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { findAwsClis, run, runFailing } from '../support/programs/run.js'
import { runCli } from '../support/server/cli.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'

// Two accounts of the embedded gateway, and no account at all, with aws-cli at its defaults.

interface Keys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

async function printed<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await runCli([...args, '--print', 'json'])
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

// BucketOwnerEnforced, the default: access/authorizer/table.
t.test('two accounts: ObjectWriter', async (t) => {
  const [aws] = await findAwsClis(t)
  if (aws !== undefined)
    await accounts(t, aws, await startDealgate(t, { args: ['--object-ownership', 'ObjectWriter'] }))
})

async function accounts(t: Test, aws: string, server: Dealgate): Promise<void> {
  const { data, endpoint } = server
  const partner = await printed<{ accessKey: string; secretKey: string; canonicalId: string }>(
    ...['account', 'add', '--name', 'partner', '--data', data],
  )
  const partnerKeys = await printed<Keys>(
    ...['keys', 'add', '--data', data, '--account-access-key', partner.accessKey],
    ...['--account-secret-key', partner.secretKey],
  )
  const home = temporaryFolder(t)
  const file = join(home, 'file')
  await writeFile(file, 'from the partner')
  const as = (keys: Keys | undefined) => {
    const signed = keys && { AWS_ACCESS_KEY_ID: keys.accessKeyId, AWS_SECRET_ACCESS_KEY: keys.secretAccessKey }
    const env = { HOME: home, AWS_DEFAULT_REGION: 'us-east-1', AWS_EC2_METADATA_DISABLED: 'true', ...signed }
    const args = ['--endpoint-url', endpoint, ...(keys ? [] : ['--no-sign-request'])]
    return {
      run: async (...more: string[]) => (await run(aws, [...args, ...more], { env })).toString('utf8'),
      fail: (...more: string[]) => runFailing(aws, [...args, ...more], { env }),
    }
  }
  const owner = as({ accessKeyId: server.accessKey, secretAccessKey: server.secretKey })
  const other = as(partnerKeys)
  const anonymous = as(undefined)
  const api = (...args: string[]) => ['s3api', ...args, '--bucket', 'shared']

  await owner.run(...api('create-bucket'))
  await owner.run('s3', 'cp', file, 's3://shared/public/page')
  t.match(await other.fail('s3', 'cp', 's3://shared/public/page', '-'), /403|AccessDenied/)
  t.match(await other.fail('s3', 'cp', file, 's3://shared/drop/one'), /AccessDenied/)
  t.match(await anonymous.fail('s3', 'cp', 's3://shared/public/page', '-'), /403|AccessDenied/)

  const policy = {
    Version: '2012-10-17',
    Statement: [
      { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::shared/public/*' },
      {
        Effect: 'Allow',
        Principal: { CanonicalUser: partner.canonicalId },
        Action: ['s3:PutObject', 's3:PutObjectAcl'],
        Resource: 'arn:aws:s3:::shared/drop/*',
      },
    ],
  }
  await owner.run(...api('put-bucket-policy'), '--policy', JSON.stringify(policy))
  t.equal(await anonymous.run('s3', 'cp', 's3://shared/public/page', '-'), 'from the partner')
  t.match(await anonymous.fail('s3', 'ls', 's3://shared/'), /AccessDenied/)
  t.match(await anonymous.fail('s3', 'cp', file, 's3://shared/public/page'), /AccessDenied/)
  t.match(await other.fail('s3', 'cp', file, 's3://shared/public/page'), /AccessDenied/)

  await other.run('s3', 'cp', file, 's3://shared/drop/one', '--acl', 'bucket-owner-full-control')
  t.equal(await owner.run('s3', 'cp', 's3://shared/drop/one', '-'), 'from the partner')
  await other.run('s3', 'cp', file, 's3://shared/drop/two')
  t.match(await owner.fail('s3', 'cp', 's3://shared/drop/two', '-'), /403|AccessDenied/, "the object is its writer's")
  t.equal(await other.run('s3', 'cp', 's3://shared/drop/two', '-'), 'from the partner')
  await owner.run('s3', 'cp', file, 's3://shared/open', '--acl', 'public-read')
  t.equal(await anonymous.run('s3', 'cp', 's3://shared/open', '-'), 'from the partner')
  await owner.run(...api('put-object-acl'), '--key', 'open', '--acl', 'private')
  t.match(await anonymous.fail('s3', 'cp', 's3://shared/open', '-'), /403|AccessDenied/)
  await owner.run(...api('delete-bucket-policy'))
  t.match(await anonymous.fail('s3', 'cp', 's3://shared/public/page', '-'), /403|AccessDenied/)
  t.match(await other.fail('s3', 'cp', file, 's3://shared/drop/one'), /AccessDenied/)
  t.match(await other.run('s3', 'ls'), /^$/)
}
