import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { Locks } from '../../src/api/locks.js'
import type { UploadRecord } from '../../src/api/state.js'
import type { Table } from '../../src/state/records/table.js'
import { type Begun, BegunUploads } from '../../src/state/uploads/upload-sweep.js'

t.test('the list of an account with a large quota is as long as its uploads are many', async (t) => {
  const lists = new Map<string, Begun>()
  const underWay = new Set<string>()
  const unlocked = { withName: (_: string, run: () => Promise<unknown>) => run() }
  const begun = new BegunUploads({
    begun: {
      get: async (account: string) => lists.get(account),
      set: async (account: string, list: Begun) => void lists.set(account, list),
    } as unknown as Table<Begun>,
    uploads: {
      entries: async function* () {},
      getMany: async (ids: readonly string[]) => ids.map((id) => (underWay.has(id) ? {} : undefined)),
    } as unknown as Table<UploadRecord>,
    locks: unlocked as unknown as Locks,
  })
  const begin = async () => {
    const uploadId = randomUUID()
    const refused = await begun.begin({ uploadId, account: 'account' }, { most: 200 }, async () => {
      underWay.add(uploadId)
    })
    return refused ?? uploadId
  }
  const length = () => lists.get('account')?.uploadIds.length ?? 0
  for (let n = 0; n < 1000; n++) {
    const uploadId = await begin()
    // The first one is under way all the time.
    if (n > 0) underWay.delete(String(uploadId))
    if (length() > 64) t.fail(`${length()} ids`)
  }
  for (let n = 1; n < 200; n++) t.type(await begin(), 'string')
  t.equal(await begin(), 200)
  t.equal(length(), 200)
})
