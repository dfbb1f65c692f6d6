import { createHash, type Hash } from 'node:crypto'
import { once } from 'node:events'
import { createGzip } from 'node:zlib'
import { type Source, type Spool, type State, sourceOf } from 'dealgate/plugin'
import type { ParquetWriter } from 'hyparquet-writer'
import { type Column, type ColumnType, type Row, snakeCase, type Value } from './columns.js'
import type { InventoryFormat } from './configuration.js'

/** Takes the next bytes of a file, and owns them. */
type FileSink = (chunk: Buffer) => void | Promise<void>

/** A file of an inventory that is being written. */
interface InventoryFile {
  add(rows: readonly Row[]): Promise<void>
  /** Resolves when the sink has all bytes. */
  end(): Promise<void>
  /** Frees what an unfinished file holds. */
  discard(): void
}

interface Format {
  readonly extension: string
  readonly contentType: string
  open(columns: readonly Column[], sink: FileSink): Promise<InventoryFile>
  /** `fileSchema` of the manifest. */
  schema(columns: readonly Column[]): string
}

export const FORMATS: Readonly<Record<InventoryFormat, Format>> = {
  CSV: {
    extension: 'csv.gz',
    contentType: 'application/gzip',
    open: csvFile,
    schema: (columns) => columns.map(({ name }) => name).join(', '),
  },
  Parquet: {
    extension: 'parquet',
    contentType: 'application/vnd.apache.parquet',
    open: parquetFile,
    schema: schemaText,
  },
}

/** A file of an inventory, on the disk of this server until it is stored. */
export class SpooledFile {
  readonly #spool: Spool
  readonly #file: InventoryFile
  readonly #md5: Hash

  private constructor(spool: Spool, file: InventoryFile, md5: Hash) {
    this.#spool = spool
    this.#file = file
    this.#md5 = md5
  }

  static async open(
    state: Pick<State, 'spool'>,
    format: InventoryFormat,
    columns: readonly Column[],
  ): Promise<SpooledFile> {
    const md5 = createHash('md5')
    const spool = await state.spool()
    try {
      const file = await FORMATS[format].open(columns, (chunk) => {
        md5.update(chunk)
        return spool.write(chunk)
      })
      return new SpooledFile(spool, file, md5)
    } catch (error) {
      await spool.discard()
      throw error
    }
  }

  /** Bytes on disk: the last rows may still be in memory. */
  get size(): number {
    return this.#spool.size
  }

  add(rows: readonly Row[]): Promise<void> {
    return this.#file.add(rows)
  }

  /** The whole file, and its MD5 in hex. */
  async end(): Promise<{ readonly source: Source; readonly md5: string }> {
    await this.#file.end()
    const spool = this.#spool
    const source = sourceOf({ length: spool.size, send: (sink) => spool.read(sink) })
    return { source, md5: this.#md5.digest('hex') }
  }

  async discard(): Promise<void> {
    this.#file.discard()
    await this.#spool.discard()
  }
}

/**
 * CSV with gzip and without a header, each value in quotes, as S3 writes it. Keys are percent-encoded, a space as `%20`
 * and a `+` as `%2B`, so that decoders agree whether or not they read `+` as a space.
 */
async function csvFile(columns: readonly Column[], sink: FileSink): Promise<InventoryFile> {
  const gzip = createGzip()
  const writing = (async () => {
    for await (const chunk of gzip) await sink(chunk as Buffer)
  })()
  // `add` and `end` reject with it.
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

type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number]

/** Rows that are in memory until they are written together. */
const GROUP_ROWS = 10_000

const ROOT = 's3.inventory'

/** Types as S3 has them, and what is in the schema of a manifest. */
const TYPES: Readonly<Record<ColumnType, { readonly schema: Partial<SchemaElement>; readonly text: string }>> = {
  text: { schema: { type: 'BYTE_ARRAY', converted_type: 'UTF8' }, text: 'binary %s (UTF8)' },
  integer: { schema: { type: 'INT64' }, text: 'int64 %s' },
  boolean: { schema: { type: 'BOOLEAN' }, text: 'boolean %s' },
  time: { schema: { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' }, text: 'int64 %s (TIMESTAMP_MILLIS)' },
}

/** Parquet with Snappy. Keys are as they are. */
async function parquetFile(columns: readonly Column[], sink: FileSink): Promise<InventoryFile> {
  const { ByteWriter, ParquetWriter } = await import('hyparquet-writer')
  const bytes = new ByteWriter()
  const writer = new ParquetWriter({ writer: bytes, schema: schemaOf(columns), createdBy: 'dealgate' })
  let rows: Row[] = []

  async function flush(): Promise<void> {
    if (rows.length > 0) {
      const columnData = columns.map(({ name, type }, i) => ({
        name: snakeCase(name),
        data: rows.map((row) => cell(type, row[i] ?? null)),
      }))
      rows = []
      writer.write({ columnData, rowGroupSize: GROUP_ROWS })
    }
    await pass()
  }

  async function pass(): Promise<void> {
    // The sink owns what it gets, and the writer uses its buffer again.
    const written = Buffer.from(bytes.getBytes())
    bytes.index = 0
    if (written.length > 0) await sink(written)
  }

  return {
    async add(more) {
      rows = rows.concat(more)
      if (rows.length >= GROUP_ROWS) await flush()
    },
    async end() {
      await flush()
      writer.finish()
      await pass()
    },
    discard() {
      rows = []
    },
  }
}

function cell(type: ColumnType, value: Value): string | boolean | bigint | Date | null {
  if (value === null) return null
  if (type === 'time') return new Date(Number(value))
  return type === 'integer' ? BigInt(Number(value)) : (value as string | boolean)
}

function schemaOf(columns: readonly Column[]): SchemaElement[] {
  return [
    { name: ROOT, num_children: columns.length },
    ...columns.map(({ name, type, required }) => ({
      name: snakeCase(name),
      ...TYPES[type].schema,
      repetition_type: required ? ('REQUIRED' as const) : ('OPTIONAL' as const),
    })),
  ]
}

/** The schema as the manifest of S3 states it. */
function schemaText(columns: readonly Column[]): string {
  const lines = columns.map(
    ({ name, type, required }) =>
      `${required ? 'required' : 'optional'} ${TYPES[type].text.replace('%s', snakeCase(name))};`,
  )
  return `message ${ROOT} { ${lines.join(' ')} }`
}

/** A key as CSV inventories of S3 have it. */
function urlEncoded(key: string): string {
  return encodeURIComponent(key).replaceAll('%2F', '/')
}
