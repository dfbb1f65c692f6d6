import { createHash } from 'node:crypto'
import { createChecksum, prepareChecksum } from '../../common/checksums/checksums.js'
import { S3Error, slowDown } from '../../common/errors/s3-error.js'
import { clientOf } from '../../common/quota.js'
import type { Upload } from '../api/gateway.js'
import type { ObjectChecksum } from '../api/object-checksum.js'
import type { BodyFacts, BodyOptions, ByteSink } from '../api/request.js'
import type { PutRequest, Source } from '../api/store.js'
import type { StoreDeps } from './store-deps.js'

/** Spools a body of unknown length to a file: the gateway requires the exact length in advance. */
export async function spooled<T>(
  deps: Pick<StoreDeps, 'state' | 'spools'>,
  source: Source,
  request: Pick<PutRequest, 'maxBytes' | 'event' | 'wantChecksum'>,
  run: (source: Source, length: number) => Promise<T>,
): Promise<T> {
  const { maxBytes } = request
  const { accessKeyId, remoteAddress } = request.event.origin
  const client = clientOf(accessKeyId, remoteAddress)
  let taken = 0
  const spool = await deps.state.spool()
  try {
    const facts = await source.stream(
      (chunk) => {
        if (spool.size + chunk.length > maxBytes) throw tooLarge(spool.size + chunk.length, maxBytes)
        if (!deps.spools.take(client, chunk.length)) throw noRoom()
        taken += chunk.length
        return spool.write(chunk)
      },
      { md5: true, checksum: request.wantChecksum },
    )
    const { size } = spool
    const known: Source = {
      length: size,
      declaredMd5: facts.md5,
      async stream(sink) {
        await spool.read(sink)
        return facts
      },
    }
    return await run(known, size)
  } finally {
    try {
      await spool.discard()
    } finally {
      deps.spools.give(client, taken)
    }
  }
}

function noRoom(): S3Error {
  return slowDown(
    'This client, or all clients together, send too many bytes without a declared length at once. Send fewer at a time, or declare the length (Content-Length, x-amz-decoded-content-length).',
  )
}

export function tooLarge(size: number, maxBytes: number): S3Error {
  return new S3Error('EntityTooLarge', { fields: { ProposedSize: size, MaxSizeAllowed: maxBytes } })
}

/**
 * Forwards locally produced bytes to a sink and computes the requested digests: makes a `Source` of anything that can
 * feed a sink.
 */
export async function digesting(
  feed: (sink: ByteSink) => Promise<void>,
  sink: ByteSink,
  options: BodyOptions = {},
): Promise<BodyFacts> {
  const md5 = options.md5 ? createHash('md5') : undefined
  await prepareChecksum(options.checksum)
  const checksum = options.checksum && createChecksum(options.checksum)
  let size = 0
  await feed((chunk) => {
    size += chunk.length
    md5?.update(chunk)
    checksum?.update(chunk)
    return sink(chunk)
  })
  return {
    size,
    md5: md5?.digest(),
    checksum: checksum && options.checksum && { algorithm: options.checksum, value: checksum.digest() },
  }
}

/** Sends all but the last bytes. A small body is collected instead. The caller has to write `rest`. */
export async function streamHoldingBack(
  source: Source,
  upload: Upload,
  collectBytes: number,
  options: { md5: boolean; checksum?: ObjectChecksum['algorithm'] },
): Promise<{ facts: BodyFacts; rest: Buffer | undefined }> {
  const small: Buffer[] = []
  let held: { readonly chunk: Buffer; readonly release: (() => void) | undefined } | undefined
  const facts = await source.stream((chunk, release) => {
    if (chunk.length === 0) return
    if (collectBytes > 0) {
      small.push(chunk)
      return
    }
    const previous = held
    held = { chunk, release }
    return previous && upload.write(previous.chunk, previous.release)
  }, options)
  const rest = small.length > 1 ? Buffer.concat(small) : (small[0] ?? held?.chunk)
  return { facts, rest }
}

/**
 * A body that this server makes.
 * @param body its bytes, or their number and what sends them to a sink, one chunk after the other
 */
export function sourceOf(
  body: Buffer | { readonly length: number; readonly send: (sink: ByteSink) => Promise<void> },
): Source {
  const { length } = body
  const send = Buffer.isBuffer(body) ? async (to: ByteSink) => to(body) : body.send
  return { length, stream: (sink, options) => digesting(send, sink, options) }
}
