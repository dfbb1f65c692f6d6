import { join, resolve } from 'node:path'
import t from 'tap'
import { batch, reaches } from '../../s3/batch/scene.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { awsVersions } from '../../support/programs/aws-cli.js'
import { findBuilt, run } from '../../support/programs/run.js'
import { startDealgate } from '../../support/server/dealgate.js'

// S3 Control puts an account id before the host of the endpoint. With the server as their proxy, clients need no DNS.

const server = await startDealgate(t)
const env = {
  AWS_ACCESS_KEY_ID: server.accessKey,
  AWS_SECRET_ACCESS_KEY: server.secretKey,
  AWS_DEFAULT_REGION: server.region,
  AWS_EC2_METADATA_DISABLED: 'true',
  AWS_PAGER: '',
  AWS_MAX_ATTEMPTS: '1',
  HTTP_PROXY: server.endpoint,
  http_proxy: server.endpoint,
  HOME: temporaryFolder(t),
}

await t.test('boto3 takes the steps of the scenario of AWS', async (t) => {
  const python = resolve('.ci/clients/bin/python3')
  if (!(await findBuilt(t, 'boto3 (.ci/run)', python))) return
  await run(python, [resolve('test/clients/further/boto3_batch.py'), server.endpoint], { env })
  t.pass('everything is as it should be')
})

await t.test('aws s3control creates a job and describes it', async (t) => {
  const [version] = await awsVersions(t)
  if (!version) return
  const aws = async (...args: string[]) =>
    JSON.parse((await run(version.path, ['--endpoint-url', server.endpoint, ...args], { env })).toString() || '{}')
  const account = ['--account-id', '111122223333']
  await aws('s3api', 'create-bucket', '--bucket', 'cli-things')
  await aws('s3api', 'put-object', '--bucket', 'cli-things', '--key', join('a', 'b'))
  const { JobId } = await aws(
    ...['s3control', 'create-job', ...account, '--no-confirmation-required', '--priority', '1'],
    ...['--operation', '{"S3PutObjectTagging": {"TagSet": [{"Key": "k", "Value": "v"}]}}'],
    ...['--report', '{"Enabled": false}', '--role-arn', 'arn:aws:iam::111122223333:role/any'],
    '--manifest-generator',
    '{"S3JobManifestGenerator": {"SourceBucket": "arn:aws:s3:::cli-things", "EnableManifestOutput": false}}',
  )
  t.match(await reaches(server, JobId), { Operation: 'Tag', Status: 'Complete', NumberOfTasksSucceeded: 1 })
  const { Job } = await aws('s3control', 'describe-job', ...account, '--job-id', JobId)
  t.match(Job, { Status: 'Complete', ProgressSummary: { TotalNumberOfTasks: 1, NumberOfTasksSucceeded: 1 } })
  t.equal((await batch(server, 'GET', `?status=Complete`)).json.Jobs[0].JobId, JobId)
})
