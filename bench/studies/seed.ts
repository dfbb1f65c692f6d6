import { join } from 'node:path'
import { indexSchema } from '../../services/gateway/index-schema.js'
import { INDEX_FILE } from '../../services/gateway/store/schema.js'
import { silentLog } from '../../services/log.js'
import type { Connection, Schema } from '../../services/store/database.js'
import { openStore } from '../../services/store/open.js'

/** Rows of a transaction: the server beside it waits for its end. */
const BATCH = 20_000

const seeding = {
  ...indexSchema,
  tables: ({ prepare }: Connection) => {
    const numbers = '(WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2) SELECT i FROM n)'
    const objects = prepare(
      `INSERT INTO objects (bucket, key, size, modified, generation, etag, content_type, body_at)
       SELECT id, CAST(?4 || i AS BLOB), 1024, '2026-01-01T00:00:00.000000000Z', printf('%032x', i), '${'e'.repeat(32)}',
         'application/octet-stream', 1
       FROM ${numbers}, buckets WHERE name = ?3`,
    )
    const bodies = prepare(`INSERT INTO bodies SELECT printf('%032x', i), randomblob(1024) FROM ${numbers}`)
    return { objects, bodies }
  },
} satisfies Schema<unknown>

/** Keys that get bodies: those of 10^7 would fill 12 GB, and a request for other keys reads none of them. */
const WITH_BODIES = 1_000_000

/** Gives a bucket of an embedded gateway objects of 1 KiB, `<prefix><from>` and so on: faster than PUT. */
export async function seed(data: string, bucket: string, prefix: string, from: number, to: number): Promise<void> {
  const db = await openStore(seeding, { file: join(data, 'services', 'gateway', INDEX_FILE) }, silentLog)
  try {
    for (let at = from; at < to; at += BATCH) {
      const last = Math.min(to, at + BATCH) - 1
      await db.transaction(async ({ objects, bodies }) => {
        await objects.run(at, last, bucket, prefix)
        if (at < WITH_BODIES) await bodies.run(at, last)
      })
    }
  } finally {
    await db.close()
  }
}
