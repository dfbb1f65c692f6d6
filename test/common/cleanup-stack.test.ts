import t from 'tap'
import { CleanupStack } from '../../src/common/cleanup-stack.js'

t.test('closers run once, in reverse order, also after one that fails', async (t) => {
  const closed: string[] = []
  const cleanup = new CleanupStack()
  cleanup.defer(() => void closed.push('first'))
  cleanup.defer(() => {
    closed.push('second')
    throw new Error('second failed')
  })
  cleanup.defer(async () => {
    closed.push('third')
    throw new Error('third failed')
  })
  await t.rejects(cleanup.close(), { message: 'third failed' })
  t.same(closed, ['third', 'second', 'first'])
  await cleanup.close()
  t.equal(closed.length, 3)
})

t.test('two calls that overlap keep the order, and both wait for the end', async (t) => {
  const closed: string[] = []
  const cleanup = new CleanupStack()
  cleanup.defer(async () => void closed.push('first'))
  let release = () => {}
  cleanup.defer(async () => {
    await new Promise<void>((resolve) => {
      release = resolve
    })
    closed.push('second')
  })
  const calls = [cleanup.close(), cleanup.close()].map((call) => call.then(() => closed.push('resolved')))
  await new Promise((resolve) => setImmediate(resolve))
  t.same(closed, [])
  release()
  await Promise.all(calls)
  t.same(closed, ['second', 'first', 'resolved', 'resolved'])
})
