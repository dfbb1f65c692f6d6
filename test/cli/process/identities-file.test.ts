import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  CredentialsError,
  type CredentialsFileOptions,
  formatCredentials,
  openCredentialsFile,
  parseCredentials,
} from '../../../cli/process/identities-file.js'
import type { Identity } from '../../../src/api/identity.js'

const one: Identity = { accessKeyId: 'one', secretAccessKey: 'secret-of-one' }
const two: Identity = {
  accessKeyId: 'two',
  secretAccessKey: 'secret-of-two',
  account: { accessKey: 'a', secretKey: 'b' },
  rights: [
    { bucket: 'photos', prefix: '2024/', access: 'read' },
    { bucket: 'alice-*', access: 'readwrite' },
  ],
}

t.test('every mistake is told with its place, and no secret with it', async (t) => {
  const secretAccessKey = 'hunter2hunter2'
  const problemsOf = (text: string): readonly string[] => {
    try {
      parseCredentials(text)
    } catch (error) {
      if (error instanceof CredentialsError) return error.problems
      throw error
    }
    return []
  }
  t.same(problemsOf('{}'), ['must be a list of key pairs'])
  t.match(problemsOf(`[\n  {"accessKeyId": "one",\n   ]`), [/^is not JSON: line 3, column 4$/])
  for (const text of [`[{"secretAccessKey": ${secretAccessKey}}]`, secretAccessKey, '']) {
    t.match(problemsOf(text), [/^is not JSON/])
    t.notMatch(problemsOf(text).join(), 'hunter2')
  }
  const bad = [
    { ...one, secretAccessKey, rigths: [] },
    { accessKeyId: 'a b', secretAccessKey: 'short' },
    {
      ...two,
      rights: [
        { bucket: '*x', access: 'read' },
        { bucket: 'Photos', access: 'all' },
        { bucket: 'photos', access: 'read', prefix: '\ud800' },
      ],
    },
    { ...two, account: { accessKey: 'a' } },
    one,
    { ...one, secretAccessKey },
    'three',
  ]
  const problems = problemsOf(JSON.stringify(bad))
  const expected = [
    '[0] has unknown keys: rigths; known are accessKeyId, secretAccessKey, account, rights',
    '[1].accessKeyId must be',
    '[1].secretAccessKey must be',
    '[2].rights[0].bucket must be',
    '[2].rights[1].bucket must be',
    '[2].rights[1].access must be read, write or readwrite',
    '[2].rights[2].prefix must be',
    '[3].account.secretKey must be',
    '[6] must be an object',
  ]
  for (const start of expected)
    t.ok(
      problems.some((problem) => problem.startsWith(start)),
      `${start}: ${problems.join('\n')}`,
    )
  t.equal(problems.length, expected.length)
  t.notMatch(problems.join(), /hunter2|short/)
  const twice = '[{"accessKeyId":"one","secretAccessKey":"hunter2hunter2","rights":[],"rights":[{"bucket":"*"}]}]'
  t.same(problemsOf(twice), ['has the member "rights" twice in one object'])
  t.same(problemsOf(JSON.stringify([one, two, one])), ['[2].accessKeyId duplicates that of [0]'])
})

function logged() {
  const lines: { level: string; text: string }[] = []
  const level = (name: string) => (fields: { err?: Error }, text: string) => {
    lines.push({ level: name, text: `${text} ${fields.err?.message ?? ''}` })
  }
  const log = {
    info: level('info'),
    warn: level('warn'),
    error: level('error'),
  } as unknown as CredentialsFileOptions['log']
  return { lines, log }
}

t.test('the file is followed: every look-up sees it as it is', async (t) => {
  const file = join(t.testdir({}), 'credentials.json')
  const { lines, log } = logged()
  writeFileSync(file, formatCredentials([one, two]), { mode: 0o600 })
  const followed = openCredentialsFile({ file, log, owner: 'owner' })
  t.teardown(() => followed.close())
  t.same(followed.find('one'), one)
  t.same(followed.find('two'), two)
  t.equal(followed.find('constructor'), undefined)

  writeFileSync(file, formatCredentials([one]))
  t.equal(followed.find('two'), undefined, 'written in place')
  writeFileSync(`${file}.new`, formatCredentials([two]), { mode: 0o600 })
  renameSync(`${file}.new`, file)
  t.equal(followed.find('one'), undefined, 'another file renamed over it')
  t.same(followed.find('two'), two)
  // The same size within one step of the clock: another inode all the same.
  for (const name of ['a-key', 'b-key', 'c-key']) {
    writeFileSync(`${file}.new`, formatCredentials([{ ...one, accessKeyId: name }]), { mode: 0o600 })
    renameSync(`${file}.new`, file)
    t.ok(followed.find(name), name)
  }
  t.ok(
    lines.every(({ level }) => level === 'info'),
    JSON.stringify(lines),
  )

  writeFileSync(file, formatCredentials([{ ...one, accessKeyId: 'owner' }]))
  t.equal(followed.find('owner'), undefined)
  t.match(lines.at(-1), { level: 'error', text: /that of the owner/ })
  rmSync(file)
  t.ok(followed.find('c-key'), 'nor does one that is gone')
  t.match(lines.at(-1), { level: 'error', text: /ENOENT/ })
  writeFileSync(file, '[]')
  if (process.platform !== 'win32') chmodSync(file, 0o644)
  t.equal(followed.find('c-key'), undefined)
  if (process.platform !== 'win32') {
    t.ok(
      lines.some(({ level, text }) => level === 'warn' && text.includes('chmod 600')),
      JSON.stringify(lines),
    )
  }
})

t.test('at the start the file must be right, and there unless it is optional', async (t) => {
  const folder = t.testdir({ 'broken.json': '[' })
  const { log } = logged()
  const missing = join(folder, 'none.json')
  t.throws(() => openCredentialsFile({ file: missing, log }), /none\.json/)
  t.throws(
    () => openCredentialsFile({ file: join(folder, 'broken.json'), log, optional: true }),
    /broken\.json: is not JSON/,
  )
  const followed = openCredentialsFile({ file: missing, log, optional: true })
  t.teardown(() => followed.close())
  t.equal(followed.find('one'), undefined)
  writeFileSync(missing, formatCredentials([one]), { mode: 0o600 })
  t.same(followed.find('one'), one)
})

t.test('a mistake is reported before a request asks', async (t) => {
  const file = join(t.testdir({}), 'credentials.json')
  writeFileSync(file, '[]', { mode: 0o600 })
  let told = () => {}
  const error = new Promise<void>((resolve) => (told = resolve))
  const log = { info: () => {}, warn: () => {}, error: () => told() } as unknown as CredentialsFileOptions['log']
  const followed = openCredentialsFile({ file, log })
  t.teardown(() => followed.close())
  writeFileSync(file, '[{}]')
  // A watcher of which something is expected must not let the process end meanwhile.
  const alive = setInterval(() => {}, 1000)
  await error
  clearInterval(alive)
})
