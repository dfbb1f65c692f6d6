import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { truncateSync, unlinkSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { silentLog } from '../../../services/log.js'
import { FolderBodies } from '../../../services/store/folder-bodies.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { Scene } from './deal-scene.js'

const large = randomBytes(1_000_000)

t.test('a body that is brought back has another name', async (t) => {
  const scene = await Scene.start(t)
  const { client } = scene
  const generation = await client.put('bucket', 'key', large)
  const [first] = scene.files()
  t.ok(first?.endsWith(generation))
  await client.deal('bucket', 'key')
  for (const turn of [1, 2]) {
    t.match(await client.evict('bucket', 'key', generation), { http: 200 })
    await until('the body is gone', () => scene.files().length === 0)
    t.match(await client.retrieve('bucket', 'key'), { status: 'success' })
    const [name] = scene.files()
    t.match(name, new RegExp(`${generation}\\.[0-9a-f]{16}$`), `turn ${turn}`)
    const { body, headers } = await client.gateway.get('bucket', 'key')
    t.ok(body.equals(large))
    t.equal(headers['x-cloud-generation'], generation)
  }
  t.match(await client.deal('bucket', 'key', {}, 'token'), { status: 'success' })
  t.same(scene.lastBodies(), [large], 'which deals read')
  await scene.running.stop()
  const again = await Scene.start(t, { of: scene })
  t.ok((await again.client.gateway.get('bucket', 'key')).body.equals(large), 'and the sweep of a start keeps')
  await again.remove('key')
  await until('it is removed with its object', () => again.files().length === 0)
})

t.test('a file that the disk has lost, or a part of it, is an error', async (t) => {
  const errors: object[] = []
  const scene = await Scene.start(t, { log: { ...silentLog, error: (fields) => void errors.push(fields) } })
  const { client } = scene
  const { gateway } = client
  const many = randomBytes(20_000_000)
  await client.put('bucket', 'key', many)
  const path = `/gateway/download/bucket/key?token=${gateway.token}`
  const [answer] = await once(request(gateway.url + path, { headers: gateway.headers() }).end(), 'response')
  answer.destroy()
  await once(answer, 'close')
  t.ok((await gateway.get('bucket', 'key')).body.equals(many))
  t.same(errors, [], 'that a client goes away is none')
  const file = join(scene.folder, 'objects', scene.files()[0] as string)
  truncateSync(file, many.length - 1)
  await t.rejects(gateway.get('bucket', 'key'), 'no end of a body that is too short')
  t.match(errors, [{ err: { message: /shorter/ } }])
  t.match(await client.deal('bucket', 'key'), { http: 500, status: 'fail', message: /are not those that were stored/ })
  t.equal(scene.network.deals.size, 0)
  unlinkSync(file)
  t.match(await gateway.get('bucket', 'key'), { status: 500, headers: { 'x-cloud-error-code': 'BodyLost' } })
  await client.put('bucket', 'key', 'new')
  t.equal((await gateway.get('bucket', 'key')).text, 'new')
})

t.test('a sweep asks for many names at once, and again before each removal', async (t) => {
  const folder = temporaryFolder(t)
  const names = Array.from({ length: 50 }, (_, n) => `${n}`.padStart(30, '0').concat('ab'))
  const first = new FolderBodies(folder, silentLog)
  for (const name of names) first.committed(await (await first.create(name)).finish())
  const asked: number[] = []
  let late = names[1]
  const withRow = async (some: readonly string[]) => {
    asked.push(some.length)
    const found = some.filter((name) => name !== names[0] && name !== late)
    late = undefined
    // As of a body that was stored again.
    return new Set([...found, `${names[0]}.0123456789abcdef`])
  }
  t.equal(await new FolderBodies(folder, silentLog).sweep(withRow), 1, 'what got its row meanwhile stays')
  t.same(asked, [50, 1, 1])
})

t.test('a file that a row may name is left to the next start', async (t) => {
  const folder = temporaryFolder(t)
  const names = ['1', '2'].map((n) => n.repeat(30).concat('ab'))
  const begin = async (bodies: FolderBodies, name: string) => (await bodies.create(name)).finish()
  const withRow = async (asked: readonly string[]) => new Set(asked.filter((name) => name === names[0]))
  const first = new FolderBodies(folder, silentLog)
  first.committed(await begin(first, names[0] as string))
  const second = new FolderBodies(folder, silentLog)
  const unknown = await begin(second, names[1] as string)
  second.leave(unknown)
  t.equal(await second.sweep(withRow), 0, 'before the row is seen')
  t.ok(await second.open(unknown).then((body) => body?.close().then(() => true)))
  t.equal(await new FolderBodies(folder, silentLog).sweep(withRow), 1)
  // Beside other processes, which let it become old.
  const shared = new FolderBodies(folder, silentLog, 0)
  shared.leave(await begin(shared, names[1] as string))
  t.equal(await shared.sweep(withRow), 1)
})
