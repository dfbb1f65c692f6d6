import { createCipheriv } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import {
  type ChecksumAlgorithm,
  checksumAlgorithms,
  combineChecksums,
  createChecksum,
  isCombinable,
  prepareChecksum,
} from '../../common/checksums/checksums.js'
import { Crc64Engine } from '../../common/checksums/crc64-wasm.js'
import { Crc64Nvme } from '../../common/checksums/crc64nvme.js'
import { CleanupStack } from '../../common/cleanup-stack.js'
import { freeBuffer } from '../../common/free-buffer.js'
import { redact } from '../../common/log.js'
import { Metrics } from '../../common/metrics.js'
import { render } from '../../common/render-metrics.js'
import { presignQuery } from '../../common/sigv4.js'
import { xmlTime } from '../../common/time.js'
import { bytes as contentOf, MiB } from '../support/content/content.js'
import { example } from '../support/sign/sign-head.js'

t.test('closers run once, in reverse order, also after one that fails', async (t) => {
  const closed: string[] = []
  const cleanup = new CleanupStack()
  cleanup.defer(() => void closed.push('first'))
  cleanup.defer(() => {
    closed.push('second')
    throw new Error('second failed')
  })
  cleanup.defer(async () => {
    closed.push('third')
    throw new Error('third failed')
  })
  await t.rejects(cleanup.close(), { message: 'third failed' })
  t.same(closed, ['third', 'second', 'first'])
  await cleanup.close()
  t.equal(closed.length, 3)
})
t.test('secrets of a query are replaced, however their names are written', async (t) => {
  for (const [given, shown] of [
    ['/b/k?X-Amz-Signature=abc&x-id=GetObject', '/b/k?X-Amz-Signature=REDACTED&x-id=GetObject'],
    ['/b/k?a=1&X%2DAmz%2DSignature=abc#x', '/b/k?a=1&X%2DAmz%2DSignature=REDACTED#x'],
    ['/b/k?%58-Amz-Credential=a/b&%74oken=c', '/b/k?%58-Amz-Credential=REDACTED&%74oken=REDACTED'],
    ['/b/k?X-Cloud-Security-Token=a=b?c', '/b/k?X-Cloud-Security-Token=REDACTED'],
    ['/b/k?X-Amz-Signature=abc?X-Amz-Signature=def', '/b/k?X-Amz-Signature=REDACTED'],
    ['/b/k?prefix=x?token=c&a=http://h/?Signature=d', '/b/k?prefix=x?token=REDACTED&a=http://h/?Signature=REDACTED'],
    ['GET "/b?token=abc" of a log', 'GET "/b?token=REDACTED" of a log'],
    ['/b/k?continuation-token=abc&%ZZ=1&=2&%=3', '/b/k?continuation-token=abc&%ZZ=1&=2&%=3'],
    ['/b/a=b&c', '/b/a=b&c'],
  ])
    t.equal(redact(given as string), shown)
})
t.test('times of listings have milliseconds, and nothing that a gateway adds', async (t) => {
  t.equal(xmlTime('2026-01-02T03:04:05.678901234Z'), '2026-01-02T03:04:05.678Z')
  t.equal(xmlTime('2026-01-02T03:04:05.678Z'), '2026-01-02T03:04:05.678Z')
  t.equal(xmlTime('2026-01-02T03:04:05Z'), '2026-01-02T03:04:05.000Z')
  t.equal(xmlTime('2026-01-02T05:04:05.5+02:00'), '2026-01-02T03:04:05.500Z')
  t.throws(() => xmlTime('<Key>a</Key><Size>1</.678Z'), RangeError)
  t.throws(() => xmlTime('2026-01-02T03:04:05.<a>Z'), RangeError)
})

for (const algorithm of checksumAlgorithms) await prepareChecksum(algorithm)

function checksumOf(algorithm: ChecksumAlgorithm, ...pieces: Uint8Array[]): string {
  const checksum = createChecksum(algorithm)
  for (const piece of pieces) checksum.update(piece)
  return checksum.digest()
}

const hex = (base64: string) => Buffer.from(base64, 'base64').toString('hex')

t.test('check values of the CRC catalogue and of FIPS 180', async (t) => {
  const digits = Buffer.from('123456789')
  t.equal(hex(checksumOf('CRC32', digits)), 'cbf43926')
  t.equal(hex(checksumOf('CRC32C', digits)), 'e3069283')
  t.equal(hex(checksumOf('CRC64NVME', digits)), 'ae8b14860a799888')
  t.equal(hex(checksumOf('SHA1', Buffer.from('abc'))), 'a9993e364706816aba3e25717850c26c9cd0d89d')
  t.equal(
    hex(checksumOf('SHA256', Buffer.from('abc'))),
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  )
})

t.test('CRC64NVME by WebAssembly is that by JavaScript, in pieces of every length', async () => {
  const engine = Crc64Engine.make()
  if (!engine) throw new Error('this Node.js has no WebAssembly')
  const all = contentOf('crc64', 200_000)
  const lengths = [0, 1, 15, 16, 7231, 7232, 7233, 7264, 8191, 65_535, 65_536, 65_537, 131_072, 199_999]
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constantFrom(...lengths), fc.nat(20_000)), { maxLength: 4 }),
      fc.nat(all.length),
      (pieces, start) => {
        let state = 0xffff_ffff_ffff_ffffn
        const expected = new Crc64Nvme()
        for (const length of pieces) {
          const piece = all.subarray(start, start + length)
          state = engine.update(state, piece)
          expected.update(piece)
        }
        return (state ^ 0xffff_ffff_ffff_ffffn) === expected.digest().readBigUInt64BE()
      },
    ),
  )
})

const bytes = fc.uint8Array({ maxLength: 200 })

t.test('combining gives the checksum of the whole', async (t) => {
  fc.assert(
    fc.property(
      fc.constantFrom(...checksumAlgorithms.filter(isCombinable)),
      fc.array(bytes, { maxLength: 8 }),
      (algorithm, pieces) =>
        combineChecksums(
          algorithm,
          pieces.map((piece) => ({ value: checksumOf(algorithm, piece), size: piece.length })),
        ) === checksumOf(algorithm, ...pieces),
    ),
  )
  t.same(checksumAlgorithms.filter(isCombinable), ['CRC32', 'CRC32C', 'CRC64NVME'])
})

t.test('combining handles parts beyond 4 GiB', async (t) => {
  // Appending n zero bytes twice equals appending 2n of them, whatever n is.
  const value = checksumOf('CRC64NVME', Buffer.from('head'))
  for (const algorithm of ['CRC32', 'CRC32C', 'CRC64NVME'] as const) {
    const head = { value: checksumOf(algorithm, Buffer.from('head')), size: 4 }
    const zero = { value: algorithm === 'CRC64NVME' ? 'AAAAAAAAAAA=' : 'AAAAAA==', size: 3 * 2 ** 33 }
    const twice = { ...zero, size: zero.size * 2 }
    t.equal(combineChecksums(algorithm, [head, zero, zero]), combineChecksums(algorithm, [head, twice]))
  }
  t.equal(combineChecksums('CRC64NVME', [{ value, size: 4 }]), value)
})

t.test('labels are escaped, and their number is bounded', async (t) => {
  const metrics = new Metrics()
  const counter = metrics.counter({ name: 'things_total', help: 'Things.', labels: ['name'] })
  for (let n = 0; n < 5000; n++) counter.of(`"${n}\n`).value++
  const { body } = await render(await metrics.snapshot())
  t.equal(body.trimEnd().split('\n').length, 3003)
  t.match(body, /^things_total\{name="\\"7\\n"\} 1$/m)
  t.match(body, /^things_total\{name="other"\} 2000$/m)
})

t.test('the memory of a buffer is free at once', async (t) => {
  const plain = Buffer.alloc(MiB)
  const before = process.memoryUsage().arrayBuffers
  for (let i = 0; i < 64; i++) {
    const encrypted = createCipheriv('chacha20-poly1305', Buffer.alloc(32), Buffer.alloc(12)).update(plain)
    t.equal(encrypted.length, MiB)
    freeBuffer(encrypted)
    t.equal(encrypted.length, 0)
  }
  t.ok(process.memoryUsage().arrayBuffers - before < 2 * MiB)
})

t.test('a buffer that is a part of another keeps its bytes, and so does the other', async (t) => {
  const whole = Buffer.from('dealgate '.repeat(100))
  for (const part of [Buffer.from('few'), whole.subarray(9), whole.subarray(0, 9)]) {
    const text = part.toString()
    freeBuffer(part)
    t.equal(part.toString(), text)
  }
  t.equal(whole.length, 900)
})

t.test("AWS's vector: presigned GET", async (t) => {
  const request = {
    brand: 'Amz',
    method: 'GET',
    path: '/test.txt',
    host: 'examplebucket.s3.amazonaws.com',
    accessKeyId: example.accessKeyId,
    secretAccessKey: example.secretAccessKey,
    region: 'us-east-1',
    expires: 86400,
    now: new Date(example.time),
  } as const
  const query = new URLSearchParams(presignQuery(request))
  t.equal(query.get('X-Amz-Signature'), 'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404')
  t.equal(query.get('X-Amz-Credential'), 'AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request')
  const cloud = new URLSearchParams(presignQuery({ ...request, brand: 'Cloud', region: '' }))
  t.equal(cloud.get('X-Cloud-Credential'), 'AKIAIOSFODNN7EXAMPLE/20130524//s3/aws4_request')
  t.notOk(cloud.has('X-Amz-Date'))
})
