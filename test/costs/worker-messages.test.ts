import t from 'tap'
import { requestMany, startCounted } from './counts.js'

const COUNT = 200
/** For what workers tell each other and the supervisor once in a while, whatever they serve: a message more is 1. */
const BESIDE = 0.3

/**
 * Messages between a worker and the supervisor. A request that reads has none: what it needs is local, or comes by a
 * signal when it changes. A write has a lease: one question with its answer, and its release, which has none and
 * waits for the next message, for 2 ms at most.
 */
t.test('messages that a request costs two workers and their supervisor', async (t) => {
  const { server, counts } = await startCounted(t, ['--workers', '2'])
  const total = async () => {
    const sums: Record<string, number> = {}
    for (const { messages } of await counts())
      for (const [name, count] of Object.entries(messages)) sums[name] = (sums[name] ?? 0) + count
    return sums
  }
  const during = async (method: 'PUT' | 'GET' | 'HEAD' | 'DELETE') => {
    // Each worker learns the settings of the bucket.
    for (let n = 0; n < 4; n++) await requestMany(t, server, method === 'DELETE' ? 'PUT' : method, 50)
    const before = await total()
    await requestMany(t, server, method, COUNT)
    const after = await total()
    return (name: string) => ((after[name] ?? 0) - (before[name] ?? 0)) / COUNT
  }
  for (const method of ['PUT', 'DELETE'] as const) {
    const of = await during(method)
    t.ok(of('to: question') <= 1 + BESIDE, `${method}: ${of('to: question')} questions`)
    t.ok(of('to: release') <= 1 + BESIDE, `${method}: ${of('to: release')} releases`)
    t.ok(of('to: batches') <= 2 + BESIDE, `${method}: ${of('to: batches')} messages to the supervisor`)
    t.ok(of('from: batches') <= 1 + BESIDE, `${method}: ${of('from: batches')} messages from the supervisor`)
    t.ok(of('from: answer') > 0.9, 'and they are counted')
  }
  for (const method of ['GET', 'HEAD'] as const) {
    if (method === 'GET') await requestMany(t, server, 'PUT', 50)
    const of = await during(method)
    t.ok(of('to: batches') <= BESIDE, `${method}: ${of('to: batches')} messages to the supervisor`)
    t.ok(of('from: batches') <= BESIDE, `${method}: ${of('from: batches')} messages from the supervisor`)
  }
})
