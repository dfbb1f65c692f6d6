/** What this server has on record of an object that it has stored. */
export interface KnownObject {
  /** See ObjectRecord.mark. */
  readonly mark: string
  readonly revision: string
  /** Bytes that the gateway has. */
  readonly size: number
}

/** Looks for the record; called only where it may save a request. */
export type Known = () => Promise<KnownObject | undefined>
