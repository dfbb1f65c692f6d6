/** A storage provider, as lists of services name it. Amounts and sizes are texts of the service that lists it. */
export interface ListedProvider {
  readonly MinerId: string
  readonly Location: string
  /** Decimal, fil per GiB and epoch. */
  readonly Price: string
  /** The same for verified deals. */
  readonly VerifiedPrice: string
  /** With its unit: `32GiB`. */
  readonly MinPieceSize: string
  readonly MaxPieceSize: string
  readonly OfflineDealAvailable: boolean
  readonly Score: number
  readonly Status: string
  readonly ContactInfo: string
  /** When this was reported, in digits. */
  readonly UpdateTime: string
  /** The same in RFC 3339. */
  readonly UpdatedAt?: string | undefined
}

/** A task that a plugin has had created from a bucket. */
interface CreatedFromBucket {
  readonly jobId: string
  readonly bucket: string
  readonly name: string
  readonly file: string
  /** '' if it is not known. */
  readonly uuid: string
  /** Access key of the identity that ordered it; '' for the server. */
  readonly accessKeyId: string
}

declare module 'dealgate/plugin' {
  interface PluginServices {
    /** A list of storage providers, up to a minute old. Rejects with S3Error. */
    readonly providers?: { list(): Promise<readonly ListedProvider[]> }
    /** The tasks of buckets. `remember` is durable when it resolves, and may be repeated. */
    readonly tasks?: { remember(task: CreatedFromBucket): Promise<void> }
  }
}
