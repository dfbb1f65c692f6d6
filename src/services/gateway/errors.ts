import { type ErrorKind, type ErrorSubject, errorTable } from './error-table.js'
import type { QuirkName } from './quirks.js'

/**
 * The only error that the gateway's own code throws. It is answered as a JSON-RPC error, a text or an XML document,
 * depending on the interface.
 */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly kind: ErrorKind
  readonly subject: ErrorSubject

  constructor(kind: ErrorKind, subject: ErrorSubject = {}, cause?: unknown) {
    super(errorTable[kind].rpc(subject), cause === undefined ? undefined : { cause })
    this.kind = kind
    this.subject = subject
  }

  /** Error code of S3. */
  get code(): string {
    return errorTable[this.kind].code
  }

  get status(): number {
    return errorTable[this.kind].status
  }

  /** Error code in JSON-RPC replies. */
  get number(): number {
    return errorTable[this.kind].number
  }

  /** Error text in JSON-RPC replies. */
  rpcText(quirks: ReadonlySet<QuirkName>): string {
    return this.#fs3Text(quirks) ?? this.message
  }

  /** Error text on REST endpoints. */
  restText(quirks: ReadonlySet<QuirkName>): string {
    const row = errorTable[this.kind]
    return this.#fs3Text(quirks) ?? (row.rest ?? row.rpc)(this.subject)
  }

  #fs3Text(quirks: ReadonlySet<QuirkName>): string | undefined {
    const row: { fs3?: string } = errorTable[this.kind]
    return quirks.has('fs3-texts') ? row.fs3 : undefined
  }
}
