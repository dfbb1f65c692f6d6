import t, { type Test } from 'tap'
import { bytes, KiB, MiB, sha256 } from '../support/content/content.js'
import { Between, type Fate, type Passed } from '../support/gateway/between.js'
import { startGateway } from '../support/gateway/embedded.js'
import { GatewayUser } from '../support/gateway/gateway-user.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { type Mode, modes } from '../support/server/modes.js'
import { type Answer, send, targetOf } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

/**
 * docs/design.md, promise 13: a write that was given up cannot land after a later one that was acknowledged. With
 * fences the gateway refuses it; without them the key stays in doubt until the gateway was heard: docs/consistency.md.
 */

const BUCKET = 'overtaken'
/**
 * The gateway may take so long that a busy machine does not exceed it by itself: what is not held back must go through.
 */
const ARGS = ['--gateway-timeout-seconds', '5', '--key-wait-seconds', '1']

/** Asks again as clients do, until it is answered otherwise than with 503. */
const persist = (request: () => Promise<Answer>): Promise<Answer> =>
  until('the write is acknowledged or refused', async () => {
    const answer = await request()
    return answer.status !== 503 && answer
  })

class Keys {
  readonly #server: Dealgate
  constructor(server: Dealgate) {
    this.#server = server
  }

  put = (key: string, body: Buffer, headers: Record<string, string> = {}) =>
    send(this.#server, { method: 'PUT', target: targetOf(BUCKET, key), body, headers })
  remove = (key: string) => send(this.#server, { method: 'DELETE', target: targetOf(BUCKET, key) })
  copy = (from: string, key: string) =>
    send(this.#server, {
      method: 'PUT',
      target: targetOf(BUCKET, key),
      headers: { 'x-amz-copy-source': `/${BUCKET}/${from}` },
    })
  /** The hash of what is there, or the status. */
  async is(key: string): Promise<string | number> {
    const { status, body } = await send(this.#server, { method: 'GET', target: targetOf(BUCKET, key) })
    return status === 200 ? sha256(body) : status
  }

  /** An upload of one part, and how to complete it. */
  async upload(key: string, body: Buffer): Promise<() => Promise<Answer>> {
    const target = targetOf(BUCKET, key)
    const created = await send(this.#server, { method: 'POST', target: `${target}?uploads` })
    const id = /<UploadId>([^<]+)</.exec(created.body.toString())?.[1]
    const part = await send(this.#server, { method: 'PUT', target: `${target}?partNumber=1&uploadId=${id}`, body })
    const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.etag}</ETag></Part></CompleteMultipartUpload>`
    const completion = { method: 'POST', target: `${target}?uploadId=${id}`, body: Buffer.from(list) }
    return async () => {
      const answer = await send(this.#server, completion)
      // After a while the 200 has gone out, and the error stands in the document.
      const late = /<Error><Code>(ServiceUnavailable|SlowDown)</.test(answer.body.toString())
      return late ? { ...answer, status: 503 } : answer
    }
  }
}

const isUpload = (key: string) => (request: Passed) =>
  request.method === 'PUT' && request.path.endsWith(`/upload/${BUCKET}/${key}`)
const isRemoval = (key: string) => (request: Passed) =>
  request.body.includes('web.RemoveObject') && request.body.includes(`"${key}"`)

type Scene = Awaited<ReturnType<typeof startScene>>

async function startScene(t: Test, mode: Mode) {
  const gateway = await startGateway(t, mode)
  const between = await Between.start(t, gateway)
  const server = await startDealgate(t, { mode, gateway: between, args: ARGS })
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const user = new GatewayUser(gateway)
  await user.login()
  const request = (method: string, key: string, body?: Buffer, bucket = BUCKET) =>
    send(server, { method, target: targetOf(bucket, key), ...(body && { body }) })
  return { mode, between, server, keys: new Keys(server), user, request }
}

for (const mode of modes)
  t.test(mode, async (t) => {
    const scene = await startScene(t, mode)
    const tests = { 'a server between holds a write back': heldBack, 'the first copy of a body is late': lateCopy }
    const fenced = { 'a client that takes high numbers': highNumbers, 'an earlier copy takes the fence': takenFence }
    const ofMode = mode === 'full' ? fenced : inDoubt
    for (const [name, test] of Object.entries({ ...tests, ...ofMode })) {
      await t.test(name, (t) => test(t, scene))
      scene.between.fate = () => 'pass'
    }
  })

async function heldBack(t: Test, { mode, between, keys }: Scene): Promise<void> {
  const holds = new Map<(request: Passed) => boolean, Promise<'pass'>>()
  between.fate = (request) => {
    const held = [...holds].find(([is]) => is(request))
    if (!held) return 'pass'
    holds.delete(held[0])
    return held[1]
  }
  /** Holds the next such request back until it is let go. */
  const hold = (is: (request: Passed) => boolean) => {
    let letGo = () => {}
    holds.set(is, new Promise((resolve) => (letGo = () => resolve('pass'))))
    return letGo
  }
  const small = bytes('later', 10)
  const source = bytes('source', 100)
  t.equal((await keys.put('source', source)).status, 200)

  const never = { 'if-none-match': '*' }
  const stalled: Record<string, (key: string) => Promise<() => Promise<Answer>>> = {
    put: async (key) => () => keys.put(key, bytes('first', 20)),
    'conditional put': async (key) => () => keys.put(key, bytes('first', 20), never),
    'large put': async (key) => () => keys.put(key, bytes('first', 600 * KiB)),
    copy: async (key) => () => keys.copy('source', key),
    complete: async (key) => keys.upload(key, bytes('part', 50)),
  }
  // Keys do not wait for each other, and most of this time is the time limit of the gateway.
  const overtakings = Object.entries(stalled).flatMap(([name, prepare]) => {
    const overtake = async (later: 'put' | 'conditional put' | 'delete') => {
      const key = `${name}-${later}`.replaceAll(' ', '-')
      const first = await prepare(key)
      const letGo = hold(isUpload(key))
      t.equal((await first()).status, 503, `${key}: given up`)
      const second = () => (later === 'delete' ? keys.remove(key) : keys.put(key, small, later === 'put' ? {} : never))
      const done = later === 'delete' ? 204 : 200
      if (mode === 'full') {
        t.equal((await second()).status, done, `${key}: the later one is acknowledged`)
        letGo()
        await until('the held one has been delivered', () => between.late.some(isUpload(key)))
      } else {
        t.match(await second(), { status: 503, code: 'SlowDown' }, `${key}: nothing is acknowledged meanwhile`)
        t.equal(await keys.is(key), 404, 'reads are served')
        letGo()
        // Now that it is known, the first one has made the object.
        t.equal((await persist(second)).status, later === 'conditional put' ? 412 : done, `${key}: and then it is`)
      }
      if (mode === 'full' || later !== 'conditional put')
        t.equal(await keys.is(key), later === 'delete' ? 404 : sha256(small), `${key}: and stays so`)
      else t.not(await keys.is(key), 404, `${key}: the one that was refused has changed nothing`)
    }
    return (['put', 'conditional put', 'delete'] as const).map(overtake)
  })
  await Promise.all(overtakings)

  t.equal((await keys.put('removed', source)).status, 200)
  const letGo = hold(isRemoval('removed'))
  t.equal((await keys.remove('removed')).status, 503)
  if (mode === 'legacy') {
    t.equal((await keys.put('removed', small)).status, 503)
    letGo()
  }
  t.equal((await persist(() => keys.put('removed', small))).status, 200)
  letGo()
  await until('the removal has been delivered', () => mode === 'legacy' || between.late.some(isRemoval('removed')))
  t.equal(await keys.is('removed'), sha256(small), 'an old removal takes nothing that is newer')
}

async function lateCopy(t: Test, { mode, between, keys, server }: Scene): Promise<void> {
  const { length } = server.log
  t.equal((await keys.put('warm', Buffer.of(1))).status, 200)
  const late = { deliver: () => {} }
  const held = new Promise<void>((resolve) => (late.deliver = resolve))
  let first = true
  between.fate = (request) => {
    if (!first || !isUpload('k')(request)) return 'pass'
    first = false
    return { cutAndPassOn: held }
  }
  const body = bytes('resent', 30)
  const answer = await keys.put('k', body)
  if (mode === 'legacy') {
    t.equal(answer.status, 503, 'nothing is sent twice')
    t.equal(between.requests.filter(isUpload('k')).length, 1)
    t.equal((await persist(() => keys.put('k', body))).status, 200, 'the client does it again')
    late.deliver()
    return
  }
  t.equal(answer.status, 200)
  const later = bytes('later', 30)
  t.equal((await keys.put('k', later)).status, 200)
  late.deliver()
  await until('the first copy has been delivered', () => between.late.some(isUpload('k')))
  t.equal(await keys.is('k'), sha256(later))
  t.notMatch(server.log.slice(length), /"level":50/)
}

/** Each Complete of an upload has the same write id. */
async function takenFence(t: Test, { between, keys }: Scene): Promise<void> {
  const body = bytes('part', 600 * KiB)
  const complete = await keys.upload('fence', body)
  let deliver = () => {}
  const cutAndPassOn = new Promise<void>((resolve) => (deliver = resolve))
  const fates: (() => Fate | Promise<Fate>)[] = [
    () => ({ cutAndPassOn }),
    async (): Promise<Fate> => {
      deliver()
      await until('the first copy has been delivered', () => between.late.some(isUpload('fence')))
      return 'pass'
    },
  ]
  between.fate = (request) => (isUpload('fence')(request) && fates.shift()?.()) || 'pass'
  t.equal((await complete()).status, 503, 'the connection of the first copy is lost')
  t.equal((await complete()).status, 503, 'the first copy has taken the fence of the second')
  t.equal((await complete()).status, 200, 'the write is known')
  t.equal(await keys.is('fence'), sha256(body))
}

// The other side: what keeps writes in order keeps no ordinary write out for longer than it must.

/** Has a PUT of the key be given up, and returns how to end its connection. */
async function stall(between: Between, path: string, put: () => Promise<Answer>): Promise<() => void> {
  let end = () => {}
  const fate = new Promise<Fate>((resolve) => (end = () => resolve('cut-before')))
  between.fate = (request) => (request.method === 'PUT' && request.path.endsWith(`/upload/${path}`) ? fate : 'pass')
  const { status } = await put()
  if (status !== 503) throw new Error(`${path} was not given up, but answered ${status}`)
  return end
}

async function highNumbers(t: Test, { user, request }: Scene): Promise<void> {
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
}

/** Only a gateway without fences leaves keys in doubt. */
const inDoubt: Record<string, (t: Test, scene: Scene) => Promise<void>> = {
  'a folder that cannot be removed yet': async (t, { between, request }) => {
    const end = await stall(between, `${BUCKET}/folder/one`, () => request('PUT', 'folder/one', bytes('one', 10)))
    t.match(await request('DELETE', 'folder/'), { status: 503, code: 'SlowDown' }, 'it waits for the key in doubt')
    t.equal((await request('PUT', 'folder/two', bytes('two', 10))).status, 200, 'keys beside that one do not')
    end()
    t.equal((await persist(() => request('DELETE', 'folder/'))).status, 204)
  },
  'the bucket of a key in doubt goes': async (t, { between, user, request }) => {
    t.equal((await request('PUT', '', undefined, 'goes')).status, 200)
    const put = () => request('PUT', 'key', bytes('key', 10), 'goes')
    const end = await stall(between, 'goes/key', put)
    await user.call('web.DeleteBucket', { bucketName: 'goes' })
    between.fate = () => 'pass'
    end()
    t.match(await persist(put), { status: 404, code: 'NoSuchBucket' }, 'the key is free')
  },
  'the gateway shows the account nothing any more': async (t, { between, request }) => {
    const put = () => request('PUT', 'key', bytes('key', 10))
    const end = await stall(between, `${BUCKET}/key`, put)
    let refused = 0
    between.fate = ({ body }) => {
      if (!body.includes('web.ListObjects')) return 'pass'
      refused++
      return { status: 200, body: '{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"Access Denied."}}' }
    }
    end()
    t.match(await put(), { status: 503, code: 'SlowDown' }, 'the key is in doubt')
    await until('the gateway was asked again', () => refused >= 4)
    t.match(await put(), { status: 503, code: 'SlowDown' }, 'as long as that may be mended')
    t.equal((await persist(put)).status, 200, 'and then the key is free')
    t.ok(refused >= 5, `the gateway was asked ${refused} times`)
    between.fate = () => 'pass'
    t.equal((await persist(() => request('GET', 'key'))).status, 200)
  },
}
