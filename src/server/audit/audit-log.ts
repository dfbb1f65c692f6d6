/** A change of access, settings or spending, or an order that can spend money. */
export interface AuditEntry {
  readonly time: string
  /** `PutBucketPolicy`, or `job <kind>` for a job that was created. */
  readonly action: string
  readonly plugin?: string | undefined
  /** Access key id; absent for what the server does by itself. */
  readonly accessKeyId?: string | undefined
  /** Name and role of the session of temporary credentials. */
  readonly session?: string | undefined
  readonly requestId?: string | undefined
  readonly remote?: string | undefined
  readonly bucket?: string | undefined
  readonly key?: string | undefined
  /** Path of what a job is about. */
  readonly resource?: string | undefined
  /** `ok`, `begun` for an answer that comes later, or the S3 error code. */
  readonly outcome: string
  readonly status?: number | undefined
  readonly jobId?: string | undefined
}

/** Takes the entries. Durable when it resolves. */
export interface AuditLog {
  write(entry: AuditEntry): Promise<void>
}
