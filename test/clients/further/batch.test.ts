import { resolve } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { findBuilt, run } from '../../support/programs/run.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { send } from '../../support/sign/send.js'
import { signedRequest } from '../../support/sign/signed-request.js'

// S3 Control puts an account id before the host of the endpoint. With the server as their proxy, clients need no DNS.

const DOMAIN = 's3.example.test'
const server = await startDealgate(t, { args: ['--domain', DOMAIN] })
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
  const endpoints = [server.endpoint, `http://s3-control.${DOMAIN}`]
  await run(python, [resolve('test/clients/further/boto3_batch.py'), ...endpoints], { env })
  t.pass('everything is as it should be')
})

await t.test(
  'the labels before a domain are an account where the request carries one, and a bucket elsewhere',
  async (t) => {
    const keys = { accessKeyId: server.accessKey, secretAccessKey: server.secretKey }
    const account = { 'x-amz-account-id': '111122223333' }
    const ask = (host: string, headers: Record<string, string> = {}) =>
      signedRequest(server.endpoint, keys, { method: 'GET', path: '/v20180820/jobs', host, headers })
    for (const place of ['', 's3-control.', 's3-control.us-east-1.']) {
      const host = `111122223333.${place}${DOMAIN}`
      t.match(await ask(host, account), { status: 200, body: /<ListJobsResult / }, host)
      t.match(await ask(host), { status: 404, code: 'NoSuchBucket' })
    }
    t.match(await ask(DOMAIN), { status: 404, code: 'NoSuchBucket' }, 'the key jobs of a bucket')
    const { status, code } = await send(server, { method: 'GET', target: '/v20180820/jobs', unsignedHeaders: account })
    t.same({ status, code }, { status: 403, code: 'AccessDenied' }, 'the signature has to cover it')
  },
)
