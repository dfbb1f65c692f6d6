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
/** Those of `npm test` and `npm run test:engines`, which have little time. */
const SAMPLE = onPostgres ? ['three gateways'] : ['redis', 'no fences']
const skip = withoutChecker()

const written = [
  { op: 'put', value: 'a', tags: 'a' },
  { op: 'put', value: 'b', tags: 'b' },
] as const
const [a, b] = written
const ok = { outcome: 'ok' }
const seen = (value: string, tags = '') => ({ ...ok, found: { value, mark: value, tags, tagged: value !== '' } })

interface Case {
  /** Operations, each with the times of its call and its return. */
  readonly history: readonly (readonly [number, number, object])[]
  readonly code: number
}

// One that is too strict fails for the histories below.
const cases: Record<string, Case> = {
  'writes and reads in turn': {
    history: [
      [1, 2, { ...a, ...ok }],
      [3, 4, { op: 'read', ...seen('a') }],
      [5, 6, { op: 'delete', ...ok }],
      [7, 8, { op: 'read', outcome: 'absent' }],
    ],
    code: 0,
  },
  'a lost update: two replacements of one version': {
    history: [
      [1, 2, { op: 'put', value: '0', tags: '0', ...ok }],
      [3, 6, { ...a, match: '0', ...ok }],
      [4, 7, { ...b, match: '0', ...ok }],
    ],
    code: 1,
  },
  'two creations': {
    history: [
      [1, 4, { ...a, create: true, ...ok }],
      [2, 5, { ...b, create: true, ...ok }],
    ],
    code: 1,
  },
  'a creation refused without an object': { history: [[1, 2, { ...a, create: true, outcome: 'refused' }]], code: 1 },
  'a stale read': {
    history: [
      [1, 2, { ...a, ...ok }],
      [3, 4, { ...b, ...ok }],
      [5, 6, { op: 'read', ...seen('a') }],
    ],
    code: 1,
  },
  'a read that goes back': {
    history: [
      [1, 2, { ...a, ...ok }],
      [3, 9, { ...b, ...ok }],
      [4, 5, { op: 'read', ...seen('b') }],
      [6, 7, { op: 'head', ...seen('a') }],
    ],
    code: 1,
  },
  'a removed object that comes back': {
    history: [
      [1, 2, { ...a, ...ok }],
      [3, 4, { op: 'delete', ...ok }],
      [5, 6, { op: 'read', ...seen('a') }],
    ],
    code: 1,
  },
  'the metadata of another write': {
    history: [
      [1, 2, { ...a, ...ok }],
      [3, 4, { op: 'head', ...ok, found: { value: 'a', mark: 'b', tagged: true } }],
    ],
    code: 1,
  },
  'a write with an unknown outcome that takes effect after an acknowledged one': {
    history: [
      [1, 2, { ...a, outcome: 'info' }],
      [3, 4, { ...b, ...ok }],
      [5, 6, { op: 'read', ...seen('a') }],
    ],
    code: 1,
  },
  'a write that failed and is there': {
    history: [
      [1, 2, { ...a, outcome: 'fail' }],
      [3, 4, { op: 'read', ...seen('a') }],
    ],
    code: 1,
  },
  'tags that are missing during the write': {
    history: [
      [1, 4, { ...a, ...ok }],
      [2, 3, { op: 'tags', ...seen('') }],
    ],
    code: 1,
  },
  'an object without tags during the write': {
    history: [
      [1, 4, { ...a, ...ok }],
      [2, 3, { op: 'head', ...ok, found: { value: 'a', mark: 'a' } }],
    ],
    code: 1,
  },
  'tags that are missing after the write': {
    history: [
      [1, 2, { ...a, ...ok }],
      [3, 4, { op: 'tags', ...seen('') }],
    ],
    code: 1,
  },
  'tags of the object before': {
    history: [
      [1, 2, { ...a, ...ok }],
      [3, 4, { ...b, ...ok }],
      [5, 6, { op: 'tags', ...seen('', 'a') }],
    ],
    code: 1,
  },
  'tags that were lost': {
    history: [
      [1, 2, { ...a, ...ok }],
      [3, 4, { op: 'tag', tags: 'c', ...ok }],
      [5, 6, { op: 'tags', ...seen('', 'a') }],
    ],
    code: 1,
  },
  'a write with an unknown outcome that takes effect after later tags': {
    history: [
      [1, 2, { ...a, ...ok }],
      [3, 4, { ...b, outcome: 'info' }],
      [5, 6, { op: 'tag', tags: 'c', ...ok }],
      [7, 8, { op: 'read', ...seen('a') }],
      [9, 10, { op: 'read', ...seen('b') }],
    ],
    code: 1,
  },
  'no operation': { history: [], code: 2 },
  'an operation that the checker does not know': { history: [[1, 2, { op: 'read', result: 'ok' }]], code: 2 },
}

t.test('the checker refuses what has no order', { skip }, async (t) => {
  for (const [name, { history, code }] of Object.entries(cases)) {
    const operations = history.map(([call, end, operation], client) => {
      return { client, key: 'k', call, return: end, ...operation }
    })
    const lines = [{ seed: 0, model: 'fenced' }, ...operations].map((line) => `${JSON.stringify(line)}\n`).join('')
    const verdict = await verdictOn(t, lines)
    t.equal(verdict.code, code, `${name}\n${verdict.text}`)
  }
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
