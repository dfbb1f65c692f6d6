import t, { type Test } from 'tap'
import { indexSchema } from '../../../src/services/gateway/index-schema.js'
import type { Connection, Statement } from '../../../src/services/store/database.js'
import { emptyDatabase } from '../engine.js'
import { type Client, startGateway } from './client.js'

/** The texts of the statements that gateways run from now on. */
function recordStatements(t: Test): string[] {
  const texts: string[] = []
  const { tables } = indexSchema
  const recording = ({ engine, prepare }: Connection): Connection => ({
    engine,
    prepare(sql) {
      const statement = prepare(sql)
      const recorded = <M extends keyof Statement>(name: M) => {
        const run = statement[name] as (...values: unknown[]) => unknown
        return ((...values: unknown[]) => {
          texts.push(sql)
          return run(...values)
        }) as Statement[M]
      }
      return { get: recorded('get'), all: recorded('all'), arrays: recorded('arrays'), run: recorded('run') }
    },
  })
  Object.assign(indexSchema, { tables: (connection: Connection) => tables(recording(connection)) })
  t.teardown(() => Object.assign(indexSchema, { tables }))
  return texts
}

const OF_VERSIONS = /\b(versions|object_locks|lock_clock)\b/
const OF_OBJECTS = /\bobjects\b/
/** Repetitions: other work may go on meanwhile. */
const TIMES = 5
const KEYS = 20

interface Scene {
  readonly client: Client
  /** The texts of the statements of a request. */
  statementsOf(request: (n: number) => Promise<unknown>): Promise<string[]>
}

async function start(t: Test): Promise<Scene> {
  const texts = recordStatements(t)
  const client = await startGateway(t, { database: await emptyDatabase(), limits: { reconcileMs: 1e9 } })
  return {
    client,
    async statementsOf(request) {
      const all: string[][] = []
      for (let n = 0; n < TIMES; n++) {
        texts.length = 0
        await request(n)
        all.push([...texts])
      }
      return all.reduce((least, one) => (one.length < least.length ? one : least))
    },
  }
}

t.test('a bucket without versions asks nothing of the tables of versions', async (t) => {
  const { client, statementsOf } = await start(t)
  const bucketName = 'bucket'
  await client.call('MakeBucket', { bucketName })
  let writes = 0
  const order = () => ({ 'x-cloud-fence': String(Date.now() * 1000 + writes), 'x-cloud-write-id': `w${writes++}` })
  const remove = (n: number) => {
    const { 'x-cloud-fence': fence, 'x-cloud-write-id': writeId } = order()
    return client.call('RemoveObject', { bucketName, objects: [`small-${n}`], fence: Number(fence), writeId })
  }
  const requests: Record<string, (n: number) => Promise<unknown>> = {
    PUT: (n) => client.put(bucketName, `small-${n}`, 'x', order()),
    'PUT of a file': (n) => client.put(bucketName, `large-${n}`, 'x'.repeat(100_000), order()),
    overwritten: () => client.put(bucketName, 'large-0', 'x', order()),
    GET: () => client.get(bucketName, 'large-1'),
    HEAD: () => client.head(bucketName, 'large-1'),
    list: () => client.call('ListObjects', { bucketName, prefix: '' }),
    DELETE: remove,
    'DELETE of nothing': remove,
  }
  for (const [name, request] of Object.entries(requests)) {
    const texts = await statementsOf(request)
    t.ok(
      texts.some((text) => OF_OBJECTS.test(text)),
      `${name}: ${texts.length} statements`,
    )
    t.same(
      texts.filter((text) => OF_VERSIONS.test(text)),
      [],
      name,
    )
  }
})

t.test('a listing of current objects costs the same however many versions they have', async (t) => {
  const { client, statementsOf } = await start(t)
  for (const bucketName of ['plain', 'versioned']) await client.call('MakeBucket', { bucketName })
  await client.call('SetBucketVersioning', { bucketName: 'versioned', status: 'Enabled' })
  for (let n = 0; n < KEYS; n++) {
    await client.put('plain', `key-${n}`, 'x')
    for (let version = 0; version < 5; version++) await client.put('versioned', `key-${n}`, 'x')
  }
  const pageOf = (bucketName: string) => async () => {
    const { objects } = await client.call('ListObjects', { bucketName, prefix: '', maxKeys: KEYS })
    t.equal(objects.length, KEYS)
  }
  const plain = await statementsOf(pageOf('plain'))
  t.same(await statementsOf(pageOf('versioned')), plain, 'the same statements')
  t.ok(plain.some((text) => OF_OBJECTS.test(text)))
  t.notOk(
    plain.some((text) => OF_VERSIONS.test(text)),
    'which read no row of another version',
  )
})
