import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { lockFile } from '../../src/common/files/lock-file.js'
import { temporaryFolder } from '../support/content/folders.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'

t.test('one command at a time changes the keys, and who exports them is on record', async (t) => {
  const data = temporaryFolder(t)
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
