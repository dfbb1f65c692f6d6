/** Abilities of a gateway beyond the specification, from web.ServerInfo. All are false for a legacy gateway. */
export interface GatewayFeatures {
  /**
   * web.ListObjects accepts marker, maxKeys and delimiter, answers with sorted pages and gives etag and generation per
   * object.
   */
  readonly pagedListing: boolean
  /**
   * Supports HEAD on downloads. Uploads and downloads return ETag, generation, headers and metadata; downloads honour
   * Range.
   */
  readonly objectHead: boolean
  /** web.RemoveObject removes exactly the named keys, including those that end in `/`. */
  readonly exactRemove: boolean
  /** Stores any UTF-8 key up to 1024 bytes. */
  readonly anyKey: boolean
  /**
   * web.ListBuckets states when a bucket was made, to the nanosecond in UTC. The time never changes with the bucket's
   * content.
   */
  readonly fixedBuckets: boolean
  /**
   * A deal request takes a client token, which makes it idempotent even after its object is gone. The progress of a
   * deal can be queried.
   */
  readonly dealTokens: boolean
  /** Lists the deals that an account has requested since a time. */
  readonly dealList: boolean
  /** The state of a deal can be queried. */
  readonly dealStatus: boolean
  /** The storage providers can be queried. */
  readonly dealProviders: boolean
  /**
   * The local copy of an object with a deal can be evicted, once a retrieval has been compared with it. `retrieve`
   * restores it, unless the header `history-only` is sent.
   */
  readonly dealEviction: boolean
  /** A copy retrieved from one deal can be compared with the object. Eviction takes the deal to compare with. */
  readonly dealVerification: boolean
  /** A request for an offline deal takes a client token, and the state of its task can be queried. */
  readonly offlineDeals: boolean
  /** Writes to a key take effect in the order of their fences or not at all, whenever they arrive. */
  readonly writeFences: boolean
  /** The gateway remembers which state stores were used with it. */
  readonly storeIds: boolean
  /** The gateway tells how many multipart uploads an account may have under way. */
  readonly uploadQuotas: boolean
  /** The gateway bounds what a bucket may have. */
  readonly bucketQuotas: boolean
  /** The gateway keeps the numbers of each bucket. */
  readonly bucketNumbers: boolean
  /** The gateway keeps a text with each object, stored in the same moment, and shows it with the object. */
  readonly objectRecords: boolean
  /** The gateway keeps a checksum with each object, and shows it to all who may read the object, in listings, too. */
  readonly objectChecksums: boolean
  /** Buckets can be versioned. */
  readonly versions: boolean
  /** Versions can be locked against their removal. */
  readonly locks: boolean
}
