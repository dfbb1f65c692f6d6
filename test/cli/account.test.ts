import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { Endpoint } from '../suites/sign.js'
import { dataFolder, temporaryFolder } from '../support/content/folders.js'
import { firstAccount } from '../support/gateway/embedded.js'
import { endsWithUs } from '../support/server/child.js'
import { CLI, environment, runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { signedRequest } from '../support/sign/signed-request.js'
import { account, keysFor, logsIn, type Pair } from './account-commands.js'

/** Of the tests that need no data folder of their own. */
const data = join(temporaryFolder(t), 'data')
const server = await startDealgate(t, { data })

t.test('accounts that are added, rotated and removed count at once, without a restart', async (t) => {
  const data = dataFolder(t)
  const added = await account(data, 'add', '--name', 'before the first start')
  const running = await startDealgate(t, { data })
  const owner = { accessKeyId: running.accessKey, secretAccessKey: running.secretKey }
  const second = await account(data, 'add', '--name', 'second')
  t.ok(await logsIn(running.gateway, added))
  t.ok(await logsIn(running.gateway, second))

  const tenant = await keysFor(data, second)
  const ask = (keys: typeof tenant, method: string, path: string, body = '') =>
    signedRequest(running.endpoint, keys, { method, path, body })
  t.equal((await ask(tenant, 'PUT', '/theirs')).status, 200)
  t.equal((await ask(tenant, 'PUT', '/theirs/key', 'body')).status, 200)
  t.equal((await ask(owner, 'PUT', '/mine')).status, 200)
  t.equal((await ask(owner, 'PUT', '/theirs')).code, 'BucketAlreadyExists')
  t.equal((await ask(owner, 'GET', '/theirs/key')).code, 'AccessDenied')
  t.equal((await ask(tenant, 'GET', '/mine/key')).code, 'AccessDenied')

  const listed = await runCli(['account', 'list', '--data', data])
  t.match(listed.stdout, /^ACCESS KEY +NAME +BUCKETS +CREATED +CANONICAL ID\n/)
  t.match(listed.stdout, new RegExp(`\\n${second.accessKey} +second +1 +\\S+Z +[0-9a-f]{64}\\n`))
  t.notMatch(listed.stdout, second.secretKey)

  const rotated = await account<Pair & { keys: string[] }>(data, 'rotate', second.accessKey)
  t.same(rotated.keys, [tenant.accessKeyId])
  t.notOk(await logsIn(running.gateway, second))
  t.ok(await logsIn(running.gateway, rotated))
  t.equal((await ask(tenant, 'GET', '/theirs/key')).body, 'body', 'the key pair of S3 has the new secret')
  await account(data, 'rotate', firstAccount(data).accessKey)
  t.equal((await ask(owner, 'PUT', '/mine/key', 'x')).status, 200, 'the server follows its own account')

  t.match(await runCli(['account', 'remove', second.accessKey, '--data', data]), {
    code: 1,
    stderr: /still owns buckets, such as theirs/,
  })
  await ask(tenant, 'DELETE', '/theirs/key')
  await ask(tenant, 'DELETE', '/theirs')
  t.match(await runCli(['account', 'remove', second.accessKey, '--data', data]), {
    code: 0,
    stdout: new RegExp(`act as it and no longer work: ${tenant.accessKeyId}`),
  })
  t.equal((await ask(tenant, 'GET', '/')).status, 503)
  const { stderr } = await running.stop()
  for (const { secretKey } of [added, second, rotated]) t.notMatch(stderr, secretKey)
})

t.test('what the commands refuse', async (t) => {
  const data = dataFolder(t)
  const args = ['--account-access-key', 'mine', '--account-secret-key', 'my-own-secret']
  t.match(await runCli(['account', 'list', '--data', data]), { code: 1, stderr: /has no embedded gateway yet/ })
  t.same(readdirSync(data), ['version.json'], 'nothing was created')
  t.match(await account(data, 'add', ...args), { accessKey: 'mine', secretKey: 'my-own-secret' })
  for (const [code, wrong, stderr] of [
    [1, ['add', ...args], /Another account has this access key/],
    [2, ['add', '--account-access-key', 'other'], /go together/],
    [2, ['add', '--name', 'two\nlines'], /--name must have/],
    [1, ['remove', 'unknown'], /no account with the access key unknown/],
    [1, ['rotate', 'unknown'], /no account with the access key unknown/],
  ] as const)
    t.match(await runCli(['account', ...wrong, '--data', data]), { code, stderr, stdout: '' }, wrong.join(' '))
  const keys = { DEALGATE_GATEWAY_ACCESS_KEY: 'abc', DEALGATE_GATEWAY_SECRET_KEY: 'abcdefgh' }
  const away = { DEALGATE_GATEWAY_URL: 'http://127.0.0.1:1', ...keys }
  t.match(await runCli(['account', 'list', '--data', data], away), { code: 1, stderr: /are managed there/ })
  t.equal(statSync(join(data, 'services', 'gateway', 'index.db')).mode & 0o777, 0o600)

  const running = await startDealgate(t, { data })
  const { accessKey } = firstAccount(data)
  t.match(await runCli(['account', 'remove', accessKey, '--data', data]), { code: 1, stderr: /first account/ })
  writeFileSync(join(data, 'credentials.json'), 'broken')
  const rotated = await runCli(['account', 'rotate', 'mine', '--data', data])
  t.match(rotated, { code: 1, stdout: /secret key {2}\S+/, stderr: /still has the former one: .* Repeat the command/s })
  await running.stop()
})

const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 2)
/** When commands are killed, in parts of the time of a whole one: before their work, and in it. */
const MOMENTS = [0.5, 0.85, 0.7, 0.95, 0.6, 0.9]

t.test('a command that is killed leaves the account as it was or as it was to be', async (t) => {
  const first = await account(data, 'add', '--account-access-key', 'kept', '--account-secret-key', 'first-secret')
  const tenant = await keysFor(data, first)
  const extra = { accessKey: 'extra', secretKey: 'secret-key' }
  const given = ['--account-access-key', extra.accessKey, '--account-secret-key', extra.secretKey]
  const began = performance.now()
  await account(data, 'list')
  const wholeMs = performance.now() - began
  for (let round = 0; round < ROUNDS; round++) {
    const part = MOMENTS[round % MOMENTS.length] ?? 1
    await killed(wholeMs * part, 'rotate', 'kept')
    const printed = await killed(wholeMs * part, 'add', ...given)
    const accounts = await account<Pair[]>(data, 'list')
    const isThere = accounts.some(({ accessKey }) => accessKey === extra.accessKey)
    if (printed !== '') t.ok(isThere, 'what was printed is there')
    t.equal(await logsIn(server.gateway, extra), isThere, 'a whole account or none')
    if (!isThere) continue
    const removed = await killed(wholeMs * part, 'remove', extra.accessKey)
    if (removed !== '') t.notOk(await logsIn(server.gateway, extra))
    await runCli(['account', 'remove', extra.accessKey, '--data', data])
  }
  const last = await account(data, 'rotate', 'kept')
  t.ok(await logsIn(server.gateway, last), 'a repetition repairs what a crash left')
  t.notOk(await logsIn(server.gateway, first))
  t.match(readFileSync(join(data, 'credentials.json'), 'utf8'), last.secretKey)
  t.equal((await signedRequest(server.endpoint, tenant, { method: 'PUT', path: '/theirs' })).status, 200)
})

/** Kills a command after so many milliseconds, wherever it is then, and returns what it has printed. */
async function killed(after: number, ...args: string[]): Promise<string> {
  const child = spawn(process.execPath, [...CLI, 'account', ...args, '--data', data, '--print', 'json'], {
    env: environment(),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  endsWithUs(child)
  let stdout = ''
  child.stdout.on('data', (chunk) => (stdout += chunk))
  const closed = once(child, 'close')
  await Promise.race([delay(after, undefined, { ref: false }), closed])
  child.kill('SIGKILL')
  await closed
  return stdout
}

// Quotas of accounts at the embedded gateway.

const endpointFor = ({ endpoint, region }: Endpoint, keys: { accessKeyId: string; secretAccessKey: string }) => ({
  ...{ endpoint, region },
  accessKey: keys.accessKeyId,
  secretKey: keys.secretAccessKey,
})

t.test('an account stores no more than its quota', async (t) => {
  const pair = await account(data, 'add', '--name', 'tenant')
  const keys = await keysFor(data, pair)
  const ask = (method: string, target: string, body?: Buffer) =>
    send(endpointFor(server, keys), { method, target, ...(body && { body }) })
  const put = (key: string, bytes: number) => ask('PUT', `/tenant/${key}`, Buffer.alloc(bytes))
  const quota = (...args: string[]) => account<{ usage: object }>(data, 'quota', pair.accessKey, ...args)
  const refused = { status: 403, code: 'QuotaExceeded', message: /quota of the account/ }
  const stored = async () => {
    const listed = await ask('GET', '/tenant?list-type=2')
    const sizes = [...String(listed.body).matchAll(/<Size>(\d+)</g)].map(([, size]) => Number(size))
    return { objects: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) }
  }

  t.equal((await ask('PUT', '/tenant')).status, 200)
  await quota('--bytes', '100000')
  t.same(await quota('--objects', '4'), {
    accessKey: pair.accessKey,
    quota: { bytes: 100_000, objects: 4, uploads: null },
    usage: { bytes: 0, objects: 0 },
  })
  const files = await Promise.all(Array.from({ length: 6 }, (_, i) => put(`file-${i}`, 40_000)))
  t.same(files.map(({ status }) => status).sort(), [200, 200, 403, 403, 403, 403], 'concurrent writers')
  t.same((await quota()).usage, { bytes: 80_000, objects: 2 })
  const first = `file-${files.findIndex(({ status }) => status === 200)}`
  t.equal((await put(first, 40_000)).status, 200, 'the same size again')
  t.match(await put(first, 70_000), refused, 'a larger one')
  t.equal((await ask('GET', `/tenant/${first}`)).body.length, 40_000, 'the former object stays')
  const small = await Promise.all(Array.from({ length: 6 }, (_, i) => put(`small-${i}`, 10)))
  t.same(small.map(({ status }) => status).sort(), [200, 200, 403, 403, 403, 403], 'objects')
  t.equal((await ask('DELETE', `/tenant/${first}`)).status, 204)
  t.equal((await put('one-more', 10)).status, 200)

  const writes = Array.from({ length: 4 }, (_, i) => put(`small-${i}`, 5_000).catch(() => undefined))
  await server.kill9()
  await Promise.all(writes)
  await server.start()
  t.same((await quota()).usage, await stored(), 'counted right after kill -9')
  t.ok((await stored()).objects <= 4)

  await quota('--bytes', 'none', '--objects', 'none')
  t.equal((await put('large', 200_000)).status, 200)
  const wrong = await runCli(['account', 'quota', pair.accessKey, '--bytes', 'many', '--data', data])
  t.match(wrong, { code: 2, stderr: /--bytes must be a whole number, or none/ })
})

t.test('an account has no more multipart uploads under way than its quota', async (t) => {
  const pair = await account(data, 'add')
  const quota = (uploads: string) => account(data, 'quota', pair.accessKey, '--uploads', uploads)
  const one = endpointFor(server, await keysFor(data, pair))
  const two = endpointFor(server, await keysFor(data, pair))
  const create = (who: Endpoint, n = 0) => send(who, { method: 'POST', target: `/uploads/key-${n}?uploads=` })
  t.equal((await send(one, { method: 'PUT', target: '/uploads' })).status, 200)
  const before = await create(one)
  await quota('3')
  const begun = await Promise.all(Array.from({ length: 6 }, (_, n) => create(n % 2 === 0 ? one : two, n)))
  t.same(begun.map(({ status }) => status).sort(), [200, 200, 403, 403, 403, 403], 'of all key pairs together')
  t.match(await create(one), { code: 'QuotaExceeded', message: /3 multipart uploads. It has 3 under way/ })
  t.equal((await send(server, { method: 'PUT', target: '/owner' })).status, 200)
  t.equal((await send(server, { method: 'POST', target: '/owner/key?uploads=' })).status, 200, 'another account')

  const id = /<UploadId>([^<]+)</.exec(String(before.body))?.[1]
  t.equal((await send(one, { method: 'DELETE', target: `/uploads/key-0?uploadId=${id}` })).status, 204)
  t.equal((await create(two)).status, 200, 'one has ended')
  await quota('none')
  t.equal((await create(two)).status, 200)
  await quota('4')
  t.match(await create(two), { message: /It has 4 under way/ }, 'also those that were begun without a quota')
})
