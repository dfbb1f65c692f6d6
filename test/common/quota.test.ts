import t from 'tap'
import { clientOf, Quota } from '../../common/quota.js'

const signed = clientOf('some-key', '192.0.2.1')
const other = clientOf('other-key', '192.0.2.1')

t.test('a client holds as much as its bound, and all clients as much as theirs, to the last unit', async (t) => {
  const quota = new Quota({ total: 10, perClient: 6 })
  t.ok(quota.take(signed, 6))
  t.notOk(quota.take(signed, 1), 'one more than the client may hold')
  t.notOk(quota.take(other, 5), 'one more than all may hold')
  t.equal(quota.held, 6, 'what was refused takes nothing')
  t.ok(quota.take(other, 4))
  t.notOk(quota.take(other, 1))
  quota.give(signed, 6)
  t.ok(quota.take(other, 2))
  t.equal(quota.held, 6)
})

t.test('clients without a signature hold half of it together', async (t) => {
  const quota = new Quota({ total: 10, perClient: 5 })
  const [one, two] = [clientOf('', '192.0.2.1'), clientOf('', '198.51.100.1')]
  t.ok(quota.take(one, 4))
  t.notOk(quota.take(two, 2), 'more than half')
  t.ok(quota.take(two, 1))
  t.notOk(quota.take(two, 1))
  t.ok(quota.take(signed, 5), 'the other half is left for those with one')
})
