import { appendFileSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { copyOpened } from '../../cli/backup/copies.js'
import { KeptAccountKeys } from '../../cli/keys/account-keys.js'
import { temporaryFolder } from '../support/content/folders.js'

const first = { accessKey: 'first', secretKey: 'first-secret' }

function keptIn(data: string): KeptAccountKeys {
  return new KeptAccountKeys({ data, credentials: join(data, 'credentials.json'), own: first, shared: false })
}

t.test('three changes of the keys of an account may have an unknown outcome, and no more', async (t) => {
  const data = temporaryFolder(t)
  const kept = keptIn(data)
  const pairs = ['a', 'b', 'c', 'd'].map((accessKey) => ({ accessKey, secretKey: `${accessKey}-secret` }))
  for (const pair of pairs.slice(0, 3)) await kept.prepare(first, pair)
  const [a, , , d] = pairs as [typeof first, typeof first, typeof first, typeof first]
  await t.rejects(kept.prepare(first, d), { code: 'OperationAborted' })
  t.same(keptIn(data).pending(first), pairs.slice(0, 3), 'a server that starts again knows of them')
  await kept.withdraw(first, a)
  await kept.prepare(first, d)
})

t.test('an account does not get keys again that it has had', async (t) => {
  const kept = keptIn(temporaryFolder(t))
  const next = { accessKey: 'next', secretKey: 'next-secret' }
  await kept.prepare(first, next)
  await kept.confirm(first, next)
  t.same(kept.latest(first), next)
  await t.rejects(kept.prepare(next, first), { code: 'InvalidArgument' }, 'a request that began with them would fail')
})

t.test('a copy that does not have the bytes of its file is an error', async (t) => {
  const folder = temporaryFolder(t)
  const [from, to] = [join(folder, 'from'), join(folder, 'to')]
  writeFileSync(from, 'the bytes of a file')
  await copyOpened(openSync(from, 'r'), to)
  t.equal(readFileSync(to, 'utf8'), 'the bytes of a file')
  const second = join(folder, 'second')
  const damaged = copyOpened(openSync(from, 'r'), second, () => appendFileSync(second, 'of a disk that errs'))
  await t.rejects(damaged, /second does not have the bytes that were written to it/)
})
