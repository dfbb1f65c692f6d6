import t from 'tap'
import { parsePrice, sortable } from '../../../../src/services/platform/units.js'

t.test('prices are exact', (t) => {
  t.equal(parsePrice('0.0000005'), 500_000_000_000n)
  t.equal(parsePrice('5E-7'), 500_000_000_000n)
  t.equal(parsePrice('1.5e-8'), 15_000_000_000n)
  t.equal(parsePrice('0E-18'), 0n)
  t.equal(parsePrice('1.000000000000000001'), 10n ** 18n + 1n)
  t.equal(parsePrice('1E9'), 10n ** 27n)
  for (const text of ['', '-1', '.5', '1e', '1E-19', '1E10', '1,5', 'NaN', '0x1', '1E-99', ' 1']) {
    t.equal(parsePrice(text), undefined, text)
  }
  t.ok(sortable(parsePrice('9') as bigint) < sortable(parsePrice('10') as bigint))
  t.end()
})
