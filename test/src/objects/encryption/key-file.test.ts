import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createLogger } from '../../../../common/log.js'
import { makeHeader, newIdentity, openHeader, recipientOf } from '../../../../src/objects/encryption/age-header.js'
import { KeyFile, linesOf, type NewestKey, parseKeys } from '../../../../src/objects/encryption/key-file.js'
import { temporaryFolder } from '../../../support/content/folders.js'

const recipients = (count: number) =>
  Promise.all(Array.from({ length: count }, async () => recipientOf(await newIdentity())))

/** A server's keys, in a folder that a later server finds again. */
function servers(t: Test) {
  const file = join(temporaryFolder(t), 'encryption.keys')
  const records = new Map<string, NewestKey>()
  const open = (more: { file?: string | undefined; make?: boolean; recipients?: readonly string[] } = {}) =>
    new KeyFile({
      file,
      make: true,
      recipients: [],
      records: { get: async (key) => records.get(key), set: async (key, value) => void records.set(key, value) },
      log: createLogger({ level: 'silent' }),
      ...more,
    })
  return { file, open }
}

t.test('nothing is encrypted for the recipients of the options alone', async (t) => {
  const { file, open } = servers(t)
  const more = await recipients(1)
  await t.rejects(open({ file: undefined, make: false, recipients: more }).toWrite(), {
    code: 'InvalidRequest',
    message: /has no keys to encrypt with/,
  })
  for (const text of ['', '\n\n', '# public key: age1\n']) {
    await writeFile(file, text)
    for (const make of [true, false]) {
      const keys = open({ make, recipients: more })
      await t.rejects(keys.toWrite(), { code: 'ServiceUnavailable' }, JSON.stringify(text))
      await t.rejects(keys.check(), { name: 'TypeError', message: `${file} cannot be read: the file has no key` })
    }
  }
})

t.test('a lost file is not replaced after a restart', async (t) => {
  const { file, open } = servers(t)
  const [recipient = ''] = (await open().toWrite()).recipients
  t.same(readdirSync(join(file, '..')), ['encryption.keys'], 'no draft is left')
  const kept = readFileSync(file)
  rmSync(file)
  const later = open()
  await later.check()
  await t.rejects(later.toWrite(), { code: 'ServiceUnavailable', message: new RegExp(`${recipient} is missing`) })
  t.same(readdirSync(join(file, '..')), [])
  await writeFile(file, kept)
  t.match(await open().toWrite(), {
    identities: [kept.toString().match(/^AGE-SECRET.*/m)?.[0]],
    recipients: [recipient],
  })

  // As `dealgate encryption rotate` and `cp` change the file.
  await writeFile(file, await linesOf(await newIdentity()))
  const [next = ''] = (await open().toWrite()).recipients
  rmSync(file)
  await t.rejects(open().toWrite(), { message: new RegExp(next) }, 'the newest is named')
})

t.test('a file that was there before its record is on record from the start', async (t) => {
  const { file, open } = servers(t)
  await writeFile(file, await linesOf(await newIdentity()))
  await open().check()
  rmSync(file)
  await t.rejects(open().toWrite(), { code: 'ServiceUnavailable' })
})

t.test('processes that start at a time make one file', async (t) => {
  const { open } = servers(t)
  const all = await Promise.all(Array.from({ length: 5 }, () => open().toWrite()))
  t.equal(new Set(all.flatMap(({ recipients }) => recipients)).size, 1)
})

t.test('a server refuses more recipients than it reads', async (t) => {
  const { file, open } = servers(t)
  const most = await recipients(19)
  await t.rejects(open({ recipients: most }).check(), /there are 20 recipients, with those of the options: at most 19/)
  const identity = await newIdentity()
  await writeFile(file, await linesOf(identity))
  await t.rejects(open({ recipients: most }).check(), /there are 20 recipients/)
  await t.rejects(open({ recipients: most }).toWrite(), { code: 'ServiceUnavailable' })
  const keys = await open({ recipients: most.slice(1) }).toWrite()
  const { header, fileKey } = await makeHeader(keys.recipients, 'place')
  t.same(await openHeader(header, [identity], 'place'), fileKey, 'as many as it writes')
})

t.test('a file that is missing or mistyped fails the start, and the message has no text of it', async (t) => {
  const { file, open } = servers(t)
  await t.rejects(open({ make: false }).check(), {
    name: 'TypeError',
    message: `${file} cannot be read: there is no such file`,
  })
  await open().check()
  await writeFile(file, `${await linesOf(await newIdentity())}AGE-SECRET-KEY-1MISTYPED\n`)
  await t.rejects(open().check(), { message: /line 4 is no key of age/ })
  await t.rejects(open().check(), { message: /^(?!.*MISTYPED)/ })
  const identity = await newIdentity()
  for (const [line, message] of [
    ['# Name: two words', /line 1 has a name that no key can have/],
    ['#name :', /line 1 has a name that no key can have/],
  ] as const) {
    await writeFile(file, `${line}\n${identity}\n`)
    await t.rejects(open().check(), { message }, line)
  }
  const drop = `# name: drop\n# recipient: ${await recipientOf(identity)}\n`
  t.same([...(await parseKeys(`${drop}${identity}\n`)).named.keys()], ['drop'], 'a comment of `encryption export`')
  await writeFile(file, `${identity}\n# name: deleted\n`)
  await t.rejects(open().check(), { message: /the last line with a name has no key/ })
})
