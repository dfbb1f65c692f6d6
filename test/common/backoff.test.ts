import t from 'tap'
import { jitteredPause, pauseAfter } from '../../common/backoff.js'

const backoff = { firstMs: 100, longestMs: 2000 }

t.same(
  [1, 2, 3, 5, 6, 1000, 5000].map((failures) => pauseAfter(failures, backoff)),
  [100, 200, 400, 1600, 2000, 2000, 2000],
  'doubled with each failure, up to the longest',
)
t.equal(pauseAfter(5000, { firstMs: 0, longestMs: 10 }), 0, 'a number, however many failures there were')

const pauses = Array.from({ length: 1000 }, () => jitteredPause(3, backoff))
t.ok(
  pauses.every((pause) => pause >= 200 && pause <= 400),
  'half of it at least',
)
t.ok(new Set(pauses).size > 100, 'at random')
