import t from 'tap'
import { until } from '../../support/waiting.js'
import { fail, ScriptedKubo } from '../network/scripted-kubo.js'
import { CAR_TYPE, directoryCar } from './directory-car.js'
import { payerOf } from './payer.js'
import { inDatabase, startPaymentScene } from './payment-client.js'

const imports = (kubo: ScriptedKubo): number => kubo.calls.filter((command) => command === 'dag/import').length

t.test('a Kubo node has each upload before the answer', async (t) => {
  const kubo = await ScriptedKubo.start(t)
  let scene = await startPaymentScene(t, {}, { kubo: kubo.url })
  const payer = await payerOf(scene)
  const { status, json } = await payer.upload('a.txt', 'content')
  t.equal(status, 200)
  const { payload_cid: cid, ipfs_url: url, source_file_upload_id: id } = json.data
  t.equal(url, `http://127.0.0.1:8080/ipfs/${cid}`, 'the gateway is that of the node')
  t.same([...kubo.pinned], [cid])
  t.match(await payer.get(`/storage/deal/detail/0?source_file_upload_id=${id}`), {
    source_file_upload_deal: { ipfs_url: url },
  })
  t.equal(await (await fetch(`${scene.payment.url}/ipfs/${cid}`)).text(), 'content', 'the service has it, too')
  t.equal((await payer.upload('b.txt', 'content')).status, 200)
  t.equal(imports(kubo), 1, 'what the node has is not sent again')

  kubo.scripts.set('dag/import', (_, response) => fail(response, 'no space'))
  const failed = await payer.upload('c.txt', 'other')
  t.equal(failed.status, 503)
  t.match(failed.json.message, /Kubo node.*no space/)
  t.match(await payer.get('/storage/tasks/deals'), { total_record_count: 2 }, 'nothing is recorded')
  t.equal((await payer.upload('d.txt', 'content')).status, 200)

  const addressed = async (gateway: string, options: { readonly ipfsGateway?: string } = {}) => {
    kubo.gateway = gateway
    scene = await scene.restart(options)
    const { json } = await (await payerOf(scene)).upload('a.txt', 'content')
    return json.data.ipfs_url
  }
  t.equal(await addressed('/ip4/0.0.0.0/tcp/8081'), `http://127.0.0.1:8081/ipfs/${cid}`, 'the host of its RPC')
  t.equal(await addressed('/dns4/ipfs.example.org/tcp/80'), `http://ipfs.example.org:80/ipfs/${cid}`)
  const named = await addressed('/unix/x', { ipfsGateway: 'https://ipfs.example.org/' })
  t.equal(named, `https://ipfs.example.org/ipfs/${cid}`)
})

t.test('what was there before is added, and what goes is unpinned', async (t) => {
  const kubo = await ScriptedKubo.start(t)
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const first = (await payer.upload('a.txt', 'first')).json.data
  t.match(first.ipfs_url, scene.payment.url)
  const { car } = await directoryCar(t, { 'a/b.txt': 'x' })
  const second = (await payer.upload('b.car', car, CAR_TYPE)).json.data
  kubo.pinned.add(second.payload_cid)
  const again = await scene.restart({}, { kubo: kubo.url })
  await until('the node has both', () => kubo.pinned.has(first.payload_cid))
  t.equal(imports(kubo), 1)
  await again.network.control.advance(30 * 2880)
  const { json } = await again.call('GET', '/api/v1/storage/tasks/deals', { token: await again.signIn(payer.keys) })
  t.equal(json.data.total_record_count, 0)
  // Several processes leave young pins to each other.
  await inDatabase(again, 'UPDATE pins SET asked_ms = 0')
  await again.restart()
  await until('the unpaid content is unpinned', () => !kubo.pinned.has(first.payload_cid))
  t.ok(kubo.pinned.has(second.payload_cid), 'a pin of others stays')
})
