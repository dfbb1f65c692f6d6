import t from 'tap'
import { checkTerms } from '../../../services/network/deal-record.js'

t.test('a duration is a whole number of epochs above 0', async (t) => {
  const terms = (duration: number) => ({ price: '0.000005', duration }) as Parameters<typeof checkTerms>[0]
  t.equal(checkTerms(terms(1)), 5_000_000_000_000n)
  for (const duration of [0, -1, 1.5, Number.NaN, 2 ** 53])
    t.throws(() => checkTerms(terms(duration)), { code: 'TermsRefused' }, String(duration))
})
