import t from 'tap'
import { Attempts } from '../../../src/plugins/upstream/sign-in.js'

t.test('five failures make an access key wait, and no other', async (t) => {
  let now = 0
  const attempts = new Attempts(() => now)
  const fail = () => attempts.run('a', () => Promise.reject(new Error('wrong')))
  for (let i = 0; i < 4; i++) await t.rejects(fail(), { message: 'wrong' })
  t.equal(await attempts.run('a', async () => 'in'), 'in', 'a success forgets the failures')
  for (let i = 0; i < 5; i++) await t.rejects(fail(), { message: 'wrong' })
  await t.rejects(fail(), { code: 'SlowDown', headers: { 'retry-after': '900' } })
  await t.rejects(
    attempts.run('a', async () => 'in'),
    { code: 'SlowDown' },
    'also with the right one',
  )
  t.equal(await attempts.run('b', async () => 'in'), 'in')
  now += 15 * 60_000
  t.equal(await attempts.run('a', async () => 'in'), 'in')
})
