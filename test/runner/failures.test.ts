import t from 'tap'
import { failureList, failuresIn } from './failures.js'

const OUTPUT = `TAP version 14
# Subtest: dist/test/a.test.js
    # Subtest: outer
        ok 1 - not ok 2 - a name
        # Subtest: inner
            not ok 1 - one is two
              ---
              compare: ===
              at:
                fileName: dist/test/a.test.js
                lineNumber: 12
              diff: |
                --- expected
                +++ actual
                @@ -1,1 +1,1 @@
                -2
                +1
              source: |
                t.equal(1, 2)
                not ok 7 - quoted
              ...
            1..1
        not ok 2 - inner # time=8.1ms
          ---
          at:
            lineNumber: 11
          ...
        not ok 3 - later # TODO
        1..3
    not ok 1 - outer # time=9.1ms
      ---
      at:
        lineNumber: 10
      ...
    1..1
not ok 1 - dist/test/a.test.js # time=127.5ms
# Subtest: dist/test/b.test.js
    ok 1 - should be equal
    1..1
not ok 2 - dist/test/b.test.js # time=17.5ms
  ---
  exitCode: 3
  ...
ok 3 - dist/test/c.test.js # time=1.5ms
# { total: 3, pass: 1, fail: 4, todo: 1 }`.split('\n')

t.test('failed assertions are listed with their tests, and files that fail as such', async (t) => {
  t.strictSame(failureList(failuresIn(OUTPUT), 60), [
    '2 failures in 2 files:',
    'FAILED dist/test/a.test.js',
    '  outer > inner > one is two (dist/test/a.test.js:12)',
    '      diff: |',
    '        --- expected',
    '        +++ actual',
    '        @@ -1,1 +1,1 @@',
    '        -2',
    '        +1',
    'FAILED dist/test/b.test.js',
    '  the file itself',
    '      exitCode: 3',
  ])
})

t.test('the list keeps to its limit, first at the cost of diagnostics', async (t) => {
  t.strictSame(failureList(failuresIn(OUTPUT), 8), [
    '2 failures in 2 files:',
    'FAILED dist/test/a.test.js',
    '  outer > inner > one is two (dist/test/a.test.js:12)',
    '      diff: |',
    'FAILED dist/test/b.test.js',
    '  the file itself',
    '      exitCode: 3',
  ])
  const cut = failureList(failuresIn(OUTPUT), 3)
  t.equal(cut.length, 3)
  t.match(cut[2], /test-results/)
})

t.test('a run without failures lists none', async (t) => {
  t.strictSame(failureList(failuresIn(['TAP version 14', 'ok 1 - a', '1..1']), 60), [])
})
