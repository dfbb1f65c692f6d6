import { defineCall, S3Error, z } from 'dealgate/plugin'
import { COPY, type CopyInput } from './copy-job.js'
import type { Shelf } from './shelf.js'

const source = 'docs/plugins.md#a-larger-example'

const copyDocument = z.object({
  Bytes: z.number().int(),
  Sha256: z.string().describe('Hex.'),
  CopiedAt: z.string().describe('RFC 3339.'),
  CheckedAt: z.string().describe('When the copy was last found intact, RFC 3339.'),
  Current: z.boolean().describe('False when the object was replaced since.'),
})

/** GET /{Bucket}/{Key}?x-shelf= */
export function getCopy(shelf: Shelf) {
  return defineCall({
    name: 'GetCopy',
    source,
    summary: 'Describes the second copy of an object.',
    access: 'owner',
    on: { method: 'GET', resource: 'object', subresource: 'x-shelf' },
    result: copyDocument,
    async answer({ request: { bucket, key } }, { store }) {
      const object = await store.head(bucket, key)
      const copy = await shelf.get(bucket, key)
      if (!copy) throw new S3Error('NoSuchCopy', { status: 404, message: 'The object has no second copy.' })
      return {
        Bytes: copy.bytes,
        Sha256: copy.sha256,
        CopiedAt: new Date(copy.copied).toISOString(),
        CheckedAt: new Date(copy.checked).toISOString(),
        Current: copy.revision === object.revision,
      }
    },
  })
}

/** POST /{Bucket}/{Key}?x-shelf= */
export function makeCopy() {
  return defineCall({
    name: 'CopyObject',
    source,
    summary: 'Makes a second copy of an object.',
    access: 'owner',
    on: { method: 'POST', resource: 'object', subresource: 'x-shelf' },
    result: z.object({ Bytes: z.number().int(), Sha256: z.string() }),
    job: COPY,
    spends: false,
    async order({ request: { bucket, key } }, { store }) {
      await store.head(bucket, key)
      const input: CopyInput = { bucket, key }
      return { resource: `/${bucket}/${key}`, input }
    },
  })
}
