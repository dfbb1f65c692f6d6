import t from 'tap'
import { countByState } from '../../../src/index.js'

async function* records(states: readonly string[]) {
  yield* states
}

t.test('a service that states anything does not make a series of each', async (t) => {
  const names = Array.from({ length: 100 }, (_, index) => `s${index}`)
  const counted = await countByState(records(['x'.repeat(65), ...names, 's0']), (state) => state)
  t.equal(counted.length, 20)
  t.same(counted.find(({ labels }) => labels.state === 's0')?.value, 2)
  t.same(counted.find(({ labels }) => labels.state === 'Other')?.value, 82)
})
