import t from 'tap'
import { onPostgres } from '../services/engine.js'
import { record, scenes, verdictOn, withoutChecker } from './scene.js'

/**
 * docs/consistency.md, "How it is checked": concurrent clients see one order of the operations on each key, while
 * proxies are killed, the gateway is stopped, connections are cut and clocks jump. `npm run stress` records 200
 * histories. DEALGATE_HISTORY_SEED repeats the operations of a history, DEALGATE_HISTORIES keeps them in that folder.
 */

const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 0)
const SEED = Number(process.env.DEALGATE_HISTORY_SEED ?? Math.floor(Math.random() * 1e6))
/** Those of `npm test` and `npm test -- --suite engines`, which have little time. */
const SAMPLE = onPostgres ? ['three gateways'] : ['redis', 'embedded', 'no fences']
const skip = withoutChecker()

const a = { op: 'put', value: 'a', tags: 'a' }
const b = { op: 'put', value: 'b', tags: 'b' }
const ok = { outcome: 'ok' }
const seen = (value: string, tags = '') => ({ ...ok, found: { value, mark: value, tags, tagged: value !== '' } })

/** Operations, each with the times of its call and its return. */
type History = readonly (readonly [number, number, object])[]

// A checker that is too strict fails for the histories below.
const refused: Record<string, History> = {
  'a lost update: two replacements of one version': [
    [1, 2, { op: 'put', value: '0', tags: '0', ...ok }],
    [3, 6, { ...a, match: '0', ...ok }],
    [4, 7, { ...b, match: '0', ...ok }],
  ],
  'two creations': [
    [1, 4, { ...a, create: true, ...ok }],
    [2, 5, { ...b, create: true, ...ok }],
  ],
  'a creation refused without an object': [[1, 2, { ...a, create: true, outcome: 'refused' }]],
  'a stale read': [
    [1, 2, { ...a, ...ok }],
    [3, 4, { ...b, ...ok }],
    [5, 6, { op: 'read', ...seen('a') }],
  ],
  'a read that goes back': [
    [1, 2, { ...a, ...ok }],
    [3, 9, { ...b, ...ok }],
    [4, 5, { op: 'read', ...seen('b') }],
    [6, 7, { op: 'head', ...seen('a') }],
  ],
  'a removed object that comes back': [
    [1, 2, { ...a, ...ok }],
    [3, 4, { op: 'delete', ...ok }],
    [5, 6, { op: 'read', ...seen('a') }],
  ],
  'the metadata of another write': [
    [1, 2, { ...a, ...ok }],
    [3, 4, { op: 'head', ...ok, found: { value: 'a', mark: 'b', tagged: true } }],
  ],
  'a write with an unknown outcome that takes effect after an acknowledged one': [
    [1, 2, { ...a, outcome: 'info' }],
    [3, 4, { ...b, ...ok }],
    [5, 6, { op: 'read', ...seen('a') }],
  ],
  'a write that failed and is there': [
    [1, 2, { ...a, outcome: 'fail' }],
    [3, 4, { op: 'read', ...seen('a') }],
  ],
  'tags that are missing during the write': [
    [1, 4, { ...a, ...ok }],
    [2, 3, { op: 'tags', ...seen('') }],
  ],
  'an object without tags during the write': [
    [1, 4, { ...a, ...ok }],
    [2, 3, { op: 'head', ...ok, found: { value: 'a', mark: 'a' } }],
  ],
  'tags that are missing after the write': [
    [1, 2, { ...a, ...ok }],
    [3, 4, { op: 'tags', ...seen('') }],
  ],
  'tags of the object before': [
    [1, 2, { ...a, ...ok }],
    [3, 4, { ...b, ...ok }],
    [5, 6, { op: 'tags', ...seen('', 'a') }],
  ],
  'tags that were lost': [
    [1, 2, { ...a, ...ok }],
    [3, 4, { op: 'tag', tags: 'c', ...ok }],
    [5, 6, { op: 'tags', ...seen('', 'a') }],
  ],
  'a write with an unknown outcome that takes effect after later tags': [
    [1, 2, { ...a, ...ok }],
    [3, 4, { ...b, outcome: 'info' }],
    [5, 6, { op: 'tag', tags: 'c', ...ok }],
    [7, 8, { op: 'read', ...seen('a') }],
    [9, 10, { op: 'read', ...seen('b') }],
  ],
}

t.test('the checker refuses what has no order', { skip }, async (t) => {
  const verdict = (history: History) => {
    const operations = history.map(([call, end, operation], client) => {
      return { client, key: 'k', call, return: end, ...operation }
    })
    const lines = [{ seed: 0, model: 'fenced' }, ...operations].map((line) => `${JSON.stringify(line)}\n`)
    return verdictOn(t, lines.join(''))
  }
  for (const [name, history] of Object.entries(refused)) {
    const { code, text } = await verdict(history)
    t.equal(code, 1, `${name}\n${text}`)
  }
  t.match(await verdict([[1, 2, { ...a, ...ok }]]), { code: 0 })
  t.match(await verdict([]), { code: 2 }, 'no operation')
  t.match(await verdict([[1, 2, { op: 'read', result: 'ok' }]]), { code: 2 }, 'an operation that it does not know')
})

for (const scene of scenes.filter(({ name }) => ROUNDS > 0 || SAMPLE.includes(name))) {
  const missing = skip || scene.store?.skip
  const histories = ROUNDS === 0 ? 1 : Math.ceil(ROUNDS / scenes.length)
  t.test(
    `one order of operations: ${scene.name}`,
    { skip: missing, timeout: 120_000 + histories * 120_000 },
    async (t) => {
      for (let seed = SEED; seed < SEED + histories; seed++) {
        await t.test(`seed ${seed}`, async (t) => {
          const recorder = await record(t, scene, { seed, clients: 6, keys: 3, each: 30 })
          const { code, text } = await verdictOn(t, recorder.lines, `${scene.name} ${seed}`)
          t.equal(code, 0, text)
          t.same(recorder.strange, [])
          t.ok(recorder.count('ok') > 0, `${recorder.count('ok')} acknowledged, ${recorder.count('info')} unknown`)
        })
      }
    },
  )
}
