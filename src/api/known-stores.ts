/** What the gateway remembers of the state stores that were used with it. */
interface KnownStore {
  readonly known: boolean
  /** Whether it knows other stores. */
  readonly others: boolean
  /** The highest mark of this store that was reported to it; 0 for an unknown store. */
  readonly mark: number
}

/** The ids of the state stores that were used with the gateway, as the gateway remembers them. */
export interface KnownStores {
  /**
   * Tells whether the gateway knows this store, and whether it knows others. Resolves undefined on a gateway that
   * remembers none. Throws S3Error.
   * @param storeId undefined asks about the others only
   */
  look(storeId: string | undefined): Promise<KnownStore | undefined>
  /**
   * Stores the id at the gateway in place of those in `over`, and its mark. Durable once it resolves, with what the
   * gateway knew before. Does nothing on a gateway that remembers none. Throws S3Error.
   */
  keep(storeId: string, over: readonly string[], mark: number): Promise<KnownStore | undefined>
}
