/** Destination of a request body. */
export interface BodySink {
  /**
   * Takes ownership of the chunk. Returns false when the caller must await `ready` before the next chunk.
   * @param used called once the sink does not use the chunk any more, or not at all; its bytes change then
   */
  write(chunk: Buffer, used?: () => void): boolean
  ready(): Promise<void>
}
