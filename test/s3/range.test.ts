import fc from 'fast-check'
import t from 'tap'
import { S3Error } from '../../src/common/errors/s3-error.js'
import { resolveRange } from '../../src/gateway/objects/download-body.js'
import { parseRange } from '../../src/s3/object/read-conditions.js'

/**
 * The bytes that a Range header asks for, by cutting a real body: undefined for the whole of it, 'refused' for none.
 */
function model(header: string, body: string): string | undefined {
  const found = /^bytes=(\d*)-(\d*)$/.exec(header)
  const [, first = '', last = ''] = found ?? []
  if (!found || (first === '' && last === '')) return undefined
  if (first !== '' && last !== '' && Number(first) > Number(last)) return undefined
  const cut =
    first === ''
      ? body.slice(Math.max(0, body.length - Number(last)))
      : body.slice(Number(first), last === '' ? undefined : Number(last) + 1)
  return cut === '' ? 'refused' : cut
}

function ours(header: string, body: string): string | undefined {
  const range = parseRange(header)
  if (!range) return undefined
  try {
    const { first, last } = resolveRange(range, body.length)
    return body.slice(first, last + 1)
  } catch (error) {
    if (error instanceof S3Error && error.code === 'InvalidRange') return 'refused'
    throw error
  }
}

t.test('ranges: the same bytes as a model that cuts the body', async () => {
  const number = fc.option(fc.nat({ max: 30 }), { nil: undefined })
  const text = (n: number | undefined) => (n === undefined ? '' : String(n))
  fc.assert(
    fc.property(fc.nat({ max: 25 }), number, number, (size, first, last) => {
      const body = 'abcdefghijklmnopqrstuvwxyz'.slice(0, size)
      const header = `bytes=${text(first)}-${text(last)}`
      return ours(header, body) === model(header, body)
    }),
    { numRuns: 2000 },
  )
})

t.test('positions of any number of digits', async (t) => {
  const far = '9'.repeat(40)
  for (const [header, expected] of [
    [`bytes=${far}-`, 'refused'],
    ['bytes=99999999999999999-', 'refused'],
    ['bytes=18446744073709551616-18446744073709551617', 'refused'],
    [`bytes=1-${far}`, 'bcde'],
    [`bytes=-${far}`, 'abcde'],
    [`bytes=${'0'.repeat(30)}1-2`, 'bc'],
    [`bytes=${far}1-${far}0`, undefined],
  ] as const) {
    t.equal(ours(header, 'abcde'), expected, header)
  }
})

t.test('a header of nothing but spaces costs next to nothing', async (t) => {
  const started = process.cpuUsage()
  for (const header of [`bytes=${' '.repeat(60_000)}x`, `bytes=1-${' '.repeat(60_000)}x`])
    t.equal(parseRange(header), undefined)
  // Time that grows with the square of the length would be seconds.
  t.ok(process.cpuUsage(started).user < 1_000_000)
})
