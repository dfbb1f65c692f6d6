import t from 'tap'
import { openingFailure } from '../../common/opening-failure.js'

t.test('the sentence has the owner of what may not be used, and a remedy that helps', async (t) => {
  const failure = (code: string) => openingFailure('/', Object.assign(new Error(code), { code, syscall: 'open' }))
  t.match(
    failure('EACCES'),
    /^\/ cannot be used: .* \(\/ belongs to the user 0, this is the user \d+\), or choose another data folder \(--data\)\.$/,
  )
  for (const code of ['EMFILE', 'ENFILE'])
    t.match(failure(code), /^\/ cannot be used: .*open files.*ulimit -n, LimitNOFILE= of systemd\)\.$/, code)
})
