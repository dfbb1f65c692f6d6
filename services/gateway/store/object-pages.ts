const LISTED = 'key, size, modified, generation, etag, content_type, body_at, checksum'

/**
 * Steps from one group of keys to the next with one index search per group, however many keys the group has. The next
 * key is the first one above the last key, or, where that has a common prefix, above the prefix followed by 0xff, which
 * no UTF-8 text contains.
 * Parameters: bucket, first key, upper bound, maximum number of rows, position in the key (from 1) from which the
 * delimiter is searched, delimiter.
 */
export const groupedPage = {
  sqlite: `
    WITH RECURSIVE walk (key) AS (
      SELECT (SELECT key FROM objects WHERE bucket = ?1 AND key >= ?2 AND key < ?3 ORDER BY key LIMIT 1)
      UNION ALL
      SELECT (
        SELECT o.key FROM objects AS o
        WHERE o.bucket = ?1 AND o.key < ?3 AND o.key > CASE instr(substr(walk.key, ?5), ?6)
          WHEN 0 THEN walk.key
          ELSE CAST(substr(walk.key, 1, ?5 + instr(substr(walk.key, ?5), ?6) + length(?6) - 2) || x'ff' AS BLOB)
        END
        ORDER BY o.key LIMIT 1
      )
      FROM walk WHERE walk.key IS NOT NULL LIMIT ?4
    )
    SELECT o.key, o.size, o.modified, o.generation, o.etag, o.content_type, o.body_at, o.checksum
    FROM walk CROSS JOIN objects AS o ON o.bucket = ?1 AND o.key = walk.key
  `,
  // The number of a row stands in place of LIMIT, which PostgreSQL does not have there.
  postgres: `
    WITH RECURSIVE walk AS (
      (SELECT ${LISTED}, 1 AS n FROM objects WHERE bucket = ?1 AND key >= ?2 AND key < ?3 ORDER BY key LIMIT 1)
      UNION ALL
      SELECT ${LISTED.split(', ').map((column) => `o.${column}`)}, walk.n + 1 FROM walk, LATERAL (
        SELECT ${LISTED} FROM objects
        WHERE bucket = ?1 AND key < ?3 AND key > CASE position(?6::bytea IN substring(walk.key FROM ?5::int))
          WHEN 0 THEN walk.key
          ELSE substring(walk.key FROM 1 FOR ?5::int + position(?6::bytea IN substring(walk.key FROM ?5::int))
            + length(?6::bytea) - 2) || '\\xff'::bytea
        END
        ORDER BY key LIMIT 1
      ) AS o
      WHERE walk.n < ?4::int
    )
    SELECT ${LISTED} FROM walk ORDER BY n
  `,
}

const MEMBERS =
  "'name', CAST(key AS TEXT), 'lastModified', modified, 'size', size, 'contentType', content_type, 'etag', etag, 'generation', generation"

export const PAGE = `SELECT ${LISTED} FROM objects WHERE bucket = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?`

/**
 * The objects of a range in byte order, each as web.ListObjects describes it, in JSON. To fetch seven values of each
 * row and to write them in JavaScript takes twice as long; but a text of PostgreSQL cannot have all keys.
 * Parameters: bucket, first key, upper bound, maximum number of rows.
 */
export const jsonPage = {
  sqlite: `
    SELECT CASE
      WHEN body_at <> 2 AND checksum IS NOT NULL THEN json_object(${MEMBERS}, 'checksum', checksum)
      WHEN body_at <> 2 THEN json_object(${MEMBERS})
      WHEN checksum IS NOT NULL THEN json_object(${MEMBERS}, 'checksum', checksum, 'cold', json('true'))
      ELSE json_object(${MEMBERS}, 'cold', json('true'))
    END
    FROM objects WHERE bucket = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?
  `,
  postgres: PAGE,
}
