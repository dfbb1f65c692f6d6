import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { changeCredentials } from '../../cli/keys/credentials-file.js'
import type { Identity } from '../../src/api/identity.js'
import { dataFolder } from '../support/content/folders.js'
import { piped, runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { presign, sendAsIs, signedRequest } from '../support/sign/signed-request.js'

interface Added {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

async function add(data: string, ...args: string[]): Promise<Added> {
  const { code, stdout, stderr } = await runCli(['keys', 'add', '--data', data, '--print', 'json', ...args])
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

t.test('keys that are added and removed count at once, without a restart', async (t) => {
  const data = join(t.testdir({}), 'data')
  const running = await startDealgate(t, { data })
  const owner = { accessKeyId: running.accessKey, secretAccessKey: running.secretKey }
  const get = (keys: Added, path: string) => signedRequest(running.endpoint, keys, { method: 'GET', path })
  for (const [path, body] of [
    ['/photos', ''],
    ['/photos/2024/a', 'a'],
    ['/photos/b', 'b'],
  ] as const)
    t.equal((await signedRequest(running.endpoint, owner, { method: 'PUT', path, body })).status, 200)

  const reader = await add(data, '--right', 'read:photos/2024/')
  t.equal((await get(reader, '/photos/2024/a')).body, 'a')
  t.equal((await get(reader, '/photos/b')).code, 'AccessDenied')
  const all = await add(data)
  t.equal((await get(all, '/photos/b')).body, 'b')
  const link = await presign(running.endpoint, all, { method: 'GET', path: '/photos/b' })
  const follow = () => sendAsIs(running.endpoint, { method: 'GET' }, link.target, link.headers)
  t.equal((await follow()).body, 'b')

  t.match(await runCli(['keys', 'remove', all.accessKeyId, '--data', data]), { code: 0, stdout: all.accessKeyId })
  t.equal((await follow()).code, 'InvalidAccessKeyId', 'presigned URLs end with their key')
  t.equal((await get(all, '/photos/b')).code, 'InvalidAccessKeyId')
  t.equal((await get(reader, '/photos/2024/a')).body, 'a')
  t.equal((await get(owner, '/photos/b')).body, 'b')

  writeFileSync(join(data, 'credentials.json'), 'broken')
  t.equal((await get(reader, '/photos/2024/a')).body, 'a')
  const { stderr } = await running.stop()
  t.match(stderr, /"level":50[^\n]*credentials\.json: is not JSON/)
  for (const { secretAccessKey } of [reader, all]) t.notMatch(stderr, secretAccessKey)
})

t.test('the commands: what they print, and what they refuse', async (t) => {
  const data = dataFolder(t)
  const file = join(data, 'credentials.json')
  const rights = ['--right', 'read:photos', '--right', 'write:in*/a/b', '--allow', 'deal:Create*']
  const made = await runCli(['keys', 'add', '--data', data, ...rights])
  t.equal(made.code, 0)
  t.match(
    made.stdout,
    /^access key {2}DG[0-9A-F]{18}\nsecret key {2}[0-9a-f]{40}\nrights {6}read:photos write:in\*\/a\/b allow:deal:Create\*\n/,
  )
  t.match(made.stdout, file)
  t.equal(statSync(file).mode & 0o777, 0o600)
  const secret = /secret key {2}(\w+)/.exec(made.stdout)?.[1] ?? ''

  const given = ['--access-key-id', 'mine', '--secret-access-key', '-', '--account-access-key', 'account']
  const input = 'my-own-secret\nsecret-of-the-account\n'
  t.equal((await piped(input, ['keys', 'add', '--data', data, ...given, '--account-secret-key', '-'])).code, 0)
  t.match(JSON.parse(readFileSync(file, 'utf8'))[1], {
    accessKeyId: 'mine',
    secretAccessKey: 'my-own-secret',
    account: { accessKey: 'account', secretKey: 'secret-of-the-account' },
  })

  const text = await runCli(['keys', 'list', '--data', data])
  const json = await runCli(['keys', 'list', '--data', data, '--print', 'json'])
  t.match(
    text.stdout,
    /^ACCESS KEY +ACCOUNT +RIGHTS\nDG\w+ +- +read:photos write:in\*\/a\/b allow:deal:Create\*\nmine +account +all that/,
  )
  t.match(JSON.parse(json.stdout), [
    { rights: [{ bucket: 'photos' }, { prefix: 'a/b' }], actions: ['deal:Create*'] },
    { account: 'account' },
  ])
  for (const { stdout } of [text, json]) {
    for (const hidden of [secret, 'my-own-secret', 'secret-of-the-account']) t.notMatch(stdout, hidden)
  }

  const before = readFileSync(file, 'utf8')
  const wrong: [string[], number, RegExp][] = [
    [['add', '--access-key-id', 'mine', '--secret-access-key', 'another-secret'], 1, /mine already/],
    [['add', '--right', 'photos'], 2, /--right must have the form/],
    [['add', '--access-key-id', 'next', '--secret-access-key', 'hunter2'], 2, /secretAccessKey must be 8/],
    [['add', '--right', 'read:photos', '--allow', 'Deal'], 2, /actions\[0\] must be an action/],
    [['add', '--account-secret-key', 'x'], 2, /--account-access-key and --account-secret-key go together/],
    [['remove', 'nobody'], 1, /no access key id nobody/],
  ]
  for (const [args, code, message] of wrong) {
    const refused = await runCli(['keys', ...args, '--data', data])
    t.equal(refused.code, code, args.join(' '))
    t.match(refused.stderr, message)
    t.notMatch(refused.stderr, 'hunter2')
  }
  t.equal(readFileSync(file, 'utf8'), before)

  const many = await Promise.all(Array.from({ length: 4 }, () => add(data)))
  const kept = JSON.parse(readFileSync(file, 'utf8')) as Added[]
  for (const { accessKeyId } of many)
    t.ok(
      kept.some((key) => key.accessKeyId === accessKeyId),
      'none is lost',
    )
  t.same(readdirSync(data), ['credentials.json', 'credentials.json.lock', 'version.json'], 'no draft is left behind')
})

t.test('a credentials file that is named must be there and right', async (t) => {
  const data = join(t.testdir({ 'bad.json': '[{"accessKeyId":"one"}]' }), 'data')
  const start = (file: string) =>
    runCli(['serve', '--data', data, '--port', '0', '--gateway-port', '0', '--credentials-file', file])
  t.match(await start(join(t.testdirName, 'none.json')), { code: 1, stderr: /none\.json.*keys add/s })
  t.match(await start(join(t.testdirName, 'bad.json')), {
    code: 1,
    stderr: /bad\.json: \[0\]\.secretAccessKey must be/,
  })
  const bad = ['--credentials-file', join(t.testdirName, 'bad.json')]
  const doctor = await runCli(['doctor', '--data', data, '--port', '0', ...bad])
  t.match(doctor, { code: 1, stdout: /^WRONG {2}credentials file: /m })
})

t.test('a change keeps what an editor writes meanwhile, and writes nothing that a server would refuse', async (t) => {
  const file = join(t.testdir({}), 'credentials.json')
  const pair = (accessKeyId: string, more: object = {}) => ({ accessKeyId, secretAccessKey: 'secret-key', ...more })
  const write = (...pairs: object[]) => writeFileSync(file, JSON.stringify(pairs), { mode: 0o600 })
  const ids = () => JSON.parse(readFileSync(file, 'utf8')).map(({ accessKeyId }: Identity) => accessKeyId)
  write(pair('one'))
  let edits = 0
  await changeCredentials(file, (present) => {
    if (edits++ === 0) write(pair('one'), pair('by-hand'))
    return [...present, pair('two')]
  })
  t.same(ids(), ['one', 'by-hand', 'two'])
  const everytime = changeCredentials(file, (present) => {
    write(pair('one'), pair(`by-hand-${edits++}`))
    return present
  })
  await t.rejects(everytime, { message: /being changed by hand/, cause: { code: 'ServiceUnavailable' } })

  write(pair('one'), pair('wrong', { policies: [{ Version: '2012-10-17', Statement: [{ Effect: 'Permit' }] }] }))
  const removed = changeCredentials(file, (present) => present.slice(1))
  await t.rejects(removed, { message: /stays as it is.*\[0\]\.policies\[0\]/s, cause: { code: 'InvalidRequest' } })
  t.same(ids(), ['one', 'wrong'], 'a server keeps the key pairs that it read before, and so does the file')
  write(pair('one'), pair('owner'))
  await t.rejects(
    changeCredentials(file, (present) => present, { owner: 'owner' }),
    /that of the owner/,
  )
  t.same(ids(), ['one', 'owner'])
})
