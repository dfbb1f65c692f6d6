import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { lockFile } from '../../common/files/lock-file.js'
import { dataFolder, temporaryFolder } from '../support/content/folders.js'
import { sdkFor } from '../support/programs/sdk.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'

t.test('one command at a time changes the keys, and who exports them is on record', async (t) => {
  const data = dataFolder(t)
  const file = join(data, 'encryption.keys')
  const audit = join(data, 'audit.log')
  const run = (...args: string[]) => runCli(['encryption', ...args, '--data', data, '--audit-log', audit])
  t.equal((await run('rotate')).code, 0)
  const first = readFileSync(file, 'utf8')
  const other = join(temporaryFolder(t), 'other.keys')
  copyFileSync(file, other)

  const release = lockFile(`${file}.lock`)
  const refused = await Promise.all([run('rotate'), run('add', other)])
  release?.()
  for (const { code, stderr } of refused) {
    t.equal(code, 1)
    t.match(stderr, /Another command is changing the keys/)
  }
  t.equal(readFileSync(file, 'utf8'), first)

  t.same(
    (await Promise.all([1, 2, 3].map(() => run('rotate')))).map(({ code }) => code),
    [0, 0, 0],
  )
  t.equal(readFileSync(file, 'utf8').match(/^AGE-SECRET-KEY-/gm)?.length, 4, 'no key is lost')
  t.equal((await run('export')).stdout, readFileSync(file, 'utf8'))
  const last = readFileSync(audit, 'utf8').trim().split('\n').at(-1) ?? ''
  t.match(JSON.parse(last), { action: 'encryption export', resource: file, outcome: 'ok' })
  t.notMatch(last, 'AGE-SECRET-KEY')
})

t.test('a backup has keys only if that is asked for', async (t) => {
  const { data } = await startDealgate(t)
  const folder = temporaryFolder(t)
  const own = join(data, 'own.keys')
  for (const name of ['encryption.keys', 'encryption.keys.before', 'own.keys'])
    writeFileSync(join(data, name), `of ${name}`)
  const backup = async (...more: string[]) => {
    const { code, stdout, stderr } = await runCli(['backup', folder, '--data', data, '--print', 'json', ...more])
    if (code !== 0) throw new Error(stderr)
    const made = JSON.parse(stdout) as { backup: string; notIncluded: string[] }
    const names = readdirSync(join(made.backup, 'data')).filter((name) => name.includes('.keys'))
    return { names, told: made.notIncluded.some((line) => line.startsWith('the keys of encrypted objects')) }
  }
  t.same(await backup('--encryption-keys', own), { names: [], told: true })
  t.same(await backup(), { names: ['own.keys'], told: true }, 'a file of another name is not known to be one of keys')
  t.same(await backup('--encryption-keys', own, '--with-keys'), {
    names: ['encryption.keys', 'encryption.keys.before', 'own.keys'],
    told: false,
  })
})

t.test('doctor names the keys to keep, and objects whose keys are missing', async (t) => {
  const server = await startDealgate(t)
  const s3 = sdkFor(t, server)
  await s3.createBucket({ Bucket: 'secret' })
  for (const Key of ['a', 'b', 'c', 'd'])
    await s3.putObject({ Bucket: 'secret', Key, Body: Key, ServerSideEncryption: 'AES256' })
  const { data } = server
  const file = join(data, 'encryption.keys')
  const doctor = () => runCli(['doctor', '--data', data, '--port', '0', '--gateway-port', '0'])
  t.match((await doctor()).stdout, /^ok +encryption keys: 1 in .*encryption\.keys\. Keep a copy in a safe place/m)
  await server.stop()
  const right = await doctor()
  t.match(right.stdout, /^ok +encryption keys: 1 in .*; they open the 3 encrypted objects that were looked at/m)
  t.notMatch(right.stdout, 'AGE-SECRET-KEY')
  const kept = readFileSync(file)
  rmSync(file)
  const lost = await doctor()
  t.equal(lost.code, 1)
  t.match(
    lost.stdout + lost.stderr,
    /there is no .*without its keys no server can read 3 of the 3 encrypted objects.*secret\/a/,
  )
  t.equal((await runCli(['encryption', 'rotate', '--data', data])).code, 0)
  const other = await doctor()
  t.equal(other.code, 1)
  t.match(other.stdout + other.stderr, /no key of .* opens 3 of the 3 .* Restore the file of keys/)
  writeFileSync(file, kept, { mode: 0o600 })
  t.match((await doctor()).stdout, /they open the 3/)
})
