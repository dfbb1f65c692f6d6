import type { StoredBody } from '../../store/bodies.js'
import { type Connection, statements, type Value } from '../../store/database.js'

const PAGE = 100

/** A version of an object with a body here, or a body that only a deal in the making still reads. */
export interface NamedBody extends StoredBody {
  readonly table: 'objects' | 'versions' | 'retained'
  readonly generation: string
  /** Name of the bucket; null for a body without an object. */
  readonly bucket: string | null
  readonly key: Uint8Array | null
  /** Id of a version that is not current. */
  readonly version: string | null
  /** Unquoted; null for a body without an object. */
  readonly etag: string | null
  readonly inIndex: boolean
  /** What the index has of it. */
  readonly body: Uint8Array | null
  readonly crc: number | null
}

type FoundBody = Omit<NamedBody, 'table' | 'inIndex'> & { readonly bodyAt: number; readonly place: number }

const NAME = 'coalesce(body_name, o.generation) AS name, body_mark AS mark, o.generation AS generation'
const BYTES = 'CASE WHEN body_at = 1 THEN b.body END AS body, b.crc AS crc, body_at AS "bodyAt", o.bucket AS place'
const INDEX = 'LEFT JOIN bodies AS b ON b.generation = o.generation'
const BUCKET = '(SELECT name FROM buckets WHERE id = o.bucket) AS bucket'

/** All bodies that are here, in the order of their rows, and what changes where they are known by. */
export class NamedBodies {
  readonly #sql

  constructor(connection: Connection) {
    const move = (table: NamedBody['table']) =>
      `UPDATE ${table} SET body_mark = ?1 WHERE generation = ?2 AND body_at = 0 AND coalesce(body_name, generation) = ?3`
    this.#sql = statements(connection, {
      objects: `
        SELECT ${NAME}, size, ${BUCKET}, key, version, etag, ${BYTES} FROM objects AS o ${INDEX}
        WHERE body_at < 2 AND (o.bucket, key) > (?, ?) ORDER BY o.bucket, key LIMIT ${PAGE}`,
      versions: `
        SELECT ${NAME}, size, ${BUCKET}, key, id AS version, etag, ${BYTES} FROM versions AS o ${INDEX}
        WHERE body_at < 2 AND marker = 0 AND (o.bucket, key, id) > (?, ?, ?) ORDER BY o.bucket, key, id LIMIT ${PAGE}`,
      retained: `
        SELECT ${NAME}, bytes AS size, NULL AS bucket, NULL AS key, NULL AS version, NULL AS etag, ${BYTES}
        FROM retained AS o ${INDEX} WHERE o.generation > ? ORDER BY o.generation LIMIT ${PAGE}`,
      markObjects: move('objects'),
      markVersions: move('versions'),
      markRetained: move('retained'),
      setCrc: 'UPDATE bodies SET crc = ? WHERE generation = ? AND crc IS NULL',
    })
  }

  /** A body that moves from one table to another meanwhile may come twice, or be left out. */
  async *all(): AsyncGenerator<NamedBody[], void, undefined> {
    const { objects, versions, retained } = this.#sql
    yield* this.#pages('objects', [0, Buffer.alloc(0)], (after) => objects.all<FoundBody>(...after))
    yield* this.#pages('versions', [0, Buffer.alloc(0), ''], (after) => versions.all<FoundBody>(...after))
    yield* this.#pages('retained', [''], (after) => retained.all<FoundBody>(...after))
  }

  async *#pages(
    table: NamedBody['table'],
    first: readonly Value[],
    read: (after: readonly Value[]) => Promise<FoundBody[]>,
  ): AsyncGenerator<NamedBody[]> {
    for (let after = first; ; ) {
      const page = await read(after)
      const last = page.at(-1)
      if (last === undefined) return
      yield page.map(({ bodyAt, place: _, ...row }) => ({ ...row, table, inIndex: bodyAt === 1 }))
      const { place, key, version, generation } = last
      after = { objects: [place, key], versions: [place, key, version], retained: [generation] }[table]
    }
  }

  /** Replaces the mark of a body that rows still name. */
  async mark({ table, generation, name }: NamedBody, mark: string): Promise<void> {
    const { markObjects, markVersions, markRetained } = this.#sql
    const statement = { objects: markObjects, versions: markVersions, retained: markRetained }[table]
    await statement.run(mark, generation, name)
  }

  /** Keeps the CRC-32 of a body in the index that has none. */
  async setCrc(generation: string, crc: number): Promise<void> {
    await this.#sql.setCrc.run(crc, generation)
  }
}
