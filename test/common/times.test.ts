import t from 'tap'
import { xmlTime } from '../../src/common/time.js'

t.test('times of listings have milliseconds, and nothing that a gateway adds', async (t) => {
  t.equal(xmlTime('2026-01-02T03:04:05.678901234Z'), '2026-01-02T03:04:05.678Z')
  t.equal(xmlTime('2026-01-02T03:04:05.678Z'), '2026-01-02T03:04:05.678Z')
  t.equal(xmlTime('2026-01-02T03:04:05Z'), '2026-01-02T03:04:05.000Z')
  t.equal(xmlTime('2026-01-02T05:04:05.5+02:00'), '2026-01-02T03:04:05.500Z')
  t.throws(() => xmlTime('<Key>a</Key><Size>1</.678Z'), RangeError)
  t.throws(() => xmlTime('2026-01-02T03:04:05.<a>Z'), RangeError)
})
