import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { bytes } from '../support/content/content.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { modes } from '../support/server/modes.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { fill, noSmallDisk, smallDisk } from './small-disk.js'

/**
 * A full disk: reads and removals go on, uploads are refused clearly, and a start succeeds. Needs a file system of its
 * own, which only root can mount.
 */

const skip = noSmallDisk()

/** Gives the room back, and waits until the server has reserved its own again. */
async function clear(folder: string): Promise<void> {
  for (const name of readdirSync(folder)) if (name.startsWith('filler-')) rmSync(join(folder, name))
  await until('all reserves are held', () => {
    const files = readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name)))
    const reserves = files.filter((file) => file.endsWith('.reserve'))
    return reserves.length === 3 && reserves.every((file) => statSync(file).size === 2 * 1024 * 1024)
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

for (const mode of modes) {
  t.test(`${mode}: a full disk`, { skip }, async (t) => {
    const disk = smallDisk(t)
    const data = join(disk, 'data')
    const server = await startDealgate(t, { mode, data })
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
    await servesButStoresNothing(t, server, [...Array.from({ length: 15 }, (_, i) => `small-${i + 15}`), 'large-2'])

    await clear(disk)
    if (mode === 'full') {
      // A start finds the same files in both modes.
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
    }
    const status = await statusOf(server, 'PUT', 'new', bytes('new', 300_000))
    t.equal(status, 200, 'uploads go on once there is room')
  })
}
