import type { Row } from './columns.js'

/** Takes the next bytes of a file, and owns them. */
export type FileSink = (chunk: Buffer) => void | Promise<void>

/** A file of an inventory that is being written. */
export interface InventoryFile {
  add(rows: readonly Row[]): Promise<void>
  /** Resolves when the sink has all bytes. */
  end(): Promise<void>
  /** Frees what an unfinished file holds. */
  discard(): void
}
