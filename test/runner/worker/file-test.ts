import { Test } from '@tapjs/test'

/** As tap marks an end that no test has asked for. */
const IMPLICIT = Symbol.for('implicit end')

export interface FileTestOptions {
  readonly limitMs: number
  /** Receives TAP. */
  readonly write: (text: string) => void
  /** Called with the time limit, and with one that the file sets, ms. */
  readonly onLimit: (ms: number) => void
}

/**
 * Creates the `t` of one test file: as that of tap, of which a process has only one, without its hooks into the
 * process.
 */
export function fileTest({ limitMs, write, onLimit }: FileTestOptions): Test {
  // tap passes proxies of its tests around: private members would be out of reach.
  class FileTest extends Test {
    override setTimeout(ms: number): void {
      if (ms > 0) onLimit(ms)
      super.setTimeout(ms)
    }
  }
  const test = new FileTest({ name: 'TAP', timeout: limitMs })
  test.on('data', write)
  test.on('complete', () => {
    clearTimeout(test.timer)
    test.comment(test.counts.toJSON())
    test.comment(`time=${test.time}ms`)
  })
  test.runMain(() => {})
  return test
}

/** Ends the test of a file once no subtest is left, and resolves when its teardowns have run. */
export async function finish(test: Test): Promise<void> {
  const completed = new Promise<void>((resolve) => {
    if (test.results) resolve()
    else test.once('complete', () => resolve())
  })
  await Promise.race([completed, quiet(test)])
  if (!test.results) (test.end as (how: symbol) => unknown)(IMPLICIT)
  await completed
}

/** Resolves when nothing has followed the last subtest for three turns. */
async function quiet(test: Test): Promise<void> {
  for (let turns = 0; turns < 3; ) {
    await new Promise((resolve) => setTimeout(resolve))
    if (test.idle) turns++
    else {
      turns = 0
      await new Promise<void>((resolve) => test.once('idle', () => resolve()))
    }
  }
}
