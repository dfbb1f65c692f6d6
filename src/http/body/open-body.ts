import type { IncomingMessage } from 'node:http'
import type { ChecksumAlgorithm } from '../../../common/checksums/checksums.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { PayloadMode } from '../../api/identity.js'
import type { Limits } from '../../api/limits.js'
import type { BodyFacts, BodyOptions, ByteSink, RequestBody, RequestHead } from '../../api/request.js'
import { AwsChunkedDecoder, type Framing, type Trailer } from './aws-chunked.js'
import { type BodyLimits, type BodySource, BufferSource, IncomingSource } from './body-source.js'
import {
  type DeclaredDigests,
  declaredDigests,
  declaresBody,
  declaresLength,
  decodedLength,
  hasAwsChunked,
  refuseTransferCodings,
  wireLength,
} from './declared-digests.js'
import { Digests } from './digests.js'

/**
 * Called once before the first byte of a body is read: sends `100 Continue`, or throws if the server has no slot for
 * the body. The returned function is called when the body has been read or abandoned.
 */
export type BeforeBody = () => (() => void) | undefined

/**
 * Opens the body of a request. Reads nothing and adds no listener before the first bytes are requested.
 * @param payload `caller.payload`, or `anonymousPayload(head)` for an unsigned request
 * @throws S3Error for malformed or contradicting declarations; see `declaredDigests` and `decodedLength`
 */
export function openBody(
  incoming: IncomingMessage,
  head: RequestHead,
  payload: PayloadMode,
  limits: Limits,
  beforeBody?: BeforeBody,
): RequestBody {
  refuseTransferCodings(head.headers)
  const framing = framingOf(head, payload)
  const declared = declaredDigests(head, payload, { framed: framing?.trailer ?? false })
  const length = framing
    ? decodedLength(head.headers, { required: framing.signing !== undefined || declaresLength(head.headers) })
    : payload.kind === 'buffered'
      ? payload.bytes.length
      : wireLength(head.headers)
  const open = (): BodySource => {
    if (payload.kind === 'buffered') return new BufferSource(payload.bytes)
    if (!declaresBody(head.headers)) return new BufferSource(undefined)
    return openIncoming(incoming, limits, beforeBody)
  }
  return new StreamedBody(open, framing, declared, length, limits.maxPutBytes)
}

/** The body of a request that the server makes itself. */
export function ownBody(head: RequestHead, bytes: Buffer, limits: Limits): RequestBody {
  const declared = declaredDigests(head, { kind: 'buffered', bytes }, { framed: false })
  return new StreamedBody(() => new BufferSource(bytes), undefined, declared, bytes.length, limits.maxPutBytes)
}

/**
 * Opens the body of a request. Rethrows errors of `beforeBody`.
 * @throws S3Error NotImplemented for an unknown transfer coding
 */
export function openIncoming(incoming: IncomingMessage, bodyLimits: BodyLimits, beforeBody?: BeforeBody): BodySource {
  refuseTransferCodings(incoming.headers)
  const source = new IncomingSource(incoming, bodyLimits)
  let leave: (() => void) | undefined
  try {
    leave = beforeBody?.()
  } catch (error) {
    source.close()
    throw error
  }
  return {
    next: () => source.next(),
    used: (bytes) => source.used(bytes),
    close() {
      source.close()
      leave?.()
    },
  }
}

/**
 * Returns the framing of a body. A body is framed if x-amz-content-sha256 is STREAMING-..., with or without a
 * Content-Encoding. An unsigned body with `Content-Encoding: aws-chunked` counts as framed too: if it is not, parsing
 * fails, whereas framing mistaken for data would be stored. Like S3, a body with a signed hash is stored as sent,
 * regardless of its Content-Encoding.
 * @throws S3Error InvalidRequest if a signed hash and a different decoded length contradict each other
 */
function framingOf({ headers }: RequestHead, payload: PayloadMode): Framing | undefined {
  if (payload.kind === 'chunked') return payload
  if (!hasAwsChunked(headers['content-encoding'])) return undefined
  if (payload.kind === 'unsigned') return { signing: undefined, trailer: true }
  const decoded = decodedLength(headers)
  if (decoded !== undefined && decoded !== wireLength(headers)) {
    throw new S3Error('InvalidRequest', {
      message:
        'An aws-chunked body with a length without framing needs one of the STREAMING forms in x-amz-content-sha256.',
    })
  }
  return undefined
}

class StreamedBody implements RequestBody {
  readonly #open: () => BodySource
  readonly #framing: Framing | undefined
  readonly #declared: DeclaredDigests
  readonly #maxBytes: number
  readonly length: number | undefined
  received = 0
  #used = false

  constructor(
    open: () => BodySource,
    framing: Framing | undefined,
    declared: DeclaredDigests,
    length: number | undefined,
    maxBytes: number,
  ) {
    this.#open = open
    this.#framing = framing
    this.#declared = declared
    this.#maxBytes = maxBytes
    this.length = length
  }

  get declaredChecksum(): ChecksumAlgorithm | undefined {
    return this.#declared.checksum?.algorithm ?? this.#declared.trailer
  }

  get declaredMd5(): Buffer | undefined {
    return this.#declared.md5
  }

  get empty(): boolean {
    return this.length === 0
  }

  async stream(sink: ByteSink, options: BodyOptions = {}): Promise<BodyFacts> {
    if (this.#used) throw new Error('The body of a request can be read only once.')
    this.#used = true
    if (this.length !== undefined) this.#checkSize(this.length)
    const digests = await Digests.of(this.#declared, options)
    const decoder = this.#framing && new AwsChunkedDecoder(this.#framing)
    const source = this.#open()
    try {
      let size = 0
      for (;;) {
        const next = source.next()
        // Most bytes are buffered already: not awaiting them saves a microtask per read.
        const bytes = next instanceof Promise ? await next : next
        if (bytes === undefined) break
        this.received += bytes.length
        const pieces = decoder ? decoder.decode(bytes) : [bytes]
        let inUse = pieces.length
        const release = () => {
          if (--inUse === 0) source.used?.(bytes)
        }
        for (const piece of pieces) {
          size += piece.length
          this.#checkSize(size)
          digests.update(piece)
          const taken = sink(piece, release)
          if (taken) await taken
        }
      }
      const trailer: Trailer = decoder?.end() ?? []
      if (this.length !== undefined && size < this.length) throw incomplete(size, this.length)
      return digests.finish(size, trailer)
    } finally {
      source.close()
    }
  }

  async collect(maxBytes: number, options?: BodyOptions): Promise<{ bytes: Buffer; facts: BodyFacts }> {
    const pieces: Buffer[] = []
    let size = 0
    const check = (bytes: number): void => {
      if (bytes <= maxBytes) return
      throw new S3Error('MaxMessageLengthExceeded', { fields: { MaxMessageLengthBytes: maxBytes } })
    }
    check(this.length ?? 0)
    const facts = await this.stream(
      (piece) => {
        size += piece.length
        check(size)
        pieces.push(piece)
      },
      { ...options, document: true },
    )
    return { bytes: pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, size), facts }
  }

  #checkSize(size: number): void {
    if (size > this.#maxBytes) {
      throw new S3Error('EntityTooLarge', { fields: { ProposedSize: size, MaxSizeAllowed: this.#maxBytes } })
    }
    if (this.length !== undefined && size > this.length) throw incomplete(size, this.length)
  }
}

function incomplete(size: number, declared: number): S3Error {
  return new S3Error('IncompleteBody', { fields: { NumberBytesExpected: declared, NumberBytesProvided: size } })
}
