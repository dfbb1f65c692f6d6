import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createLogger } from '../../../src/common/log.js'
import { acceptLoss } from '../../../src/state/open-backend.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { CSV, startPlatform, startTaskProxy } from './scene.js'

// A state store that is restored from a backup lacks the jobs of later requests. The client repeats such a request.

t.test('a client token posts one task, also when its job is lost', async (t) => {
  const { gateway, platform } = await startPlatform(t)
  const data = temporaryFolder(t)
  const backup = join(temporaryFolder(t), 'backup')
  const start = () => startTaskProxy(t, gateway, { platformUrl: platform.url, data })
  const { email: Email, password: Password } = platform.user
  const order = async (proxy: Awaited<ReturnType<typeof start>>, token: string, other: object = {}) => {
    const { status, body } = await proxy.send('POST', '/-/task/v1/tasks', {
      body: { TaskName: 'nightly', IsPublic: true, BidMode: 0, MaxPrice: '0', File: CSV, ...other },
      headers: { 'x-amz-client-token': token, prefer: 'wait=60' },
    })
    return { status, body, uuid: JSON.parse(body).TaskUuid as string | undefined }
  }
  const first = await start()
  await first.ask('POST', '/-/task/v1/session', { Email, Password, Store: true })
  await first.close()
  cpSync(data, backup, { recursive: true })
  const second = await start()
  const posted = await order(second, 'one')
  t.equal(posted.status, 200, posted.body)
  t.ok(posted.uuid)
  const restored = async (proxy: Awaited<ReturnType<typeof start>>) => {
    await proxy.close()
    rmSync(data, { recursive: true })
    cpSync(backup, data, { recursive: true })
    // The gateway notices it, and the operator accepts the loss.
    const noticing = await start()
    t.match(await order(noticing, 'one'), { status: 503, body: /older than it was/ })
    await noticing.close()
    t.equal(await acceptLoss({ data, log: createLogger({ level: 'silent' }) }), true)
    return start()
  }
  let third = second
  for (const other of [
    { TaskName: 'weekly' },
    { IsPublic: false, MinerId: 't01000' },
    { MaxPrice: '0.1' },
    { File: `${CSV}${CSV.split('\n')[1]}\n` },
  ]) {
    third = await restored(third)
    const refused = await order(third, 'one', other)
    t.match(refused, { status: 409, body: /IdempotencyParameterMismatch/ }, Object.keys(other).join())
  }
  third = await restored(third)
  const again = await order(third, 'one')
  t.equal(again.status, 200, again.body)
  t.equal(again.uuid, posted.uuid)
  t.equal((await third.ask('GET', '/-/task/v1/my-tasks')).TotalItems, 1)
  t.not((await order(third, 'two')).uuid, posted.uuid)
  t.equal((await third.ask('GET', '/-/task/v1/my-tasks')).TotalItems, 2)
})
