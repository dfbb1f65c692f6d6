import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import t from 'tap'
import { startServicesInWorker } from '../../../services/index.js'
import { md5 } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { inProcess } from './child.js'
import { connectTo, start } from './client.js'

const files = (data: string): string[] =>
  readdirSync(join(data, 'gateway', 'objects'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.includes('/'),
  )

t.test('kill -9 loses nothing that was acknowledged, and leaves nothing behind', async (t) => {
  const data = temporaryFolder(t)
  const first = await inProcess(t, data)
  await first.client.call('MakeBucket', { bucketName: 'bucket' })
  await first.client.call('SetBucketPolicy', { bucketName: 'bucket', prefix: 'p', policy: 'readonly' })

  /** MD5 of every state a key was sent in, the acknowledged ones in order. */
  const sent = new Map<string, Set<string>>()
  const acknowledged = new Map<string, string>()
  const removed = new Set<string>()
  let count = 0
  const exited = new Promise((resolve) => first.child.once('exit', resolve))
  const workers = Array.from({ length: 6 }, async (_, worker) => {
    try {
      for (let turn = 0; ; turn++) {
        const key = `${worker}/${turn % 5}`
        const body = randomBytes(turn % 2 === 0 ? 500 : 100_000)
        sent.set(key, (sent.get(key) ?? new Set()).add(md5(body)))
        const { status } = await first.client.put('bucket', key, body)
        t.equal(status, 200)
        acknowledged.set(key, md5(body))
        // What was sent before an acknowledged state is gone for good.
        sent.set(key, new Set([md5(body)]))
        const extra = `${worker}/gone ${turn}`
        await first.client.put('bucket', extra, body)
        await first.client.call('RemoveObject', { bucketName: 'bucket', objects: [extra] })
        removed.add(extra)
        if (++count === 60) first.child.kill('SIGKILL')
      }
    } catch {
      // The process is gone.
    }
  })
  await Promise.all(workers)
  await exited

  mkdirSync(join(data, 'gateway', 'objects', '00'), { recursive: true })
  writeFileSync(join(data, 'gateway', 'objects', '00', `${'f'.repeat(30)}00`), 'left by an upload cut short')
  const { child, client } = await inProcess(t, data)
  t.ok(acknowledged.size > 0)
  for (const [key] of acknowledged) {
    const { status, body, headers } = await client.get('bucket', key)
    t.equal(status, 200, `${key} is there`)
    t.ok(sent.get(key)?.has(md5(body)), 'in the acknowledged state, or the one that was under way')
    t.equal(headers.etag, `"${md5(body)}"`)
  }
  for (const key of removed) t.equal((await client.get('bucket', key)).status, 404)
  t.same((await client.call('ListAllBucketPolicies', { bucketName: 'bucket' })).policies.length, 1)

  const listed = await client.call('ListObjects', { bucketName: 'bucket', delimiter: '' })
  const objects: { readonly size: number; readonly generation: string }[] = listed.objects
  const large = objects.filter(({ size }) => size > 32 * 1024).map(({ generation }) => generation)
  await until('only the large files are left', () => files(data).length === large.length)
  t.same(
    files(data)
      .map((name) => name.slice(-32))
      .sort(),
    large.sort(),
    'only files of objects remain',
  )
  const used = objects.reduce((sum, { size }) => sum + size, 0)
  t.equal((await client.call('StorageInfo')).storageInfo.Used, used)
  child.kill('SIGKILL')
})

t.test('one instance at a time', async (t) => {
  const data = temporaryFolder(t)
  const services = await start(data)
  await t.rejects(start(data), { code: 'DATA_IN_USE', message: /is in use by another running instance/ })
  await t.rejects(startServicesInWorker({ data, gateway: { host: '127.0.0.1', port: 0 } }), { code: 'DATA_IN_USE' })
  await services.stop()
  const { child, client } = await inProcess(t, data)
  await t.rejects(start(data), { code: 'DATA_IN_USE' }, 'nor beside another process')
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await exited
  await t.rejects(client.call('ListBuckets'))
  const again = await start(data)
  await again.stop()
})

t.test('stopping lets what runs finish', async (t) => {
  const data = temporaryFolder(t)
  const services = await start(data)
  const client = await connectTo(services)
  await client.call('MakeBucket', { bucketName: 'bucket' })
  const uploads = Array.from({ length: 10 }, (_, index) =>
    client.put('bucket', `key ${index}`, Buffer.alloc(2_000_000)),
  )
  const settled = Promise.allSettled(uploads)
  await until('a file is written', () => files(data).length > 0)
  await services.stop()
  await services.stop()
  const outcomes = await settled
  const stored = outcomes.filter((outcome) => outcome.status === 'fulfilled' && outcome.value.status === 200).length
  t.ok(stored > 0)
  const again = await start(data)
  t.teardown(() => again.stop())
  t.equal((await (await connectTo(again)).names('bucket')).length, stored, 'exactly what was acknowledged')
})

t.test('a file that is no account file is named, and its secret is not', async (t) => {
  const former = temporaryFolder(t)
  mkdirSync(join(former, 'gateway'))
  writeFileSync(join(former, 'gateway', 'account.json'), '{"secretKey":"do-not-tell"}')
  const failure = await start(former).catch((error: Error) => error)
  t.match(failure, { message: /account\.json is not an account file/ })
  t.notMatch(inspect(failure), /do-not-tell/)
})

t.test('epochs and their marks are kept, replaced, and told apart', async (t) => {
  const data = temporaryFolder(t)
  const services = await start(data)
  const client = await connectTo(services)
  const state = async (params: object) => {
    const { known, others, mark } = await client.call('StateEpoch', params)
    return [known, others, mark]
  }
  for (const [params, expected, what] of [
    [{ epoch: 'folder:a', keep: true }, [false, false, 0]],
    [{}, [false, false, 0], 'the store in a data folder does not make another one look emptied'],
    [{ epoch: 'a', keep: true }, [false, false, 0], 'as it was before'],
    [{ epoch: 'folder:a', over: ['a'], keep: true }, [true, true, 0]],
    [{ epoch: 'b', keep: true }, [false, false, 0]],
    [{}, [false, true, 0]],
    [{ epoch: 'c' }, [false, true, 0], 'asking keeps nothing'],
    [{ epoch: 'c', keep: true, mark: 5 }, [false, true, 0]],
    [{ epoch: 'c', keep: true, mark: 3 }, [true, true, 5]],
    [{ epoch: 'c', keep: true, mark: 6 }, [true, true, 5]],
    [{ epoch: 'c', mark: 9 }, [true, true, 6], 'asking keeps no mark'],
    [{ epoch: 'd', over: ['b', 'c', 'never'], keep: true, mark: 1 }, [false, true, 0]],
    [{ epoch: 'c' }, [false, true, Number.MAX_SAFE_INTEGER], 'a store with it is older'],
    [{ epoch: 'd' }, [true, false, 1]],
  ] as const)
    t.same(await state(params), expected, `${JSON.stringify(params)} ${what ?? ''}`)
  for (const params of [
    { keep: true },
    { epoch: 'd', over: ['d'], keep: true },
    { epoch: 'x'.repeat(129) },
    { epoch: 'e', keep: 'yes' },
    { epoch: 'e', over: 'd' },
    { epoch: 'd', keep: true, mark: -1 },
  ])
    t.ok((await client.failure('StateEpoch', params)).message, JSON.stringify(params))
  await services.stop()
  const again = await start(data)
  t.teardown(() => again.stop())
  t.match(await (await connectTo(again)).call('StateEpoch', { epoch: 'd' }), { known: true, others: false, mark: 1 })
})
