import { createHash } from 'node:crypto'
import { type ChecksumAlgorithm, checksumHeader, createChecksum } from '../../common/checksums/checksums.js'
import { prepareXxHash } from '../../common/checksums/xxhash.js'
import { PERIOD, periodOf } from '../load/content.js'
import type { Load } from '../load/load.js'
import type { Subject } from '../servers/subject.js'
import { type CaseResult, interleaved, measure, type Run } from './measure.js'

await prepareXxHash()

const MIB = 1024 * 1024
const PATH = 'bench/large'

/**
 * One large object down and up, over one connection at a time.
 * @param wanted names of forms; by default all, and uploads in chunks, too
 */
export async function large(
  load: Load,
  subjects: readonly Subject[],
  stores: readonly Subject[],
  rounds: number,
  size: number,
  wanted?: readonly string[],
): Promise<CaseResult[]> {
  const sums = digestsOf(PATH, size)
  const crc = (algorithm: ChecksumAlgorithm) => `${checksumHeader(algorithm)}:${checksumOf(algorithm, PATH, size)}`
  const forms: readonly { readonly name: string; readonly put: boolean; readonly headers: Record<string, string> }[] = [
    { name: 'GET', put: false, headers: {} },
    { name: 'PUT, body not signed', put: true, headers: { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } },
    { name: 'PUT, SHA-256 signed', put: true, headers: { 'x-amz-content-sha256': sums.sha256 } },
    {
      name: 'PUT, SHA-256 signed and Content-MD5',
      put: true,
      headers: { 'x-amz-content-sha256': sums.sha256, 'content-md5': sums.md5 },
    },
  ]
  const transfer = async (subject: Subject, put: boolean, headers: Record<string, string>, path: string) => {
    await subject.prepare?.()
    const { host, port } = subject
    const head = subject.large(put ? 'PUT' : 'GET', path, size, headers)
    return measure(load, subject, { transfer: { host, port, head, path: PATH, size, sends: put } }, size)
  }
  for (const store of stores) await transfer(store, true, { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }, PATH)
  const results: CaseResult[] = []
  for (const { name, put, headers } of forms.filter((form) => wanted?.includes(form.name) ?? true)) {
    const runs: Record<string, Run[]> = {}
    await interleaved(rounds, subjects, async (subject) => {
      const path = put ? `${PATH}-${subject.name.replaceAll(/\W/g, '')}` : PATH
      const run = await transfer(subject, put, headers, path)
      runs[subject.name] = [...(runs[subject.name] ?? []), run]
    })
    results.push({ name: `${name}, ${size / MIB} MiB`, unit: 'byte', runs })
  }
  if (wanted) return results
  const framed = [
    { name: 'signed chunks', trailer: undefined },
    { name: 'unsigned chunks, CRC32 as trailer', trailer: crc('CRC32') },
    { name: 'unsigned chunks, CRC64NVME as trailer', trailer: crc('CRC64NVME') },
  ]
  for (const { name, trailer } of framed) {
    const runs: Record<string, Run[]> = {}
    await interleaved(
      rounds,
      subjects.filter(({ chunked }) => chunked),
      async (subject) => {
        const { host, port } = subject
        const request = subject.chunked?.(`${PATH}-chunked`, size, trailer)
        if (!request) return
        const job = { transfer: { host, port, ...request, path: PATH, size, sends: true } }
        runs[subject.name] = [...(runs[subject.name] ?? []), await measure(load, subject, job, size)]
      },
    )
    results.push({ name: `PUT, ${name}, ${size / MIB} MiB`, unit: 'byte', runs })
  }
  return results
}

/** Base64. */
function checksumOf(algorithm: ChecksumAlgorithm, path: string, size: number): string {
  const period = periodOf(path, PERIOD)
  const checksum = createChecksum(algorithm)
  for (let at = 0; at < size; at += PERIOD) checksum.update(period.subarray(0, Math.min(PERIOD, size - at)))
  return checksum.digest()
}

function digestsOf(path: string, size: number): { sha256: string; md5: string } {
  const period = periodOf(path, PERIOD)
  const sha256 = createHash('sha256')
  const md5 = createHash('md5')
  for (let at = 0; at < size; at += PERIOD) {
    const block = period.subarray(0, Math.min(PERIOD, size - at))
    sha256.update(block)
    md5.update(block)
  }
  return { sha256: sha256.digest('hex'), md5: md5.digest('base64') }
}
