import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CID } from 'multiformats/cid'
import t from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { CAR_TYPE, directoryCar } from './directory-car.js'
import { payerOf } from './payer.js'
import { startPaymentScene } from './payment-client.js'

t.test('denied contents are answered with 410, and not taken', async (t) => {
  const file = join(temporaryFolder(t), 'denied')
  const write = (...lines: string[]): void => {
    writeFileSync(`${file}.new`, `${lines.join('\n')}\n`)
    renameSync(`${file}.new`, file)
  }
  write('version: 1', 'name: a list', '---', '# nothing yet', '')
  const scene = await startPaymentScene(t, { denylist: file })
  const payer = await payerOf(scene)
  const get = (path: string, method = 'GET') => fetch(`${scene.payment.url}/ipfs/${path}`, { method })
  const cid: string = (await payer.upload('a', 'denied')).json.data.payload_cid
  const { car } = await directoryCar(t, { 'a/denied.txt': 'denied', 'b/other.txt': 'other' })
  const root: string = (await payer.upload('x.car', car, CAR_TYPE)).json.data.payload_cid
  t.equal((await get(cid)).status, 200)

  write(`/ipfs/${CID.parse(cid).toV1()} hint=value`)
  await until('the list is read again', async () => (await get(cid)).status === 410)
  for (const path of [`${cid}?format=raw`, `${cid}?format=car`, `${CID.parse(cid).toV1()}`, `${root}/a/denied.txt`]) {
    t.equal((await get(path)).status, 410, path)
    t.equal((await get(path, 'HEAD')).status, 410, path)
  }
  t.match(await (await get(cid)).json(), { code: 410, message: /operator of this gateway does not send Qm/ })
  t.equal((await get(`${root}/b/other.txt`)).status, 200)
  t.equal((await get(`${root}/b?format=tar`)).status, 200)
  for (const format of ['car', 'tar']) {
    await t.rejects(async () => (await get(`${root}?format=${format}`)).arrayBuffer(), `a ${format} breaks off`)
  }
  t.match(await payer.upload('again', 'denied'), { status: 403, json: { message: /does not take this content/ } })
  t.equal((await payer.upload('fine', 'fine')).status, 200)

  write('/ipfs/nonsense')
  rmSync(`${file}.new`, { force: true })
  t.equal((await get(cid)).status, 410)
  await t.rejects(startPaymentScene(t, { denylist: file }), { message: /line 1 of .*must be \/ipfs\/ and a CID/ })
  await t.rejects(startPaymentScene(t, { denylist: `${file}.none` }), { message: /cannot be read/ })
  write(`/ipfs/${root}/*`)
  await until('the list is read again', async () => (await get(cid)).status === 200)
  t.equal((await get(`${root}/b/other.txt`)).status, 410, 'what lies below a denied directory')
})
