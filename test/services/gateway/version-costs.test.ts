import t, { type Test } from 'tap'
import { indexSchema } from '../../../src/services/gateway/index-schema.js'
import type { Connection, Statement } from '../../../src/services/store/database.js'
import { emptyDatabase } from '../engine.js'
import { startGateway } from './client.js'

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

t.test(
  'a bucket without versions asks nothing of the tables of versions, nor does a listing of any other',
  async (t) => {
    const texts = recordStatements(t)
    const client = await startGateway(t, { database: await emptyDatabase(), limits: { reconcileMs: 1e9 } })
    const statementsOf = async (request: (n: number) => Promise<unknown>): Promise<string[]> => {
      const all: string[][] = []
      for (let n = 0; n < TIMES; n++) {
        texts.length = 0
        await request(n)
        all.push([...texts])
      }
      return all.reduce((least, one) => (one.length < least.length ? one : least))
    }
    for (const bucketName of ['plain', 'versioned']) await client.call('MakeBucket', { bucketName })
    await client.call('SetBucketVersioning', { bucketName: 'versioned', status: 'Enabled' })
    for (let n = 0; n < KEYS; n++) {
      await client.put('plain', `key-${n}`, 'x')
      for (let version = 0; version < 5; version++) await client.put('versioned', `key-${n}`, 'x')
    }
    const list = (bucketName: string) => client.call('ListObjects', { bucketName, prefix: '', maxKeys: KEYS })
    const inPlain = await statementsOf(() => list('plain'))
    t.same(
      await statementsOf(() => list('versioned')),
      inPlain,
      'a listing costs the same, whatever versions there are',
    )

    let writes = 0
    const order = () => ({ 'x-cloud-fence': String(Date.now() * 1000 + writes), 'x-cloud-write-id': `w${writes++}` })
    const remove = (n: number) => {
      const { 'x-cloud-fence': fence, 'x-cloud-write-id': writeId } = order()
      return client.call('RemoveObject', {
        bucketName: 'plain',
        objects: [`small-${n}`],
        fence: Number(fence),
        writeId,
      })
    }
    const requests: Record<string, (n: number) => Promise<unknown>> = {
      PUT: (n) => client.put('plain', `small-${n}`, 'x', order()),
      'PUT of a file': (n) => client.put('plain', `large-${n}`, 'x'.repeat(100_000), order()),
      overwritten: () => client.put('plain', 'large-0', 'x', order()),
      GET: () => client.get('plain', 'large-1'),
      HEAD: () => client.head('plain', 'large-1'),
      list: () => list('plain'),
      DELETE: remove,
      'DELETE of nothing': remove,
    }
    for (const [name, request] of Object.entries(requests)) {
      const asked = await statementsOf(request)
      t.ok(asked.join().match(OF_OBJECTS), `${name}: ${asked.length} statements`)
      t.notMatch(asked.join(), OF_VERSIONS, name)
    }
  },
)
