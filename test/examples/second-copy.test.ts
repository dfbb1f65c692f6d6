import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { testPlugin } from 'dealgate/testing'
import t, { type Test } from 'tap'
import secondCopy from '../../examples/second-copy/index.js'
import { sha256 } from '../support/content/content.js'
import { startDealgate } from '../support/server/dealgate.js'
import { signedRequest, type Wanted } from '../support/sign/signed-request.js'
import { until } from '../support/waiting.js'

const SECONDS_1 = 1
const TWO_WEEKS = 14 * 86_400

async function start(t: Test, folder: string, checkSeconds: number) {
  const config = join(folder, 'dealgate.json')
  const use = resolve('dist/examples/second-copy/index.js')
  const shelf = join(folder, 'shelf')
  writeFileSync(config, JSON.stringify({ plugins: [{ use, options: { folder: shelf, checkSeconds } }] }))
  const server = await startDealgate(t, { data: join(folder, 'data'), args: ['--config', config] })
  const keys = { accessKeyId: server.accessKey, secretAccessKey: server.secretKey }
  const ask = (method: string, path: string, rest: Partial<Wanted> = {}) =>
    signedRequest(server.endpoint, keys, { method, path, ...rest })
  const copyOf = (path: string) => ask('GET', path, { query: { 'x-shelf': '', format: 'json' } })
  return { server, ask, copyOf, files: () => readdirSync(shelf).map((name) => join(shelf, name)) }
}

t.test('second-copy: its storage class has a job copy each object, and its sub-resource shows the copy', async (t) => {
  const folder = t.testdir()
  const { server, ask, copyOf, files } = await start(t, folder, TWO_WEEKS)
  await ask('PUT', '/photos')

  const put = await ask('PUT', '/photos/cat', { body: 'a cat', headers: { 'x-amz-storage-class': 'SHELF' } })
  t.equal(put.status, 200)
  const job = String(put.headers['x-dealgate-job-id'])
  t.match(job, /^j-/)
  const copy = await until('the copy is made', async () => {
    const answer = await copyOf('/photos/cat')
    return answer.status === 200 ? JSON.parse(answer.body) : undefined
  })
  t.match(copy, { Bytes: 5, Sha256: sha256('a cat'), Current: true })
  t.same(
    files().map((file) => readFileSync(file, 'utf8')),
    ['a cat'],
  )
  const head = await until('the object reports its copy', async () => {
    const answer = await ask('HEAD', '/photos/cat')
    return answer.headers['x-amz-meta-shelf'] === undefined ? undefined : answer
  })
  t.equal(head.headers['x-amz-meta-shelf'], sha256('a cat'))
  t.equal(head.headers['x-amz-storage-class'], 'GLACIER_IR', 'archived, and readable')
  t.equal((await ask('GET', '/photos/cat')).body, 'a cat')

  await ask('PUT', '/photos/dog', { body: 'a dog' })
  t.match(await copyOf('/photos/dog'), { status: 404 }, 'an object of another class has no copy')
  const called = await ask('POST', '/photos/dog', { query: { 'x-shelf': '', format: 'json' } })
  t.equal(called.status, 200, called.body)
  t.match(JSON.parse(called.body), { Bytes: 5, Sha256: sha256('a dog') })
  await ask('PUT', '/photos/dog', { body: 'another dog' })
  t.match(JSON.parse((await copyOf('/photos/dog')).body), { Sha256: sha256('a dog'), Current: false })

  await server.stop()
  const again = await start(t, folder, TWO_WEEKS)
  t.match(JSON.parse((await again.copyOf('/photos/cat')).body), { Sha256: sha256('a cat') }, 'after a restart')
})

t.test('second-copy: its periodic check mends copies, and removes those of objects that are gone', async (t) => {
  const { ask, copyOf, files } = await start(t, t.testdir(), SECONDS_1)
  await ask('PUT', '/photos')
  await ask('PUT', '/photos/cat', { body: 'a cat' })
  t.equal((await ask('POST', '/photos/cat', { query: { 'x-shelf': '' } })).status, 200)
  const [file = ''] = files()
  writeFileSync(file, 'a rat')
  await until('the copy is made again', () => readFileSync(file, 'utf8') === 'a cat')
  t.equal((await copyOf('/photos/cat')).status, 200)

  t.equal((await ask('DELETE', '/photos/cat')).status, 204)
  await until('the copy is removed', () => files().length === 0)
  t.match(await copyOf('/photos/cat'), { status: 404, code: '' })
})

t.test('second-copy keeps the contract of plugins', (t) =>
  testPlugin(t, secondCopy, { folder: join(t.testdir(), 'shelf') }),
)
