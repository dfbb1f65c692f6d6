import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CID } from 'multiformats/cid'
import t from 'tap'
import { silentLog } from '../../../services/log.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { CAR_TYPE, Dag, directoryCar } from './directory-car.js'
import { payerOf } from './payer.js'
import { startPaymentScene } from './payment-client.js'

t.test('denied contents are answered with 410, and not taken', async (t) => {
  const file = join(temporaryFolder(t), 'denied')
  const write = (...lines: string[]): void => {
    writeFileSync(`${file}.new`, `${lines.join('\n')}\n`)
    renameSync(`${file}.new`, file)
  }
  write('version: 1', 'name: a list', '---', '# nothing yet', '')
  const errors: string[] = []
  const log = { ...silentLog, error: (_: object, message: string) => void errors.push(message) }
  const scene = await startPaymentScene(t, { denylist: file }, { log })
  const payer = await payerOf(scene)
  const get = (path: string) => fetch(`${scene.payment.url}/ipfs/${path}`)
  const cid: string = (await payer.upload('a', 'denied')).json.data.payload_cid
  const { car } = await directoryCar(t, { 'a/denied.txt': 'denied', 'b/other.txt': 'other' })
  const root: string = (await payer.upload('x.car', car, CAR_TYPE)).json.data.payload_cid
  t.equal((await get(cid)).status, 200)

  write(`/ipfs/${CID.parse(cid).toV1()} hint=value`)
  await untilDenied(`${scene.payment.url}/ipfs/${cid}`)
  for (const path of [`${cid}?format=raw`, `${cid}?format=car`, `${CID.parse(cid).toV1()}`, `${root}/a/denied.txt`]) {
    t.equal((await get(path)).status, 410, path)
  }
  t.match(await (await get(cid)).json(), { code: 410, message: /operator of this gateway does not send Qm/ })
  t.equal((await get(`${root}/b/other.txt`)).status, 200)
  await t.rejects(async () => (await get(`${root}?format=car`)).arrayBuffer(), 'a CAR breaks off')
  t.match(await payer.upload('again', 'denied'), { status: 403, json: { message: /does not take this content/ } })

  write('/ipfs/nonsense')
  await until('the broken list is read', async () => {
    t.equal((await get(cid)).status, 410, 'the former list is kept')
    return errors.some((message) => message.includes('The former one is kept'))
  })
  await t.rejects(startPaymentScene(t, { denylist: file }), { message: /line 1 of .*must be \/ipfs\/ and a CID/ })
  await t.rejects(startPaymentScene(t, { denylist: `${file}.none` }), { message: /cannot be read/ })
  write(`/ipfs/${root}/*`)
  await until('the list is read again', async () => (await get(cid)).status === 200)
  t.equal((await get(`${root}/b/other.txt`)).status, 410, 'what lies below a denied directory')
})

t.test('a denied content is not sent as a part of a file of another', async (t) => {
  const file = join(temporaryFolder(t), 'denied')
  writeFileSync(file, '')
  const scene = await startPaymentScene(t, { denylist: file })
  const payer = await payerOf(scene)
  const size = 8000
  const { car, parts, wrapped } = await wrappedFile(size)
  const root: string = (await payer.upload('x.car', car, CAR_TYPE)).json.data.payload_cid
  const get = (query = '') => fetch(`${scene.payment.url}/ipfs/${root}/file${query}`)
  t.equal((await (await get()).arrayBuffer()).byteLength, 2 * size)

  for (const denied of [wrapped, ...parts]) {
    writeFileSync(file, `/ipfs/${denied}\n`)
    await untilDenied(`${scene.payment.url}/ipfs/${denied}`)
    await t.rejects(async () => {
      const answer = await get()
      t.ok(answer.status === 410 || answer.status === 200)
      if (answer.status === 410) throw new Error('refused')
      await answer.arrayBuffer()
    }, 'a file breaks off')
    await t.rejects(async () => {
      const answer = await fetch(`${scene.payment.url}/ipfs/${root}?format=car`)
      await answer.arrayBuffer()
    }, 'a CAR breaks off')
  }
})

/** Waits until the list is read again. That may happen while an answer is under way, which then breaks off. */
async function untilDenied(url: string): Promise<void> {
  await until('the list is read again', async () => {
    const answer = await fetch(url).catch(() => undefined)
    await answer?.body?.cancel().catch(() => {})
    return answer?.status === 410
  })
}

/** A CAR of a directory with a file that consists of another file, which has two parts. */
async function wrappedFile(size: number) {
  const dag = new Dag()
  const parts = [await dag.leaf(Buffer.alloc(size, 'a')), await dag.leaf(Buffer.alloc(size, 'b'))]
  const wrapped = await dag.node(
    'file',
    parts.map((part) => ['', part, size]),
  )
  const outer = await dag.node('file', [['', wrapped, 2 * size]])
  const car = await dag.car(await dag.node('directory', [['file', outer]]))
  return { car, parts: parts.map(({ cid }) => cid), wrapped: wrapped.cid }
}
