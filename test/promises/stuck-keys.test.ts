import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { bytes, MiB, sha256 } from '../support/content/content.js'
import { Between, type Fate } from '../support/gateway/between.js'
import { startGateway } from '../support/gateway/embedded.js'
import { GatewayUser } from '../support/gateway/gateway-user.js'
import { startDealgate } from '../support/server/dealgate.js'
import type { Mode } from '../support/server/modes.js'
import { type Answer, send, targetOf } from '../support/sign/send.js'

/**
 * docs/design.md, promise 13, the other side: what keeps writes in order keeps no ordinary write out for longer than
 * it must. See docs/consistency.md.
 */

const BUCKET = 'stuck'
const PATIENCE_MS = 60_000

/** Uploads that stall are given up soon, and those beside them not because the machine is busy. */
const HASTY = ['--gateway-timeout-seconds', '4', '--key-wait-seconds', '1']

async function scene(t: Test, mode: Mode, args = HASTY) {
  const gateway = await startGateway(t, mode)
  const between = await Between.start(t, gateway)
  const server = await startDealgate(t, { mode, gateway: between, args })
  const request = (method: string, key: string, body?: Buffer) =>
    send(server, { method, target: targetOf(BUCKET, key), ...(body && { body }) })
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const user = new GatewayUser(gateway)
  await user.login()
  return { between, user, request }
}

/** Has a PUT of the key be given up, and returns how to end its connection. */
async function stall(between: Between, key: string, put: () => Promise<Answer>): Promise<() => void> {
  let end = () => {}
  const fate = new Promise<Fate>((resolve) => {
    end = () => resolve('cut-before')
  })
  between.fate = ({ method, path }) => (method === 'PUT' && path.endsWith(`/upload/${BUCKET}/${key}`) ? fate : 'pass')
  const { status } = await put()
  if (status !== 503) throw new Error(`${key} was not given up, but answered ${status}`)
  return end
}

/** Asks again as clients do, until it is answered otherwise than with 503. */
async function persist(request: () => Promise<Answer>): Promise<Answer> {
  for (const end = Date.now() + PATIENCE_MS; ; await sleep(100)) {
    const answer = await request()
    if (answer.status !== 503 || Date.now() > end) return answer
  }
}

t.test('a client that takes high numbers', async (t) => {
  const { user, request } = await scene(t, 'full', [])
  const large = bytes('large', 2 * MiB)
  const numbers = { ahead: (Date.now() + 600_000) * 1000, 'next to highest': 2 ** 52 - 1, highest: 2 ** 52 }
  for (const [name, fence] of Object.entries(numbers)) {
    const place = encodeURIComponent(name)
    const order = { 'x-cloud-fence': String(fence), 'x-cloud-write-id': 'other' }
    for (const body of [bytes('small', 10), large]) {
      const key = `${name}-${body.length}`
      await user.put(BUCKET, `${place}-${body.length}`, bytes('other', 10), order)
      for (let i = 0; i < 3; i++) t.equal((await request('PUT', key, body)).status, 200, `${key}: written`)
      t.equal(sha256((await request('GET', key)).body), sha256(body))
      t.equal((await request('DELETE', key)).status, 204, `${key}: removed`)
      t.equal((await request('GET', key)).status, 404)
      t.equal((await request('PUT', key, body)).status, 200, `${key}: written again`)
    }
    t.equal((await request('PUT', `no-${name}`, large)).status, 200, 'other keys are written')
    t.equal((await request('DELETE', `no-${name}`)).status, 204)
  }
})

t.test('legacy: a folder that cannot be removed yet', async (t) => {
  const { between, request } = await scene(t, 'legacy')
  const end = await stall(between, 'folder/one', () => request('PUT', 'folder/one', bytes('one', 10)))
  t.match(await request('DELETE', 'folder/'), { status: 503, code: 'SlowDown' }, 'it waits for the key in doubt')
  t.equal((await request('PUT', 'folder/two', bytes('two', 10))).status, 200, 'keys beside that one do not')
  end()
  t.equal((await persist(() => request('DELETE', 'folder/'))).status, 204)
})

t.test('legacy: the bucket of a key in doubt goes', async (t) => {
  const { between, user, request } = await scene(t, 'legacy')
  const put = () => request('PUT', 'key', bytes('key', 10))
  const end = await stall(between, 'key', put)
  await user.call('web.DeleteBucket', { bucketName: BUCKET })
  between.fate = () => 'pass'
  end()
  t.match(await persist(put), { status: 404, code: 'NoSuchBucket' }, 'the key is free')
})

t.test('legacy: the gateway shows the account nothing any more', async (t) => {
  const { between, request } = await scene(t, 'legacy')
  const put = () => request('PUT', 'key', bytes('key', 10))
  const end = await stall(between, 'key', put)
  let refused = 0
  between.fate = ({ body }) => {
    if (!body.includes('web.ListObjects')) return 'pass'
    refused++
    return { status: 200, body: '{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"Access Denied."}}' }
  }
  end()
  t.match(await put(), { status: 503, code: 'SlowDown' }, 'the key is in doubt')
  for (const until = Date.now() + 2 * PATIENCE_MS; refused < 4 && Date.now() < until; ) await sleep(100)
  t.match(await put(), { status: 503, code: 'SlowDown' }, 'as long as that may be mended')
  const answer = await persist(put)
  t.equal(answer.status, 200, 'and then the key is free')
  t.ok(refused >= 5, `the gateway was asked ${refused} times`)
  between.fate = () => 'pass'
  t.equal((await persist(() => request('GET', 'key'))).status, 200)
})
