import type { IncomingMessage } from 'node:http'
import type { ChunkSigning, PayloadMode } from '../auth/caller.js'
import type { ChecksumAlgorithm } from '../common/checksums.js'
import { S3Error } from '../errors/s3-error.js'
import type { Limits } from '../limits.js'
import { AwsChunkedDecoder } from './aws-chunked.js'
import type { BodyFacts, BodyOptions, ByteSink, RequestBody } from './body.js'
import { type BodySource, BufferSource, IncomingSource } from './body-source.js'
import { hasAwsChunked } from './content-encoding.js'
import { type DeclaredDigests, declaredDigests } from './declared-digests.js'
import { declaresBody, decodedLength, refuseTransferCodings, wireLength } from './declared-length.js'
import { Digests } from './digests.js'
import type { RequestHead } from './s3-request.js'
import type { Trailer } from './trailer.js'

/** Called once, before the first byte of a body is asked for: the place to send `100 Continue`. */
export type BeforeBody = () => void

/**
 * The body of a request. Nothing is read, and no listener attached, before somebody asks for bytes.
 * @param payload from `caller.payload`, or `anonymousPayload(head)` where nobody signed
 * @throws S3Error for declarations about the body that are malformed or contradict each other; see `declaredDigests` and `decodedLength`
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
  const declared = declaredDigests(head, payload, framing?.trailer ?? false)
  const length = framing
    ? decodedLength(head.headers, framing.signing !== undefined)
    : payload.kind === 'buffered'
      ? payload.bytes.length
      : wireLength(head.headers)
  const open = (): BodySource => {
    if (payload.kind === 'buffered') return new BufferSource(payload.bytes)
    if (!declaresBody(head.headers)) return new BufferSource(undefined)
    beforeBody?.()
    return new IncomingSource(incoming, limits.bodyIdleMs)
  }
  return new StreamedBody(open, framing, declared, length, limits.maxPutBytes)
}

interface Framing {
  readonly signing: ChunkSigning | undefined
  readonly trailer: boolean
}

/**
 * Framing is there if x-amz-content-sha256 says STREAMING-..., with or without the Content-Encoding. An unsigned body under
 * `Content-Encoding: aws-chunked` is taken to be framed as well: if it is not, it fails to parse, whereas framing taken for data would be stored.
 */
function framingOf({ headers }: RequestHead, payload: PayloadMode): Framing | undefined {
  if (payload.kind === 'chunked') return payload
  if (!hasAwsChunked(headers['content-encoding'])) return undefined
  if (payload.kind === 'unsigned') return { signing: undefined, trailer: true }
  throw new S3Error('InvalidRequest', {
    message: 'Content-Encoding aws-chunked needs one of the STREAMING forms in x-amz-content-sha256.',
  })
}

class StreamedBody implements RequestBody {
  readonly #open: () => BodySource
  readonly #framing: Framing | undefined
  readonly #declared: DeclaredDigests
  readonly #maxBytes: number
  readonly length: number | undefined
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

  get empty(): boolean {
    return this.length === 0
  }

  async stream(sink: ByteSink, options: BodyOptions = {}): Promise<BodyFacts> {
    if (this.#used) throw new Error('The body of a request can be read only once.')
    this.#used = true
    if (this.length !== undefined) this.#checkSize(this.length)
    const digests = new Digests(this.#declared, options)
    const decoder = this.#framing && new AwsChunkedDecoder(this.#framing.signing, this.#framing.trailer)
    const source = this.#open()
    try {
      let size = 0
      for (;;) {
        const next = source.next()
        // Most bytes are there already: awaiting only what has to be awaited spares a turn for each read.
        const bytes = next instanceof Promise ? await next : next
        if (bytes === undefined) break
        for (const piece of decoder ? decoder.decode(bytes) : [bytes]) {
          size += piece.length
          this.#checkSize(size)
          digests.update(piece)
          const taken = sink(piece)
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
    const facts = await this.stream((piece) => {
      size += piece.length
      check(size)
      pieces.push(piece)
    }, options)
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
  return new S3Error('IncompleteBody', {
    message: `The body has ${size < declared ? 'fewer' : 'more'} bytes than the ${declared} that were declared.`,
  })
}
