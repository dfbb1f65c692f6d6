import { createHash } from 'node:crypto'
import type { Spool, State } from '../../api/state.js'
import type { Source } from '../../api/store.js'
import { digesting } from '../../objects/sources.js'
import type { Column, Row } from './columns.js'
import type { InventoryFormat } from './configuration.js'
import { csvFile } from './csv-file.js'
import type { FileSink, InventoryFile } from './file-type.js'
import { parquetFile, schemaText } from './parquet-file.js'

interface Format {
  readonly extension: string
  readonly contentType: string
  open(columns: readonly Column[], sink: FileSink): InventoryFile
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
  readonly #md5 = createHash('md5')
  readonly #file: InventoryFile

  private constructor(spool: Spool, format: Format, columns: readonly Column[]) {
    this.#spool = spool
    this.#file = format.open(columns, (chunk) => {
      this.#md5.update(chunk)
      return spool.write(chunk)
    })
  }

  static async open(
    state: Pick<State, 'spool'>,
    format: InventoryFormat,
    columns: readonly Column[],
  ): Promise<SpooledFile> {
    return new SpooledFile(await state.spool(), FORMATS[format], columns)
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
    const source: Source = {
      length: spool.size,
      stream: (sink, options) => digesting((to) => spool.read(to), sink, options),
    }
    return { source, md5: this.#md5.digest('hex') }
  }

  async discard(): Promise<void> {
    this.#file.discard()
    await this.#spool.discard()
  }
}
