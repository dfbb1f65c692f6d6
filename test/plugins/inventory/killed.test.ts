import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import {
  Bucket,
  configure,
  type Inventory,
  inventoryRows,
  REPORTS,
  read,
} from '../../support/plugins/inventory-scene.js'
import { sdkFor } from '../../support/programs/sdk.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { ask, completed } from '../../support/server/many-deaths.js'
import { sendUntilDone } from '../../support/sign/send.js'

// `npm run stress` has more objects and more deaths.

const STRESS = process.env.DEALGATE_STRESS_ROUNDS !== undefined
const OBJECTS = STRESS ? 20_000 : 4_000
const DEATHS = STRESS ? 10 : 3
/** Rows of a file; a page has 1000. */
const FILE_ROWS = 1000

t.test('a server that is killed goes on behind the last file, and announces nothing before the end', async (t) => {
  // A run takes two seconds at least, in which the server dies.
  const args = ['--inventory-file-rows', String(FILE_ROWS), '--inventory-rate', String(OBJECTS / 2)]
  const server = await startDealgate(t, { args: [...args, '--inventory-interval-seconds', '0'] })
  const client = () => sdkFor(t, server)
  for (const bucket of [Bucket, REPORTS]) await client().createBucket({ Bucket: bucket })
  const keys = Array.from({ length: OBJECTS }, (_, i) => `objects/${String(i).padStart(5, '0')}`)
  await sendUntilDone(
    server,
    keys.map((key) => ({ method: 'PUT', target: `/${Bucket}/${key}`, body: Buffer.from('x') })),
  )
  await configure(client(), 'all', { fields: ['Size', 'ETag'] })

  const order = (wait: number) =>
    ask(server, 'POST', `/${Bucket}?x-inventory=`, {
      json: { Id: 'all' },
      headers: { 'x-amz-client-token': 'one', prefer: `wait=${wait}` },
    })
  const written = async () => {
    const { Contents = [] } = await client().listObjectsV2({ Bucket: REPORTS })
    return Contents.map(({ Key = '' }) => Key)
  }
  t.equal((await order(0)).status, 202)
  for (let death = 0; death < DEATHS; death++) {
    await sleep(randomInt(100, 1200))
    await server.kill9()
    await server.start()
    const { status } = await order(0)
    const announced = (await written()).filter((key) => key.endsWith('manifest.checksum')).length
    t.ok(status === 200 || announced <= 1, 'at most the end is announced')
    if (announced === 1)
      t.equal((await inventoryRows(client(), await manifestKey())).length, OBJECTS, 'which is complete')
  }
  const { Rows, Files, Manifest } = await completed<Inventory>('the inventory', () => order(60))
  t.same([Rows, Files], [OBJECTS, OBJECTS / FILE_ROWS])
  t.same((await inventoryRows(client(), Manifest)).map(({ Key }) => Key).sort(), keys, 'each object is in it once')
  const { manifest } = await read(client(), Manifest)
  const data = (await written()).filter((key) => key.includes('/data/'))
  t.same(data, manifest.files.map(({ key }: { key: string }) => key).sort(), 'no file is left over')

  async function manifestKey(): Promise<string> {
    return (await written()).find((key) => key.endsWith('manifest.json')) ?? ''
  }
})
