import { randomBytes } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createSealer, sealingKeyOf } from '../../src/plugins/sealer.js'
import { temporaryFolder } from '../support/content/folders.js'

t.test('a sealed text opens with its key and for its purpose alone', async (t) => {
  const key = randomBytes(32)
  const sealer = createSealer(async () => key)
  const sealed = await sealer.seal('pässword', 'a:b')
  t.notMatch(sealed, 'ssword')
  t.not(await sealer.seal('pässword', 'a:b'), sealed, 'each time another nonce')
  t.equal(await sealer.open(sealed, 'a:b'), 'pässword')
  t.equal(await sealer.open(sealed, 'a:c'), undefined, 'another purpose')
  t.equal(await createSealer(async () => randomBytes(32)).open(sealed, 'a:b'), undefined, 'another key')
  for (const at of [3, 20, 40, sealed.length - 2]) {
    const changed = sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1)
    t.equal(await sealer.open(changed, 'a:b'), undefined, `changed at ${at}`)
  }
  for (const nonsense of ['', 'v1.', 'v1.AAAA', 'v2.x', sealed.slice(0, -4)])
    t.equal(await sealer.open(nonsense, 'a:b'), undefined)
  await t.rejects(createSealer(async () => randomBytes(16)).seal('x', 'y'), RangeError)
})

t.test('the key is configured, or made once in the data folder', async (t) => {
  const data = temporaryFolder(t)
  const key = await sealingKeyOf({ data })()
  t.equal(key.length, 32)
  const file = join(data, 'sealing.key')
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal(readFileSync(file, 'utf8').trim(), Buffer.from(key).toString('hex'))
  t.same(await sealingKeyOf({ data })(), key, 'the next start reads it')
  const own = randomBytes(32)
  t.same(await sealingKeyOf({ data, sealingKey: own, stateUrl: 'redis://x' })(), own)
  await t.rejects(sealingKeyOf({ data, stateUrl: 'redis://x' })(), {
    code: 'InvalidRequest',
    message: /sealing-key-file/,
  })
  await t.rejects(sealingKeyOf({})(), { code: 'InvalidRequest' })
  writeFileSync(file, 'not a key')
  await t.rejects(sealingKeyOf({ data })(), /64 hexadecimal digits/)
})
