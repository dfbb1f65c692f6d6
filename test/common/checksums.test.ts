import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import {
  type ChecksumAlgorithm,
  checksumAlgorithms,
  checksumHeader,
  combineChecksums,
  createChecksum,
  isChecksumValue,
  isCombinable,
  parseChecksumAlgorithm,
} from '../../src/common/checksums/checksums.js'
import { prepareXxHash } from '../../src/common/checksums/xxhash.js'

await prepareXxHash()

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

t.test('check values of RFC 1321, FIPS 180 and of the xxHash library', async (t) => {
  const abc = Buffer.from('abc')
  t.equal(hex(checksumOf('MD5', abc)), '900150983cd24fb0d6963f7d28e17f72')
  t.equal(
    hex(checksumOf('SHA512', abc)),
    'ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f',
  )
  t.equal(hex(checksumOf('XXHASH64', abc)), '44bc2cf5ad770999')
  t.equal(hex(checksumOf('XXHASH3', abc)), '78af5f94892f3950')
  t.equal(hex(checksumOf('XXHASH128', abc)), '06b05ab6733a618578af5f94892f3950')
  t.equal(hex(checksumOf('XXHASH64')), 'ef46db3751d8e999')
  t.equal(hex(checksumOf('XXHASH3')), '2d06800538d394c2')
  t.equal(hex(checksumOf('XXHASH128')), '99aa06d3014798d86001c324468d497f')
})

t.test('checksums that are computed at the same time do not mix', async (t) => {
  for (const algorithm of checksumAlgorithms) {
    const [a, b] = [createChecksum(algorithm), createChecksum(algorithm)]
    for (let i = 0; i < 5; i++) {
      a.update(Buffer.alloc(300, i))
      b.update(Buffer.alloc(301, i + 1))
    }
    t.equal(a.digest(), checksumOf(algorithm, ...[0, 1, 2, 3, 4].map((i) => Buffer.alloc(300, i))), algorithm)
    t.equal(b.digest(), checksumOf(algorithm, ...[1, 2, 3, 4, 5].map((i) => Buffer.alloc(301, i))), algorithm)
  }
})

t.test('vectors of the NVM Command Set Specification', async (t) => {
  // Figure "64b CRC Test Cases for a 4 KiB Logical Block".
  t.equal(hex(checksumOf('CRC64NVME', Buffer.alloc(4096))), '6482d367eb22b64e')
  t.equal(hex(checksumOf('CRC64NVME', Buffer.alloc(4096, 0xff))), 'c0ddba7302eca3ac')
})

t.test('the checksums of nothing', async (t) => {
  t.equal(checksumOf('CRC32'), 'AAAAAA==')
  t.equal(checksumOf('CRC32C'), 'AAAAAA==')
  t.equal(checksumOf('CRC64NVME'), 'AAAAAAAAAAA=')
  t.equal(checksumOf('SHA1'), createHash('sha1').digest('base64'))
})

const bytes = fc.uint8Array({ maxLength: 200 })

t.test('a split changes nothing, at any offset into the underlying memory', async () => {
  fc.assert(
    fc.property(fc.constantFrom(...checksumAlgorithms), bytes, fc.nat(200), (algorithm, data, at) => {
      const cut = Math.min(at, data.length)
      return checksumOf(algorithm, data) === checksumOf(algorithm, data.subarray(0, cut), data.subarray(cut))
    }),
  )
})

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
    t.equal(
      combineChecksums(algorithm, [head, zero, zero]),
      combineChecksums(algorithm, [head, { ...zero, size: zero.size * 2 }]),
    )
  }
  t.equal(combineChecksums('CRC64NVME', [{ value, size: 4 }]), value)
})

t.test('names and values', async (t) => {
  t.equal(parseChecksumAlgorithm('crc64nvme'), 'CRC64NVME')
  t.equal(parseChecksumAlgorithm('md5'), 'MD5')
  t.equal(parseChecksumAlgorithm('MD4'), undefined)
  t.equal(checksumHeader('CRC32C'), 'x-amz-checksum-crc32c')
  t.ok(isChecksumValue('CRC32', 'AAAAAA=='))
  for (const bad of ['', 'AAAAAA', 'AAAAAAA=', 'AAAAAB==', '!AAAAA==', 'AAAAAAAAAAA=', ' AAAAAA==']) {
    t.notOk(isChecksumValue('CRC32', bad), JSON.stringify(bad))
  }
})
