import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { indexSchema } from '../../services/gateway/index-schema.js'
import { silentLog } from '../../services/log.js'
import type { Connection } from '../../services/store/database.js'
import { openStore } from '../../services/store/open.js'
import { newDatabase } from '../services/engine.js'
import { connectTo, start } from '../services/gateway/client.js'
import { S3Store } from '../services/gateway/s3-store.js'
import { postgres } from '../src/state/servers.js'
import { temporaryFolder } from '../support/content/folders.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

// `dealgate state verify` and `dealgate doctor --verify`: all bodies are compared, beside a server that runs.

t.setTimeout(600_000)

const KiB = 1024

function flip(file: string, position: number): void {
  const bytes = readFileSync(file)
  bytes.writeUInt8(bytes.readUInt8(position) ^ 1, position)
  writeFileSync(file, bytes)
}

t.test('a bit that flips under a running server', async (t) => {
  const server = await startDealgate(t, { args: ['--metrics-port', '0', '--network-epoch-seconds', '1'] })
  const put = async (target: string, body?: Buffer, headers = {}) => {
    const answer = await send(server, { method: 'PUT', target, ...(body && { body }), headers })
    t.equal(answer.status, 200, answer.body.toString())
  }
  const get = (key: string, headers = {}) => send(server, { method: 'GET', target: `/bucket/${key}`, headers })
  const damagedReads = async (): Promise<number> => {
    const text = await (await fetch(server.metrics)).text()
    return Number(/^dealgate_damaged_bodies_total\{damage="changed"\} (\d+)$/m.exec(text)?.[1])
  }
  const options = ['--data', server.data, '--gateway-port', '0', '--platform-port', '0', '--payment-port', '0']
  const doctor = () => runCli(['doctor', '--verify', '--port', new URL(server.endpoint).port, ...options])
  const verify = () => runCli(['state', 'verify', '--data', server.data, '--print', 'json'])

  const size = 300 * KiB
  const plain = randomBytes(size)
  const secret = randomBytes(size)
  await put('/bucket')
  await put('/bucket/plain', plain)
  await put('/bucket/secret', secret, { 'x-amz-server-side-encryption': 'AES256' })
  await put('/bucket/small', randomBytes(10))
  t.match(await doctor(), { stdout: /^ok {5}bytes of objects: 3 are as they were stored, 600\.[0-9] KiB$/m })
  t.match(await verify(), { code: 0, stdout: /"bodies":3,.*"added":0,"renewed":0,"damaged":\[\]/ })
  t.equal(await damagedReads(), 0)

  const root = join(server.data, 'services', 'gateway', 'objects')
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).map((name) => join(root, name))
  const bodies = files.filter((path) => statSync(path).isFile() && statSync(path).size >= size)
  t.equal(bodies.length, 2)
  for (const file of bodies) flip(file, 200 * KiB)
  for (const [key, body] of [
    ['plain', plain],
    ['secret', secret],
  ] as const) {
    const whole = await get(key).catch(() => undefined)
    t.notOk(whole?.status === 200 && !whole.cut, `${key}: no whole body`)
    t.match(await get(key, { range: `bytes=${200 * KiB}-${200 * KiB + 1}` }), { status: 500, code: 'InternalError' })
    const rest = await get(key, { range: 'bytes=5-1004' })
    t.equal(rest.status, 206)
    t.ok(rest.body.equals(body.subarray(5, 1005)), 'another chunk')
  }
  t.ok((await damagedReads()) >= 4)
  const found = await doctor()
  t.equal(found.code, 1)
  const damage = 'The body [0-9a-f]+ has other bytes than were stored from byte 196608 on\\. No deal has it\\.'
  t.match(found.stdout, /^WRONG {2}bytes of objects: 2 bodies are lost or damaged:$/m)
  for (const key of ['plain', 'secret']) t.match(found.stdout, new RegExp(`^bucket/${key}: ${damage}`, 'm'))

  for (const file of bodies) flip(file, 200 * KiB)
  const terms = Buffer.from('{"MinerId": "t01000", "Price": "0.0000000005", "DurationEpochs": 518400}')
  const post = (query: string, body: Buffer) =>
    send(server, { method: 'POST', target: `/bucket/plain?${query}=`, body })
  t.match(await post('x-deal', terms), { status: 200 })
  for (const file of bodies) flip(file, 200 * KiB)
  const verified = await verify()
  t.match(verified, {
    code: 1,
    stderr: /^bucket\/plain: .* Repair it from the deal bafy\w+: RetrieveObject with Repair\.$/m,
  })
  t.equal(JSON.parse(verified.stdout).damaged.length, 2)
  await until('the deal is active', async () => {
    const { status, body } = await post('x-deal-retrieve', Buffer.from('{"Repair": true}'))
    if (status !== 200) t.match(body.toString(), /InvalidObjectState.*answers to this deal at epoch/)
    return status === 200
  })
  t.ok((await get('plain')).body.equals(plain), 'the bytes of the deal')
  t.match(await verify(), { code: 1, stderr: /1 bodies are lost or damaged:\nbucket\/secret/ })
})

for (const engine of ['SQLite', 'PostgreSQL'] as const)
  t.test(
    `bodies of an earlier version in a store, with tables in ${engine}`,
    { skip: engine === 'PostgreSQL' && postgres.skip },
    async (t) => {
      const store = await S3Store.start(t, 'dealgate')
      if (store === undefined) return
      const data = temporaryFolder(t)
      const folder = join(data, 'services')
      const database = engine === 'SQLite' ? undefined : await newDatabase()
      const services = await start(folder, { bodies: store.bodies, database })
      const client = await connectTo(services)
      await client.call('MakeBucket', { bucketName: 'bucket' })
      const large = randomBytes(200 * KiB)
      await client.put('bucket', 'large', large)
      await client.put('bucket', 'small', 'small')
      await services.stop()
      const schema = { ...indexSchema, tables: (connection: Connection) => connection }
      const db = await openStore(schema, { file: join(folder, 'gateway', 'index.db'), database }, silentLog)
      await db.transaction((rows) => rows.prepare('DELETE FROM body_sums').run())
      await db.transaction((rows) => rows.prepare('UPDATE bodies SET crc = NULL').run())
      // As a store has it that stores bytes anew: with another ETag.
      await db.transaction((rows) =>
        rows
          .prepare(
            "UPDATE objects SET body_mark = replace(body_mark, substr(body_mark, 1, 32), 'other-1') WHERE body_mark IS NOT NULL",
          )
          .run(),
      )
      await db.close()
      const { url, credentialsFile = '' } = store.bodies
      const where = ['--data', data, '--bodies', url, '--bodies-credentials-file', credentialsFile]
      const env: Record<string, string> = database === undefined ? {} : { DEALGATE_DATABASE: database }
      const verify = async () => {
        const { code, stdout, stderr } = await runCli(['state', 'verify', ...where, '--print', 'json'], env)
        t.equal(code, 0, stderr)
        return JSON.parse(stdout)
      }
      t.match(await verify(), { bodies: 2, added: 2, renewed: 1, damaged: [] })
      t.match(await verify(), { bodies: 2, added: 0, renewed: 0, damaged: [] })
      const again = await start(folder, { bodies: store.bodies, database })
      t.teardown(() => again.stop())
      t.ok((await (await connectTo(again)).get('bucket', 'large')).body.equals(large))
    },
  )
