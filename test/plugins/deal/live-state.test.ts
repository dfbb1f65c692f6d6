import t from 'tap'
import { steady } from '../../../plugins/deal/deal-document.js'

t.test('an expiry stays what it was first said to be, unless it has really moved', async (t) => {
  const epochMs = 30_000
  const first = { state: 'StorageDealActive', asked: 0, endEpoch: 5000, expires: 1_000_000_000 }
  const later = (more: object) => ({ ...first, asked: 60_000, ...more })
  for (const expires of [first.expires + 29_999, first.expires - 29_999, first.expires + 31_000])
    t.match(steady(later({ expires }), first, epochMs), { expires: first.expires, asked: 60_000 })
  const passed = first.expires - 3_600_000
  t.equal(steady(later({ expires: passed }), first, epochMs).expires, passed, 'time was let pass')
  t.equal(steady(later({ expires: first.expires + 1, endEpoch: 5001 }), first, epochMs).expires, first.expires + 1)
  t.equal(steady(later({ expires: undefined }), first, epochMs).expires, undefined)
  t.equal(steady(first, undefined, epochMs).expires, first.expires)
})
