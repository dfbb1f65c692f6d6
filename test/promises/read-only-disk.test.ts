import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../support/gateway/embedded.js'
import { Dealgate, startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { starts } from './refused-start.js'
import { noSmallDisk, smallDisk } from './small-disk.js'

/** The system remounts a file system only while no process writes to it: each server is a process of its own here. */

t.test('a file system that was made read-only', { skip: noSmallDisk() }, async (t) => {
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
