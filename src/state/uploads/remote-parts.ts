/** Bytes of a part at a store that every proxy reaches. */
export interface RemotePart {
  readonly name: string
  readonly size: number
  /** Time of the write, milliseconds since 1970. */
  readonly changed: number
}

export interface RemoteUpload {
  /** A returned promise is back-pressure. */
  write(chunk: Buffer): void | Promise<void>
  /** Resolves when the store holds all bytes. */
  commit(): Promise<void>
  /** Leaves nothing unless `commit` was called. Safe at any time. */
  abort(): void
}

/** A store of bytes by name, `<folder>/<...>`. All methods throw S3Error. A name is written once. */
export interface RemoteParts {
  /** @param length bytes, exact */
  upload(name: string, length: number): Promise<RemoteUpload>
  find(name: string): Promise<RemotePart | undefined>
  /** Throws NoSuchKey, and InternalError unless there are `size` bytes. */
  read(name: string, size: number, sink: (chunk: Buffer) => void | Promise<void>): Promise<void>
  /** All parts whose name begins with `prefix`, page by page. */
  list(prefix: string): AsyncIterable<RemotePart>
  /** The first segment of all names, page by page. */
  folders(): AsyncIterable<string>
  /** A missing part is no error. */
  remove(name: string): Promise<void>
}
