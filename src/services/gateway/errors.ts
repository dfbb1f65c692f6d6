import type { ErrorKind } from './error-table.js'
import { errorTable } from './error-table.js'

export interface ErrorSubject {
  readonly bucket?: string
  readonly key?: string
  /** The offending value. */
  readonly value?: string
}

/** The one error the gateway's own code throws; becomes a JSON-RPC error, a text or an XML document, depending on where it was asked. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly kind: ErrorKind
  readonly subject: ErrorSubject

  constructor(kind: ErrorKind, subject: ErrorSubject = {}, cause?: unknown) {
    super(errorTable[kind].rpc(subject), cause === undefined ? undefined : { cause })
    this.kind = kind
    this.subject = subject
  }

  /** S3's code for it. */
  get code(): string {
    return errorTable[this.kind].code
  }

  get status(): number {
    return errorTable[this.kind].status
  }

  /** The number of it in JSON-RPC replies. */
  get number(): number {
    return errorTable[this.kind].number
  }

  /** The text REST endpoints give. */
  get restMessage(): string {
    const row = errorTable[this.kind]
    return (row.rest ?? row.rpc)(this.subject)
  }
}
