import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { type Column, type ColumnType, type Row, snakeCase, type Value } from './columns.js'
import type { FileSink, InventoryFile } from './file-type.js'

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
export function parquetFile(columns: readonly Column[], sink: FileSink): InventoryFile {
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
export function schemaText(columns: readonly Column[]): string {
  const lines = columns.map(
    ({ name, type, required }) =>
      `${required ? 'required' : 'optional'} ${TYPES[type].text.replace('%s', snakeCase(name))};`,
  )
  return `message ${ROOT} { ${lines.join(' ')} }`
}
