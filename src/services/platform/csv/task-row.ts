/** One row of a task's CSV: one deal. A member is undefined when its field is empty or its column absent. */
export interface TaskRow {
  /** Where the provider fetches the CAR: an http or https URL. */
  readonly fileSourceUrl: string
  /** UUID of the task in lower case; the same in all rows. */
  readonly uuid?: string
  readonly sourceFileName?: string
  readonly minerId?: string
  readonly dealCid?: string
  readonly payloadCid?: string
  /** MD5 of the CAR, 32 hexadecimal digits in lower case. */
  readonly md5?: string
  readonly startEpoch?: number
  readonly pieceCid?: string
  /** Size of the CAR, bytes. */
  readonly fileSize?: number
  /** Decimal, fil. */
  readonly cost?: string
}

/** Names of the columns in the order in which `writeTaskCsv` writes them, and the member that each one holds. */
export const columns = [
  ['uuid', 'uuid'],
  ['source_file_name', 'sourceFileName'],
  ['miner_id', 'minerId'],
  ['deal_cid', 'dealCid'],
  ['payload_cid', 'payloadCid'],
  ['file_source_url', 'fileSourceUrl'],
  ['md5', 'md5'],
  ['start_epoch', 'startEpoch'],
  ['piece_cid', 'pieceCid'],
  ['file_size', 'fileSize'],
  ['cost', 'cost'],
] as const satisfies readonly (readonly [string, keyof TaskRow])[]

/** A CSV that cannot become deals. The message names row and column where there are any, and what is expected there. */
export class TaskFileError extends Error {
  override readonly name = 'TaskFileError'
}
