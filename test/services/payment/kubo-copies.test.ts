import { execFile, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { gatewayUrl } from '../../../src/services/payment/contents/open-node.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { lastingPort } from '../../support/server/ports.js'
import { until } from '../../support/waiting.js'
import { fail, ScriptedKubo } from '../network/scripted-kubo.js'
import { CAR_TYPE, directoryCar } from './directory-car.js'
import { payerOf } from './payer.js'
import { inDatabase, startPaymentScene } from './payment-client.js'

const imports = (kubo: ScriptedKubo): number => kubo.calls.filter((command) => command === 'dag/import').length

t.test('a Kubo node has each upload before the answer', async (t) => {
  const kubo = await ScriptedKubo.start(t)
  const scene = await startPaymentScene(t, {}, { kubo: kubo.url })
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

  const elsewhere = await scene.restart({ ipfsGateway: 'https://ipfs.example.org/' })
  const named = await (await payerOf(elsewhere)).upload('a.txt', 'content')
  t.equal(named.json.data.ipfs_url, `https://ipfs.example.org/ipfs/${cid}`)
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
t.test('the address of the gateway of a node', async (t) => {
  const rpc = 'http://user:password@kubo.example.org:5001'
  for (const [address, url] of [
    ['/ip4/127.0.0.1/tcp/8080', 'http://kubo.example.org:8080'],
    ['/ip4/0.0.0.0/tcp/8080', 'http://kubo.example.org:8080'],
    ['/ip6/::/tcp/80', 'http://kubo.example.org:80'],
    ['/ip4/192.0.2.7/tcp/8080/http', 'http://192.0.2.7:8080'],
    ['/ip6/2001:db8::1/tcp/8080', 'http://[2001:db8::1]:8080'],
    ['/dns4/ipfs.example.org/tcp/80', 'http://ipfs.example.org:80'],
    ['/ip4/127.0.0.1/tcp/0', undefined],
    ['/unix/x', undefined],
  ] as const)
    t.equal(gatewayUrl(address, rpc), url, address)
})

const kubo = spawnSync('ipfs', ['version', '--number']).stdout?.toString().trim()

t.test('a real Kubo node', { skip: kubo ? false : 'needs ipfs (Kubo) on the PATH' }, async (t) => {
  const node = await startNode(t)
  const scene = await startPaymentScene(t, {}, { kubo: node.url })
  const payer = await payerOf(scene)
  const content = new Uint8Array(randomBytes(700_000))
  const file = (await payer.upload('file', content)).json.data
  t.match(file.ipfs_url, node.gateway)
  t.ok(Buffer.from(await (await fetch(file.ipfs_url)).arrayBuffer()).equals(Buffer.from(content)))
  t.match(await node.run('pin', 'ls', '--type=recursive', file.payload_cid), 'recursive')
  const { car } = await directoryCar(t, { 'site/a.txt': 'a', 'site/index.html': '<html>' })
  const directory = (await payer.upload('site.car', car, CAR_TYPE)).json.data
  t.equal(await (await fetch(`${directory.ipfs_url}/site/a.txt`)).text(), 'a')
  const exported = await node.bytes('dag', 'export', '-p=false', directory.payload_cid)
  const ours = await fetch(`${scene.payment.url}/ipfs/${directory.payload_cid}?format=car`)
  t.ok(Buffer.from(await ours.arrayBuffer()).equals(exported), 'the CAR is that of `ipfs dag export`')
})

interface Node {
  readonly url: string
  readonly gateway: string
  run(...args: string[]): Promise<string>
  bytes(...args: string[]): Promise<Buffer>
}

async function startNode(t: Test): Promise<Node> {
  const env = { ...process.env, IPFS_PATH: join(temporaryFolder(t), 'ipfs') }
  const bytes = async (...args: string[]): Promise<Buffer> =>
    (await promisify(execFile)('ipfs', args, { env, encoding: 'buffer' })).stdout
  const run = async (...args: string[]): Promise<string> => (await bytes(...args)).toString()
  const [api, gateway] = [await lastingPort(), await lastingPort()]
  await run('init', '--profile=test')
  await run('config', 'Addresses.API', `/ip4/127.0.0.1/tcp/${api}`)
  await run('config', 'Addresses.Gateway', `/ip4/127.0.0.1/tcp/${gateway}`)
  const daemon = spawn('ipfs', ['daemon', '--offline'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(async () => {
    daemon.kill('SIGKILL')
    await once(daemon, 'exit')
  })
  let text = ''
  for await (const chunk of daemon.stdout) {
    text += String(chunk)
    if (text.includes('Daemon is ready')) break
  }
  return { url: `http://127.0.0.1:${api}`, gateway: `http://127.0.0.1:${gateway}/ipfs/`, run, bytes }
}
