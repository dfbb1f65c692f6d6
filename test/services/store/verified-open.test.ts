import t from 'tap'
import { silentLog } from '../../../services/log.js'
import { type Bodies, BodyError, bodyInMemory } from '../../../services/store/bodies.js'
import { VerifiedBodies } from '../../../services/store/verified-bodies.js'

t.test('a body whose checksums are lost is closed, and counted as damaged', async (t) => {
  let open = 0
  const inner: Bodies = {
    create: () => Promise.reject(new Error('nothing is written')),
    async open() {
      open++
      return { ...bodyInMemory(Buffer.alloc(10)), close: async () => void open-- }
    },
    committed() {},
    leave() {},
    discard() {},
    sweep: async () => 0,
    close: async () => {},
  }
  const found: BodyError[] = []
  const kept = { row: async () => Buffer.alloc(8), adopt: async () => {} }
  const bodies = new VerifiedBodies(inner, kept, silentLog, (error) => found.push(error))
  const body = { name: 'a'.repeat(32), size: 10, mark: null }
  await t.rejects(bodies.open(body), { name: 'BodyError', message: /has lost its checksums/ })
  t.equal(open, 0, 'no file stays open')
  t.equal(found.length, 1)
  t.ok(found[0] instanceof BodyError)
})
