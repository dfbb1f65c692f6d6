import { Readable } from 'node:stream'
import t from 'tap'
import type { PutRequest, StoredObject } from '../../../src/api/store.js'
import { rewrapObject } from '../../../src/objects/rewrap-object.js'

const HEADER = Buffer.from('a new header')
const PAYLOAD = Buffer.from('the payload')

const stored: StoredObject = {
  bucket: 'b',
  key: 'k',
  size: 3,
  storedSize: 20,
  etag: 'e',
  revision: 's',
  lastModified: '2026-01-01T00:00:00Z',
  contentType: 'text/plain',
  headers: {},
  metadata: {},
  cold: false,
  encrypted: { algorithm: 'AES256', header: 9 },
  tags: [{ key: 'a', value: 'b' }],
}

const encryption = {
  rewrap: async () => ({ header: { header: HEADER, fileKey: Buffer.alloc(16) }, encrypted: stored.encrypted }),
}

/** Rewraps the object, which others change before it is put: the n-th look sees `versions[n]`. */
async function rewrapped(...versions: StoredObject[]) {
  const puts: PutRequest[] = []
  let look = -1
  const store = {
    findToWrite: async () => versions[++look],
    async openStored() {
      const consume = async (sink: (chunk: Buffer) => void) => {
        for await (const chunk of Readable.from([PAYLOAD])) sink(chunk)
      }
      return { object: versions[look], download: { consume, discard() {} } }
    },
    partChecksums: async () => undefined,
    async put(request: PutRequest) {
      request.precondition?.(versions[look + 1] ?? versions[look])
      puts.push(request)
    },
  }
  const outcome = await rewrapObject(store as never, encryption as never, 'b', 'k', {} as never)
  return { outcome, puts }
}

t.test('what changes without the bytes while an object is rewrapped stays as it has become', async (t) => {
  const acl = { owner: 'o', grants: [] }
  for (const change of [
    { tags: [] },
    { acl },
    { metadata: { a: 'c' } },
    { label: 'GLACIER' },
    { contentType: 'x/y' },
  ]) {
    const { outcome, puts } = await rewrapped(stored, { ...stored, ...change })
    t.match(outcome, { outcome: 'Rewrapped' })
    t.equal(puts.length, 1, 'the second look')
    const [put] = puts
    const { contentType, metadata, label } = put?.attributes ?? {}
    t.match({ tags: put?.tags, acl: put?.acl, contentType, metadata, label }, change)
  }
})

t.test('an ACL that only the gateway has opens nothing when the object is rewrapped', async (t) => {
  const acl = { owner: 'o', grants: [{ grantee: { group: 'AllUsers' as const }, permission: 'READ' as const }] }
  const { puts } = await rewrapped({ ...stored, acl, aclAtGateway: true })
  t.same(puts[0]?.acl, { owner: 'o', grants: [] })
})

t.test('an object that changes each time is skipped', async (t) => {
  const versions = Array.from({ length: 20 }, (_, i) => ({ ...stored, label: `${i}` }))
  t.match((await rewrapped(...versions)).outcome, { outcome: 'Skipped' })
})
