import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { awsVersions } from '../../support/programs/aws-cli.js'
import { farFromMidnight } from '../../support/waiting.js'
import { jsonCommands } from '../describe/aws-model/json-commands.js'
import { CSV, DEAL_CID, owner, startPlatform, startTaskProxy } from './scene.js'

t.test('every row by the model of aws-cli, and the reads as objects of the bucket -', async (t) => {
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
  t.match(await call('get-provider', '--miner-id', 't01000'), { Provider: { MinerId: 't01000' } })
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
  t.match(await call('list-bucket-tasks', '--bucket', 'photos'), { Tasks: [{ TaskUuid, Status: 'Assigned' }] })
  t.match(await call('list-my-tasks'), { Tasks: [{ TaskName: 'nightly', Tags: ['a', 'b'] }], TotalItems: 1 })
  t.match(await call('list-public-tasks', '--status', 'Created'), { Tasks: [] })
  t.match(await call('get-task', '--task-uuid', TaskUuid), {
    Deals: [{ DealCid: DEAL_CID }],
    Source: { Bucket: 'photos' },
  })
  t.match(await call('list-my-provider-tasks'), { Tasks: [{ TaskName: 'nightly' }] })
  const { Deals } = await call('list-provider-deals', '--miner-fid', 't01000')
  t.match(await call('update-my-deal', '--deal', String(Deals[0].Id), '--status', 'Waiting'), {
    Deal: { Status: 'Waiting' },
  })
  const named = ['--task-uuid', TaskUuid, '--deal-cid', DEAL_CID]
  t.match(await call('update-task-deal-status', ...named, '--status', 'Downloading'), { Message: /Downloading/ })
  t.match(await call('put-task-deal-status', ...named, '--status', 'DownloadFailed'), { Message: /DownloadFailed/ })
  t.match(await call('get-price-statistics'), { AveragePricePerGBPerYear: { Unit: 'FIL' } })

  const read = async (path: string) => JSON.parse(await aws('s3', 'cp', `s3://-/task/v1/${path}`, '-'))
  for (const path of ['providers', 'providers/t01000', 'tasks', 'my-tasks', 'my-provider/tasks', 'price-statistics'])
    t.type(await read(path), 'object', path)
  t.match(await read(`tasks/${TaskUuid}`), { Task: { TaskName: 'nightly' } })
  t.match(await read('providers/t01000/offline-deals'), { Deals: [{ DealCid: DEAL_CID }] })
  const state = join(home, 'state.json')
  await writeFile(state, JSON.stringify({ Status: 'Waiting', Note: 'again' }))
  await aws(
    's3api',
    'put-object',
    '--bucket',
    '-',
    '--key',
    `task/v1/my-provider/deals/${Deals[0].Id}`,
    '--body',
    state,
  )
  t.match(await read('providers/t01000/offline-deals'), { Deals: [{ Status: 'Waiting', Note: 'again' }] })

  const object = ['--bucket', 'photos', '--key', 'deals.csv']
  const price = ['--miner-id', 't01001', '--price', '0.0000001', '--duration-epochs', '518400']
  const { Deal } = await call('create-object-deal', ...object, ...price)
  await proxy.send('PUT', '/photos/joined.csv', { body: CSV.replace(DEAL_CID, Deal.DealCid) })
  const joined = ['--manifest-bucket', 'photos', '--manifest-key', 'joined.csv', '--prefer', 'wait=60']
  const created = await call('create-task', ...terms.map((term) => (term === 'nightly' ? 'joined' : term)), ...joined)
  t.match(await call('list-object-deals', ...object, '--expand', 'task'), {
    DealEntry: [{ Deal: { DealCid: Deal.DealCid }, Task: { TaskUuid: created.TaskUuid, Bids: [] } }],
  })
  t.match(await call('get-deal', '--deal-cid', Deal.DealCid, '--expand', 'task'), { Task: { TaskName: 'joined' } })
})
