import { createHash } from 'node:crypto'
import { checksums, type ReplyHeaders, S3Error } from 'dealgate/plugin'
import pMap from 'p-map'
import type { Row } from './order.js'
import { contentOf } from './replies.js'
import { type Outcome, on, type Send } from './task.js'

/**
 * Reads every byte of an object and compares it with what is recorded: its length, its ETag where that is an MD5, and
 * its checksum where that is one of the whole object. The message has the digests, as S3ComputeObjectChecksum states
 * them.
 * @throws S3Error ChecksumMismatch, and those of GetObject
 */
export async function verifyContent(row: Row, asked: string | undefined, send: Send): Promise<Outcome> {
  const reply = await send({ ...on(row), method: 'GET', headers: { 'x-amz-checksum-mode': 'ENABLED' } })
  const recorded = recordedIn(reply.headers)
  const algorithms = new Set<checksums.Algorithm>(recorded ? [recorded.algorithm] : [])
  if (asked !== undefined) algorithms.add(asked as checksums.Algorithm)
  const sums = await pMap(algorithms, async (algorithm) => ({ algorithm, sum: await checksums.open(algorithm) }))
  const md5 = createHash('md5')
  let size = 0
  for await (const piece of contentOf(reply)) {
    size += piece.length
    md5.update(piece)
    for (const { sum } of sums) sum.update(piece)
  }
  const found = sums.map(({ algorithm, sum }) => ({ algorithm, value: sum.digest() }))
  const etag = String(reply.headers.etag ?? '').replaceAll('"', '')
  const hash = md5.digest('hex')
  const known = Number(reply.headers['content-length'])
  if (Number.isFinite(known) && known !== size) throw mismatch(`It has ${size} bytes, and ${known} are recorded.`)
  if (/^[0-9a-f]{32}$/.test(etag) && isMd5(reply.headers) && etag !== hash)
    throw mismatch(`The MD5 of its bytes is ${hash}, and its ETag is ${etag}.`)
  const own = found.find(({ algorithm }) => algorithm === recorded?.algorithm)
  if (recorded && own && own.value !== recorded.value)
    throw mismatch(`The ${own.algorithm} of its bytes is ${own.value}, and ${recorded.value} is recorded.`)
  const plain = { algorithm: 'MD5', value: Buffer.from(hash, 'hex').toString('base64') }
  const shown = found.find(({ algorithm }) => algorithm === asked) ?? own ?? plain
  const message = JSON.stringify({
    checksum_base64: shown.value,
    etag,
    checksumAlgorithm: shown.algorithm,
    checksumType: 'FULL_OBJECT',
    size,
  })
  return { status: reply.status, message }
}

/** The recorded checksum of the whole object; undefined for none, and for one of its parts. */
function recordedIn(headers: ReplyHeaders) {
  if (headers['x-amz-checksum-type'] === 'COMPOSITE') return undefined
  for (const algorithm of checksums.algorithms) {
    const value = headers[checksums.headerOf(algorithm)]
    if (typeof value === 'string' && !value.includes('-')) return { algorithm, value }
  }
  return undefined
}

/** The ETag of an object with a named key is a text of its own. */
function isMd5(headers: ReplyHeaders): boolean {
  return (headers['x-amz-server-side-encryption'] ?? 'AES256') === 'AES256'
}

function mismatch(message: string): S3Error {
  return new S3Error('ChecksumMismatch', { status: 409, message })
}
