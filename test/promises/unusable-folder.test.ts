import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { openingFailure } from '../../src/common/opening-failure.js'
import { temporaryFolder } from '../support/content/folders.js'
import { startGateway } from '../support/gateway/embedded.js'
import type { GatewayAddress } from '../support/gateway/gateway-address.js'
import { Dealgate, startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { fill, noSmallDisk, smallDisk } from './small-disk.js'

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

/** Where a start first finds no room: in its state, in the embedded services, or not at all. A start costs a second. */
const kinds: Record<string, readonly [(t: Test) => Promise<GatewayAddress | undefined>, rooms: readonly number[]]> = {
  'the embedded services': [async () => undefined, [0, 32, 128, 1024, 16_384]],
  'another gateway': [(t) => startGateway(t, 'full'), [0, 64, 16_384]],
}

for (const [kind, [gatewayFor, rooms]] of Object.entries(kinds)) {
  t.test(`a full disk and a new data folder, with ${kind}`, { skip: noDisk }, async (t) => {
    const gateway = await gatewayFor(t)
    const outcomes: boolean[] = []
    for (const room of rooms) {
      // Each has a disk: SQLite closes files when statements are collected, and a host lives on.
      const disk = smallDisk(t)
      const data = join(disk, `data-${room}`)
      const server = new Dealgate(data, { ...(gateway && { gateway }) })
      t.teardown(() => server.stop())
      fill(disk, room * KiB)
      const started = await starts(t, server, data, /the disk is full\. Free space on the disk that holds it/)
      t.comment(`${room} KiB: ${started ? 'started' : 'refused'}`)
      outcomes.push(started)
      if (!started) {
        for (const name of readdirSync(disk)) if (name.startsWith('filler-')) rmSync(join(disk, name))
        t.ok(await starts(t, server, data, /./), `what was begun with ${room} KiB stands in no later way`)
      }
    }
    t.equal(outcomes[0], false)
    t.equal(outcomes.at(-1), true)
  })
}

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
  const alone = new Dealgate(data, { gateway })
  t.notOk(await starts(t, alone, data, reason), 'nor without the embedded services')
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

t.test('what the system refuses', (t) => {
  for (const [code, reason] of [
    ['EACCES', /this account may not use it/],
    ['EPERM', /this account may not use it/],
    ['EROFS', /read-only/],
    ['ENOSPC', /disk is full/],
    ['EDQUOT', /disk is full/],
  ] as const) {
    const error = Object.assign(new Error('refused'), { code, syscall: 'open' })
    const said = openingFailure('/data/file', error) ?? ''
    t.match(said, reason)
    t.match(said, /^\/data\/file cannot be used: /)
    t.match(openingFailure('/data', Object.assign(error, { path: '/data/other' })), /^\/data\/other /)
  }
  const listen = Object.assign(new Error('refused'), { code: 'EACCES', syscall: 'listen' })
  t.equal(openingFailure('/data', listen), undefined, 'a port is no file')
  t.equal(openingFailure('/data', new Error('another')), undefined)
  t.end()
})
