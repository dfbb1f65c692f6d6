import { join } from 'node:path'
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import t from 'tap'
import { awsVersions } from '../../support/programs/aws-cli.js'
import { farFromMidnight } from '../../support/waiting.js'
import { jsonCommands } from '../describe/json-commands.js'
import { CSV, DEAL_CID, owner, startPlatform, startTaskProxy } from './scene.js'

t.test('calls by the model of aws-cli, and the reads as objects of the bucket -', async (t) => {
  await farFromMidnight()
  const { gateway, platform } = await startPlatform(t)
  const proxy = await startTaskProxy(t, gateway, { platformUrl: platform.url })
  const { endpoint } = proxy
  await proxy.send('PUT', '/photos')
  await proxy.send('PUT', '/photos/deals.csv', { body: CSV })
  const [version] = await awsVersions(t)
  if (!version) return
  const home = t.testdir()
  const aws = jsonCommands(t, version.path, { endpoint, owner, home })
  const call = async (...args: string[]) => JSON.parse(await aws('dealgate', ...args))
  const model = join(home, 'aws-model.json')
  await aws('s3', 'cp', 's3://-/aws-model.json', model)
  await aws('configure', 'add-model', '--service-name', 'dealgate', '--service-model', `file://${model}`)

  const { email, password } = platform.user
  t.match(await call('create-platform-session', '--email', email, '--password', password, '--store'), { Stored: true })
  const key = await call('create-api-key', '--key-name', 'cli')
  const secret = ['--api-key', key.ApiKey, '--access-token', key.AccessToken]
  t.match(await call('create-jwt', ...secret), { Jwt: /^ey/ })
  const { Providers } = await call('task-list-providers', '--sort-by', 'price', '--max-items', '2')
  t.equal(Providers.length, 2)
  t.match(await call('update-my-provider', '--miner-id', 't01000', '--bid-mode', '1'), { Provider: { bid_mode: '1' } })
  const manifest = ['--manifest-bucket', 'photos', '--manifest-key', 'deals.csv']
  const terms = [
    '--task-name',
    'nightly',
    '--no-is-public',
    '--miner-id',
    't01000',
    '--max-price',
    '0',
    '--tags',
    'a',
    'b',
  ]
  const { TaskUuid } = await call('create-task', ...terms, ...manifest, '--prefer', 'wait=60')
  t.match(await call('list-my-tasks'), { Tasks: [{ TaskName: 'nightly', Tags: ['a', 'b'] }], TotalItems: 1 })
  t.match(await call('get-task', '--task-uuid', TaskUuid), {
    Deals: [{ DealCid: DEAL_CID }],
    Source: { Bucket: 'photos' },
  })
  const { Deals } = await call('list-provider-deals', '--miner-fid', 't01000')
  t.match(await call('update-my-deal', '--deal', String(Deals[0].Id), '--status', 'Waiting'), {
    Deal: { Status: 'Waiting' },
  })

  const s3 = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, maxAttempts: 1, credentials: owner })
  t.teardown(() => s3.destroy())
  const at = (path: string) => ({ Bucket: '-', Key: `task/v1/${path}` })
  const read = async (path: string) =>
    JSON.parse((await (await s3.send(new GetObjectCommand(at(path)))).Body?.transformToString()) ?? '')
  for (const path of ['providers', 'providers/t01000', 'tasks', 'my-tasks', 'my-provider/tasks', 'price-statistics'])
    t.type(await read(path), 'object', path)
  t.match(await read(`tasks/${TaskUuid}`), { Task: { TaskName: 'nightly' } })
  t.match(await read('providers/t01000/offline-deals'), { Deals: [{ DealCid: DEAL_CID }] })
  const Body = JSON.stringify({ Status: 'Waiting', Note: 'again' })
  await s3.send(new PutObjectCommand({ ...at(`my-provider/deals/${Deals[0].Id}`), Body }))
  t.match(await read('providers/t01000/offline-deals'), { Deals: [{ Status: 'Waiting', Note: 'again' }] })
})
