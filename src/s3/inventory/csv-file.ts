import { once } from 'node:events'
import { createGzip } from 'node:zlib'
import { urlEncoded } from '../bucket/list-objects.js'
import type { Column, Row, Value } from './columns.js'
import type { FileSink, InventoryFile } from './file-type.js'

/**
 * CSV with gzip and without a header, each value in quotes, as S3 writes it. Keys are percent-encoded, a space as `%20`
 * and a `+` as `%2B`, so that decoders agree whether or not they read `+` as a space.
 */
export function csvFile(columns: readonly Column[], sink: FileSink): InventoryFile {
  const gzip = createGzip()
  const writing = (async () => {
    for await (const chunk of gzip) await sink(chunk as Buffer)
  })()
  // Whoever adds or ends learns of it.
  writing.catch(() => {})
  return {
    async add(rows) {
      const text = rows.map((row) => lineOf(columns, row)).join('')
      if (gzip.destroyed || !gzip.write(text)) await Promise.race([writing, once(gzip, 'drain')])
    },
    async end() {
      gzip.end()
      await writing
    },
    discard() {
      gzip.destroy()
    },
  }
}

function lineOf(columns: readonly Column[], row: Row): string {
  return `${columns.map((column, i) => `"${textOf(column, row[i] ?? null).replaceAll('"', '""')}"`).join(',')}\n`
}

function textOf({ name, type }: Column, value: Value): string {
  if (value === null) return ''
  if (type === 'time') return new Date(Number(value)).toISOString()
  return name === 'Key' ? urlEncoded(String(value)) : String(value)
}
