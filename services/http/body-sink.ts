/** Destination of a request body. */
export interface BodySink {
  /** Takes ownership of the chunk. Returns false when the caller must await `ready` before the next chunk. */
  write(chunk: Buffer): boolean
  ready(): Promise<void>
}
