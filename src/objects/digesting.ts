import { createHash } from 'node:crypto'
import { createChecksum, prepareChecksum } from '../common/checksums/checksums.js'
import type { BodyFacts, BodyOptions, ByteSink } from '../request/body/body.js'

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
