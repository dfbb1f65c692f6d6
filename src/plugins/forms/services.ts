/** A storage provider, as lists of services name it. Amounts and sizes are texts of the service that lists it. */
export interface ListedProvider {
  readonly minerId: string
  readonly location: string
  /** Decimal, fil per GiB and epoch. */
  readonly price: string
  /** The same for verified deals. */
  readonly verifiedPrice: string
  /** With its unit: `32GiB`. */
  readonly minPieceSize: string
  readonly maxPieceSize: string
  readonly offlineDealAvailable: boolean
  readonly score: number
  readonly status: string
  readonly contactInfo: string
  /** When this was told, in digits. */
  readonly updateTime: string
}

/** A task that a plugin has had created from a bucket. */
export interface CreatedFromBucket {
  readonly jobId: string
  readonly bucket: string
  readonly name: string
  readonly file: string
  /** '' if it is not known. */
  readonly uuid: string
  /** Access key of the identity that ordered it; '' for the server. */
  readonly accessKeyId: string
}

/**
 * What plugins offer each other, by name. Each may be absent: a plugin that uses one works without it. A plugin adds
 * its own by `declare module 'dealgate' { interface PluginServices { ... } }`.
 */
export interface PluginServices {
  /** A list of storage providers, up to a minute old. Rejects with S3Error. */
  readonly providers?: { list(): Promise<readonly ListedProvider[]> }
  /** The tasks of buckets. `remember` is durable when it resolves, and may be repeated. */
  readonly tasks?: { remember(task: CreatedFromBucket): Promise<void> }
}
