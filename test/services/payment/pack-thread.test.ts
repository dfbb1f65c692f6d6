import { randomBytes } from 'node:crypto'
import { createReadStream, readdirSync, readlinkSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { CID } from 'multiformats/cid'
import t, { type Test } from 'tap'
import { PackThread } from '../../../src/services/network/pack/index.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { CAR_TYPE, directoryCar } from './directory-car.js'
import { payerOf } from './payer.js'
import { startPaymentScene } from './payment-client.js'

/** The threads that this process has started since. */
function startedThreads(t: Test): Worker[] {
  const threads: Worker[] = []
  const started = (thread: Worker) => threads.push(thread)
  process.on('worker', started)
  t.teardown(() => process.off('worker', started))
  return threads
}

const files = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [String(n).padStart(5, '0'), `content ${n}`]))

t.test('CARs are packed and read in one thread of their own', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const { car, cid } = await directoryCar(t, files(500))
  const threads = startedThreads(t)
  const uploaded = await Promise.all([1, 2, 3].map(() => payer.upload('d.car', car, CAR_TYPE)))
  for (const { status, json } of uploaded) {
    t.equal(status, 200)
    t.equal(CID.parse(json.data.payload_cid).toV1().toString(), cid)
  }
  const url = `${scene.payment.url}/ipfs/${uploaded[0]?.json.data.payload_cid}?format=car`
  const read = await Promise.all([1, 2, 3].map(async () => Buffer.from(await (await fetch(url)).arrayBuffer())))
  for (const one of read) t.ok(one.length > car.length * 0.9 && one.equals(read[0] as Buffer))
  t.equal(threads.length, 1)

  await threads[0]?.terminate()
  t.equal((await fetch(url)).status, 200, 'a thread that died is replaced')
  t.equal(threads.length, 2)
  t.match((await payer.upload('d.car', 'no CAR', CAR_TYPE)).json, { status: 'error' }, 'an error of the thread')
})

t.test('a CAR is left when its reader leaves', async (t) => {
  const { car, cid } = await directoryCar(t, files(3000))
  const file = join(temporaryFolder(t), 'd.car')
  await writeFile(file, car)
  const thread = new PackThread()
  const isOpen = () =>
    readdirSync('/proc/self/fd').some((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`) === file
      } catch {
        return false
      }
    })
  const linux = process.platform === 'linux'
  let batches = 0
  for await (const batch of thread.car(file, CID.parse(cid), { scope: 'all', duplicates: false })) {
    t.ok(batch.length < 256 * 1024, 'a batch, and not the whole')
    if (linux) t.ok(isOpen())
    if (++batches === 2) break
  }
  if (linux) t.notOk(isOpen(), 'the thread has stopped reading')
})

t.test('a copy of a directory is left when its client leaves', async (t) => {
  const { car } = await directoryCar(t, files(8000))
  const folder = temporaryFolder(t)
  const received = join(temporaryFolder(t), 'received.car')
  await writeFile(received, car)
  const gone = new AbortController()
  const copied = new PackThread().directory(createReadStream(received), join(folder, 'd.car'), gone.signal)
  const refused = t.rejects(copied, { message: 'gone' })
  await until('the thread copies', () => readdirSync(folder).includes('d.car'))
  gone.abort(new Error('gone'))
  await refused
  t.same(readdirSync(folder), [], 'the thread has removed what it wrote')
})

t.test('one machine gets a bounded number of CARs at a time', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const { json } = await payer.upload('large', new Uint8Array(randomBytes(16 * 1024 * 1024)))
  const url = `${scene.payment.url}/ipfs/${json.data.payload_cid}?format=car`
  const ask = (forwarded: string) =>
    new Promise<number>((resolve, reject) => {
      const asked = get(url, { agent: false, headers: { 'x-forwarded-for': forwarded } }, (answer) => {
        t.teardown(() => answer.destroy())
        resolve(answer.statusCode ?? 0)
      })
      asked.on('error', reject)
    })
  for (let n = 0; n < 16; n++) t.equal(await ask('192.0.2.1'), 200)
  t.equal(await ask('192.0.2.1'), 503)
  t.equal(await ask('192.0.2.2'), 200, 'another machine')
})
