import { join } from 'node:path'
import t from 'tap'
import task from '../../../plugins/task/index.js'
import { openAccountBook } from '../../../src/services/gateway/accounts/account-book.js'
import { type Credentials, PASSWORD, startSts } from '../../s3/sts/sts-scene.js'
import { signedRequest, unsignedRequest } from '../../support/sign/signed-request.js'
import { stopMonotonicClock } from '../../support/waiting.js'

t.test('a stored log-in of temporary credentials ends with the secret key of their account', async (t) => {
  const scene = await startSts(t, { plugins: [task({})] })
  const email = 'kept@example.com'
  const token = await scene.newUser(email)
  const call = async (keys: Credentials, method: string, path: string, body?: object) => {
    const answer = await signedRequest(scene.endpoint, keys, {
      method,
      path,
      query: { format: 'json' },
      headers: { 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const { Code } = JSON.parse(answer.body)
    return Code ?? answer.status
  }
  const before = await scene.assume(token)
  t.equal(await call(before, 'GET', '/-/task/v1/my-tasks'), 'PlatformIdentityRequired')
  const login = { Email: email, Password: PASSWORD, Store: true }
  t.equal(await call(before, 'POST', '/-/task/v1/session', login), 200)
  const another = await scene.assume(token)
  t.equal(await call(another, 'GET', '/-/task/v1/my-tasks'), 200, 'all sessions of the account have it')
  await scene.restart()
  t.equal(await call(another, 'GET', '/-/task/v1/my-tasks'), 200)

  const book = openAccountBook(join(scene.folder, 'services'))
  book.rotate(book.all().find(({ name }) => name === email)?.accessKey ?? '')
  book.close()
  await scene.restart()
  const after = await scene.assume(token)
  t.equal(await call(after, 'GET', '/-/task/v1/my-tasks'), 'PlatformIdentityRequired')
})

t.test('unsigned requests with tokens are limited by address', async (t) => {
  stopMonotonicClock(t)
  const scene = await startSts(t, { plugins: [task({})] })
  const ask = (authorization: string) =>
    unsignedRequest(scene.endpoint, {
      method: 'GET',
      path: '/-/task/v1/my-tasks',
      query: { format: 'json' },
      headers: { authorization },
    })
  const token = await scene.owner()
  t.equal((await ask(`Bearer ${token}`)).status, 200)
  const answers: string[] = []
  for (let n = 1; n < 200 && answers.at(-1) !== 'SlowDown'; n++)
    answers.push(JSON.parse((await ask(`Bearer forged.${n}.token`)).body).Code)
  t.equal(answers.at(-1), 'SlowDown')
  t.equal(answers.length, 120)
  const { status, headers } = await ask(`Bearer ${token}`)
  t.match({ status, headers }, { status: 503, headers: { 'retry-after': '5' } })
  const keys = await scene.assume(token)
  const signed = await signedRequest(scene.endpoint, keys, { method: 'GET', path: '/-/jobs/v1' })
  t.equal(signed.status, 200, 'signed requests are not counted')
})
