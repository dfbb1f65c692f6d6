import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t, { type Test } from 'tap'
import { Clock } from '../../src/services/clock.js'
import { openDatabase } from '../../src/services/database.js'
import { openAccountBook } from '../../src/services/gateway/accounts/account-book.js'
import { Accounts } from '../../src/services/gateway/accounts/accounts.js'
import { openFirstAccount } from '../../src/services/gateway/accounts/first-account.js'
import type { KeyPair } from '../../src/services/gateway/accounts/key-pair.js'
import { adaptIndex, INDEX_SCHEMA } from '../../src/services/gateway/assemble.js'
import { INDEX_FILE } from '../../src/services/gateway/store/schema.js'
import { temporaryFolder } from '../support/content/folders.js'
import { CrashImages } from './crash-images.js'
import { DealClient } from './deal-client.js'
import { toFormerSchema } from './former-schema.js'
import { connectTo, start } from './gateway-client.js'
import { watchedDatabase } from './watched-database.js'

interface Former {
  readonly data: string
  readonly pair: KeyPair
  /** Of the deal with the token `token`. */
  readonly deal: { readonly dealCid: string; readonly walletAddress: string }
}

/** A data folder of the version before accounts, with a bucket, an object, a deal and the epoch of a store. */
async function formerFolder(t: Test): Promise<Former> {
  const data = temporaryFolder(t)
  const services = await start(data, {}, { control: true })
  const client = await connectTo(services)
  const pair = await services.gateway.credentials()
  await client.call('MakeBucket', { bucketName: 'bucket' })
  await client.put('bucket', 'key', 'kept')
  await client.call('StateEpoch', { epoch: 'epoch', keep: true })
  const { data: deal } = await new DealClient(client).deal('bucket', 'key', {}, 'token')
  await services.stop()
  toFormerSchema(data, pair)
  return { data, pair, deal }
}

/** Does what a start does with the index and the account, and returns what each crash on the way leaves. */
function crash(t: Test, { data }: Former, configured?: KeyPair): string[] {
  const crashes = new CrashImages(data, temporaryFolder(t))
  const images: string[] = []
  const look = (): void => {
    const image = crashes.take()
    if (image !== undefined) images.push(image)
  }
  const folder = join(data, 'gateway')
  look()
  const db = openDatabase(join(folder, INDEX_FILE), '', (opened) => adaptIndex(watchedDatabase(opened, look)))
  const watched = watchedDatabase(db, look)
  watched.exec(INDEX_SCHEMA)
  openFirstAccount(watched, new Accounts(watched), folder, configured, new Clock())
  look()
  db.close()
  look()
  return images
}

function accountsIn(image: string): number {
  const db = new DatabaseSync(join(image, 'gateway', INDEX_FILE))
  try {
    const { tables } = db.prepare(`SELECT count(*) AS tables FROM sqlite_schema WHERE name = 'accounts'`).get()
    return tables === 0 ? 0 : db.prepare('SELECT count(*) AS count FROM accounts').get().count
  } finally {
    db.close()
  }
}

for (const [what, configured] of [
  ['the keys that the account has', undefined],
  ['keys that the configuration names', { accessKey: 'configured', secretKey: 'configured-secret' }],
] as const) {
  t.test(`a crash after any step to accounts, with ${what}, is as if nothing had happened`, async (t) => {
    const former = await formerFolder(t)
    const expected = configured ?? former.pair
    const images = crash(t, former, configured)
    t.ok(images.length >= 6, `${images.length} crashes`)
    const kept = images.map((image) => existsSync(join(image, 'gateway', 'account.json')))
    t.same([kept[0], kept.at(-1)], [true, false], 'from the file of the account to the table')
    for (const [index, image] of images.entries()) {
      await t.test(`${index}`, async (t) => {
        t.ok(kept[index] || accountsIn(image) === 1, 'the keys are somewhere')
        const services = await start(image, { ...configured })
        try {
          t.same(await services.gateway.credentials(), expected)
          const client = await connectTo(services)
          t.match((await client.call('ListBuckets')).buckets, [{ name: 'bucket' }])
          t.equal((await client.get('bucket', 'key')).text, 'kept')
          t.match(await client.call('StateEpoch', { epoch: 'epoch' }), { known: true, others: false })
          const { data } = await new DealClient(client).deal('bucket', 'key', {}, 'token')
          t.match(data, { dealCid: former.deal.dealCid, walletAddress: former.deal.walletAddress }, 'the same deal')
        } finally {
          await services.stop()
        }
        t.notOk(existsSync(join(image, 'gateway', 'account.json')))
        const book = openAccountBook(image)
        t.match(book.all(), [{ id: 1, isIamUser: false, buckets: 1 }], 'one account, which owns the bucket')
        book.close()
      })
    }
  })
}
