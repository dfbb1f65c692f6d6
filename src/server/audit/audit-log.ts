/** A change of access, settings or spending, or an order that can spend money. */
export interface AuditEntry {
  readonly time: string
  /** `PutBucketPolicy`, or `job <kind>` for a job that was created. */
  readonly action: string
  readonly plugin?: string | undefined
  /** Access key id; absent for what the server does by itself. */
  readonly accessKeyId?: string | undefined
  /** User of the operating system, for a command such as `dealgate keys add`. */
  readonly user?: string | undefined
  /** Name and role of the session of temporary credentials. */
  readonly session?: string | undefined
  readonly requestId?: string | undefined
  readonly remote?: string | undefined
  readonly bucket?: string | undefined
  readonly key?: string | undefined
  /** Path of what a job is about, or what a command has changed. */
  readonly resource?: string | undefined
  /** What a command has spent, in coins. */
  readonly amount?: string | undefined
  /** Options that a reload has changed. */
  readonly changed?: readonly string[] | undefined
  /** `ok`, `begun` for an answer that comes later, the S3 error code, or `failed` for a command. */
  readonly outcome: string
  readonly status?: number | undefined
  readonly jobId?: string | undefined
}

export interface AuditWriting {
  /** The entry is on the disk when `write` resolves. Default true; false for refused requests of unknown clients. */
  readonly durable?: boolean
}

/** Takes the entries. */
export interface AuditLog {
  write(entry: AuditEntry, writing?: AuditWriting): Promise<void>
}
