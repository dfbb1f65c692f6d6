import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { openingFailure } from '../../common/opening-failure.js'
import { bytes } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { startGateway } from '../support/gateway/embedded.js'
import { Dealgate, startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { fill, noSmallDisk, smallDisk, unfill } from './small-disk.js'

/** A start that the data folder does not allow ends with one line: which file or folder, why, and what to do. */

const noDisk = noSmallDisk()
const KiB = 1024

/** True when the server started; it is stopped then. Otherwise checks how it ended. */
async function starts(t: Test, server: Dealgate, path: string, reason: RegExp): Promise<boolean> {
  const before = server.log.length
  try {
    await server.start()
  } catch {
    t.equal((await server.stop()).code, 1, 'the exit code is 1')
    const said = server.log.slice(before)
    const plain = said.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
    t.equal(plain.length, 1, `one line: ${said}`)
    t.match(plain[0], /^dealgate: /)
    t.ok(plain[0]?.includes(path), `names ${path}: ${plain[0]}`)
    t.match(plain[0], reason)
    t.notMatch(said, /\bat \S+ \(|"stack"/, 'without a stack')
    return false
  }
  t.equal((await server.stop()).code, 0)
  return true
}

/** Where a start first finds no room: in its state, in the embedded services, or not at all. */
const ROOMS = [0, 128, 16_384]

t.test('a full disk and a new data folder', { skip: noDisk }, async (t) => {
  const outcomes: boolean[] = []
  for (const room of ROOMS) {
    // Each has a disk: SQLite closes files when statements are collected, and a host lives on.
    const disk = smallDisk(t)
    const data = join(disk, `data-${room}`)
    const server = new Dealgate(data, {})
    t.teardown(() => server.stop())
    fill(disk, room * KiB)
    const started = await starts(t, server, data, /the disk is full\. Free space on the disk that holds it/)
    outcomes.push(started)
    if (!started) {
      unfill(disk)
      t.ok(await starts(t, server, data, /./), `what was begun with ${room} KiB stands in no later way`)
    }
  }
  t.equal(outcomes[0], false)
  t.equal(outcomes.at(-1), true)
})

t.test('a file system that was made read-only', { skip: noDisk }, async (t) => {
  const disk = smallDisk(t)
  const data = join(disk, 'data')
  const server = await startDealgate(t, { data })
  t.equal((await send(server, { method: 'PUT', target: '/bucket' })).status, 200)
  t.equal((await server.stop()).code, 0)
  const remount = (how: string) => execFileSync('mount', ['-o', `remount,${how}`, disk])
  remount('ro')
  const reason = /the file system is read-only\. Mount it for writing/
  t.notOk(await starts(t, server, data, reason))
  const gateway = await startGateway(t, 'full')
  t.notOk(await starts(t, new Dealgate(data, { gateway }), data, reason), 'nor without the embedded services')
  const fresh = join(disk, 'fresh')
  t.notOk(await starts(t, new Dealgate(fresh, {}), fresh, reason))
  remount('rw')
  await server.start()
  t.equal((await send(server, { method: 'HEAD', target: '/bucket' })).status, 200)
})

t.test('something else in the place of a file or folder', async (t) => {
  const gateway = await startGateway(t, 'full')
  const folder = temporaryFolder(t)
  const inTheWay = /something else has this name\. Move it away/
  for (const [name, put, reason] of [
    ['state/records.sqlite', (path: string) => mkdirSync(path), inTheWay],
    ['state/records.sqlite', (path: string) => writeFileSync(path, 'no database'.repeat(100)), /it is not a database/],
    ['state', (path: string) => writeFileSync(path, ''), inTheWay],
    ['spool', (path: string) => writeFileSync(path, ''), inTheWay],
    ['services/gateway/index.db', (path: string) => writeFileSync(path, 'x'.repeat(5000)), /it is not a database/],
    ['services/network/network.db', (path: string) => mkdirSync(path), inTheWay],
    ['services/lock', (path: string) => mkdirSync(path), inTheWay],
  ] as const) {
    const data = join(folder, `${name.replaceAll('/', '-')}-${put.length}-${reason.source.length}`)
    const path = join(data, name)
    mkdirSync(dirname(path), { recursive: true })
    put(path)
    const server = new Dealgate(data, name.startsWith('services') ? {} : { gateway })
    t.notOk(await starts(t, server, path, reason), `${name} is in the way`)
  }
})

t.test('what the system refuses to an account that is not root', async (t) => {
  const error = Object.assign(new Error('refused'), { code: 'EACCES', syscall: 'open' })
  t.match(openingFailure('/data/file', error), /^\/data\/file cannot be used: this account may not use it/)
  t.match(openingFailure('/data', Object.assign(error, { path: '/data/other' })), /^\/data\/other /)
  t.equal(openingFailure('/data', Object.assign(error, { syscall: 'listen' })), undefined, 'a port is no file')
})

/** Gives the room back, and waits until the server has reserved its own again. */
async function clear(folder: string): Promise<void> {
  unfill(folder)
  await until('all reserves are held', () => {
    const files = readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name)))
    const reserves = files.filter((file) => file.endsWith('.reserve'))
    return reserves.length === 5 && reserves.every((file) => statSync(file).size === 2 * 1024 * 1024)
  })
}

async function statusOf(server: Dealgate, method: string, key: string, body?: Buffer): Promise<number> {
  return (await send(server, { method, target: `/full/${key}`, ...(body && { body }) })).status
}

async function servesButStoresNothing(t: Test, server: Dealgate, keys: readonly string[]): Promise<void> {
  const refused = await send(server, { method: 'PUT', target: '/full/new', body: bytes('new', 300_000) })
  t.match(refused, { status: 503, code: 'ServiceUnavailable' })
  t.match(refused.message, /no (space|room) left/)
  t.equal(await statusOf(server, 'GET', 'kept'), 200)
  for (const key of keys) {
    t.equal(await statusOf(server, 'GET', key), 200, key)
    t.equal(await statusOf(server, 'DELETE', key), 204, `${key} can be removed`)
    t.equal(await statusOf(server, 'HEAD', key), 404)
  }
}

/** Reads and removals go on, uploads are refused clearly, and a start succeeds. */
t.test('a full disk', { skip: noDisk }, async (t) => {
  const disk = smallDisk(t)
  const data = join(disk, 'data')
  const server = await startDealgate(t, { data })
  t.equal((await send(server, { method: 'PUT', target: '/full' })).status, 200)
  for (let i = 0; i < 30; i++) t.equal(await statusOf(server, 'PUT', `small-${i}`, bytes(`${i}`, 1000)), 200)
  for (const key of ['kept', 'large-1', 'large-2'])
    t.equal(await statusOf(server, 'PUT', key, bytes(key, 300_000)), 200)
  fill(disk)
  await servesButStoresNothing(t, server, [...Array.from({ length: 15 }, (_, i) => `small-${i}`), 'large-1'])

  await clear(disk)
  fill(disk)
  await server.kill9()
  await server.start()
  // The line that says it is ready comes on another pipe, and may be read first.
  const told = new RegExp(`"folder":"${data}[^"]*".*The disk is full`)
  await until('the log names the folder', () => told.test(server.log))
  // The start may have made room: it has truncated a log.
  fill(disk)
  await servesButStoresNothing(t, server, [...Array.from({ length: 15 }, (_, i) => `small-${i + 15}`), 'large-2'])

  await clear(disk)
  fill(disk)
  t.equal((await server.stop()).code, 0)
  await server.start()
  t.equal(await statusOf(server, 'GET', 'kept'), 200, 'also after a proper end')
  await clear(disk)

  t.equal((await server.stop()).code, 0)
  fill(disk)
  await server.start()
  t.equal(await statusOf(server, 'GET', 'kept'), 200, 'also when the disk was filled after a proper end')
  t.equal(await statusOf(server, 'DELETE', 'kept'), 204, 'and objects can be removed')
  await clear(disk)
  const status = await statusOf(server, 'PUT', 'new', bytes('new', 300_000))
  t.equal(status, 200, 'uploads go on once there is room')
})
