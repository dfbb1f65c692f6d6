import type { Identity, Session } from './identity.js'
import type { Method, OwnTerms, Reply } from './request.js'

/** The key pair for which a request is made. */
export interface RequestOwner {
  readonly accessKeyId: string
  /** See Job.session. */
  readonly session?: Session | undefined
  /** The client that ordered the work: conditions of policies see its address and connection. */
  readonly client: { readonly remoteAddress: string; readonly secure: boolean; readonly host: string }
}

/** A request that the server makes in the name of a key pair, as its client would send it. */
export interface OwnRequest {
  readonly method: Method
  readonly bucket: string
  /** Absent for a request to the bucket. */
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  /** Lower-case names; values in the form of the wire, see RequestHead.headers. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  readonly own?: OwnTerms
}

/**
 * Decides whether an identity may send a request, as for a signed request that has arrived from the client: nothing is
 * carried out, and no body is read. What an operation asks about later, such as the source of a copy, is not decided.
 * Throws S3Error AccessDenied, and those of a request that no operation answers.
 */
export type Decide = (
  by: { readonly identity: Identity; readonly client: RequestOwner['client'] },
  request: OwnRequest,
) => Promise<void>

/**
 * Carries out a request in the name of a key pair, with the rights that it has at this moment: the same operation, the
 * same decision and the same audit log as for a signed request. Resolves with the reply of the operation, whose body is
 * to be read or discarded. Throws S3Error InvalidAccessKeyId for a key pair that is gone, and those of the operation.
 */
export type Perform = (owner: RequestOwner, request: OwnRequest, signal: AbortSignal) => Promise<Reply>
