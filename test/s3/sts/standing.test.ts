import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { Standing } from '../../../src/s3/sts/standing.js'

const ACCOUNT = { accessKey: 'of-the-user', secretKey: 'secret-key' }

t.test('how long an answer about a token counts', async (t) => {
  let now = 0
  let answer: () => Promise<typeof ACCOUNT | undefined> = async () => ACCOUNT
  let asked = 0
  const standing = new Standing({
    ask: () => {
      asked++
      return answer()
    },
    clock: () => now,
  })
  const look = () => standing.accountOf('token')
  t.same(await Promise.all([look(), look()]), [ACCOUNT, ACCOUNT])
  t.equal(asked, 1, 'one question for all')
  now = 24_000
  await look()
  t.equal(asked, 1)
  now = 26_000
  answer = async () => undefined
  t.same(await look(), ACCOUNT, 'an older answer still counts while it is renewed')
  t.equal(asked, 2)
  await turn()
  t.equal(await look(), undefined, 'then the new one')
  now = 80_000
  answer = async () => ({ ...ACCOUNT, secretKey: 'another-key' })
  t.match(await look(), { secretKey: 'another-key' }, 'an old answer does not count')

  now = 110_000
  answer = async () => {
    throw new Error('no answer')
  }
  t.match(await look(), { secretKey: 'another-key' }, 'a gateway that is away for a moment changes nothing')
  await turn()
  now = 126_000
  await t.rejects(look(), /no answer/, 'but a session does not outlive it')
  answer = async () => ACCOUNT
  t.same(await look(), ACCOUNT)
  t.same(await standing.accountOf('another'), ACCOUNT)
})

t.test('an answer counts from the question, not from its arrival', async (t) => {
  let now = 0
  let asked = 0
  const standing = new Standing({
    ask: async () => {
      asked++
      now += 46_000
      return ACCOUNT
    },
    clock: () => now,
  })
  await standing.accountOf('token')
  await standing.accountOf('token')
  t.equal(asked, 2)
})
