import { DeleteObjectCommand } from '@aws-sdk/client-s3'
import t from 'tap'
import type { Job } from '../../../src/api/jobs.js'
import { anyOrder } from '../../support/gateway/write-order.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET } from './archive-proxy.js'

/** Less than one deal costs. */
const options = { maxSpendPerDay: '0.001' } as const

async function waiting(proxy: ArchiveProxy, key: string): Promise<string> {
  await proxy.put(key)
  const [{ id } = { id: '' }] = await proxy.jobs(key)
  await until('it waits for the money of another day', async () => {
    const job = await proxy.host.own.jobs.get(id)
    return job?.progress.phase === 'WaitingForBudget'
  })
  return id
}

const wait = (proxy: ArchiveProxy, id: string): Promise<Job> => proxy.host.own.jobs.wait(id, 60_000)

t.test('deals that wait for money end at once when their object is replaced or removed', async (t) => {
  await farFromMidnight()
  const proxy = await ArchiveProxy.start(t, options)
  const replaced = []
  for (let n = 0; n < 5; n++) replaced.push(await waiting(proxy, 'a'))
  const last = replaced.pop() ?? ''
  for (const id of replaced)
    t.match(await wait(proxy, id), {
      status: 'Failed',
      failure: { code: 'PreconditionFailed', message: /replaced before its deal was made/ },
    })
  t.match(await proxy.host.own.jobs.get(last), { status: 'Active', progress: { phase: 'WaitingForBudget' } })
  await proxy.s3.send(new DeleteObjectCommand({ Bucket: BUCKET, Key: 'a' }))
  t.match(await wait(proxy, last), { status: 'Failed', failure: { code: 'NoSuchKey' } })
})

t.test('also when that happened behind the server, and over a restart', async (t) => {
  await farFromMidnight()
  const proxy = await ArchiveProxy.start(t, options)
  const gone = await waiting(proxy, 'gone')
  const stays = await waiting(proxy, 'stays')
  await proxy.host.own.gateway.remove(BUCKET, 'gone', anyOrder())
  await proxy.open(options)
  t.match(await wait(proxy, gone), { status: 'Failed', failure: { code: 'NoSuchKey' } })
  t.match(await proxy.host.own.jobs.get(stays), { status: 'Active' })
  const other = await waiting(proxy, 'stays')
  t.match(await wait(proxy, stays), { status: 'Failed', failure: { code: 'PreconditionFailed' } })
  t.match(await proxy.host.own.jobs.get(other), { status: 'Active' })
})
