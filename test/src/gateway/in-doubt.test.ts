import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { Between } from '../../support/gateway/between.js'
import { startInProcess } from '../../support/server/in-process.js'
import { signedRequest } from '../../support/sign/signed-request.js'

/** Writes in doubt may be many, and stay so for minutes: docs/consistency.md. */

const KiB = 1024
const MiB = 1024 * KiB
const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

t.test('bodies of writes in doubt are not kept', async (t) => {
  const warnings: Error[] = []
  const warned = (warning: Error) => warnings.push(warning)
  process.on('warning', warned)
  t.teardown(() => process.off('warning', warned))
  const { gateway, endpoint, restart } = await startInProcess(t, 'legacy', { identities: [keys] })
  const between = await Between.start(t, gateway)
  between.leavesUnread = ({ method }) => method === 'PUT'
  await restart({ gateway: { url: between.url, account: gateway.account, timeoutMs: 4000 } })
  const send = (path: string, body?: Buffer) =>
    signedRequest(endpoint, keys, {
      method: 'PUT',
      path,
      ...(body && { body, headers: { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } }),
    })
  t.equal((await send('/bucket')).status, 200)

  const body = Buffer.alloc(256 * KiB, 'x')
  const writes = 160
  const before = await bytesInUse()
  for (let i = 0; i < writes; ) {
    const some = Array.from({ length: 80 }, () => send(`/bucket/${i++}`, body))
    for (const { status } of await Promise.all(some)) t.equal(status, 503, 'given up')
  }
  t.equal(between.count('PUT', '/'), writes, 'each is in doubt')
  t.match(await send('/bucket/0', body), { status: 503, code: 'SlowDown' })
  // The server between has read some of each, up to 64 KiB.
  const grown = (await bytesInUse()) - before - writes * 64 * KiB
  t.ok(grown < 16 * MiB, `${Math.round(grown / MiB)} MiB are kept of ${(writes * body.length) / MiB}`)
  t.same(
    warnings.filter(({ name }) => name === 'MaxListenersExceededWarning'),
    [],
    'many writes in doubt are no leak',
  )
})

/** Of buffers that something refers to. */
async function bytesInUse(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let i = 0; i < 5; i++) {
    collect()
    await sleep(20)
  }
  return process.memoryUsage().arrayBuffers
}
