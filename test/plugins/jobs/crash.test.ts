import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { endsWithUs, killed } from '../../support/server/child.js'

const program = fileURLToPath(new URL('./crash-child.js', import.meta.url))

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 8)
/**
 * Jobs that each round adds. Each is reported in two lines: more than the round is let print, so that it is always
 * killed.
 */
const STEP = 16
const JOBS = ROUNDS * STEP
const LONGEST_ROUND = 20

interface Ended {
  readonly lines: string[]
  readonly signal: NodeJS.Signals | null
}

/** Runs the program for so many jobs; kills it, as soon as it has printed so many lines, a random moment later. */
async function run(
  t: Test,
  data: string,
  jobs: number,
  kill?: { readonly afterLines: number; readonly andMs: number },
): Promise<Ended> {
  const child = spawn(process.execPath, [program, data, String(jobs), ...(kill ? ['stay'] : [])], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  endsWithUs(child)
  t.teardown(() => killed(child))
  const closed = once(child, 'close')
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (lines.length === kill?.afterLines) void sleep(kill.andMs).then(() => child.kill('SIGKILL'))
  }
  await closed
  return { lines, signal: child.signalCode }
}

t.test('killed at random moments: no job is lost, none is done twice', async (t) => {
  const data = temporaryFolder(t)
  const ids = new Map<string, string>()
  const ends = new Map<string, string>()
  const take = (lines: string[]) => {
    for (const line of lines) {
      const [what, i = '', id = '', ...end] = line.split(' ')
      if ((ids.get(i) ?? id) !== id) t.fail(`the token ${i} is now another job`)
      ids.set(i, id)
      if (what !== 'ended') continue
      const told = end.join(' ')
      if ((ends.get(i) ?? told) !== told) t.fail(`the job ${i} ended as ${told} after it had ended as ${ends.get(i)}`)
      ends.set(i, told)
    }
  }
  for (let round = 0; round < ROUNDS; round++) {
    // Each start first reports all jobs of the rounds before.
    const afterLines = 2 * ids.size + 1 + Math.floor(Math.random() * LONGEST_ROUND)
    const { lines, signal } = await run(t, data, STEP * (round + 1), { afterLines, andMs: Math.random() * 25 })
    take(lines)
    t.equal(signal, 'SIGKILL')
  }
  const { lines, signal } = await run(t, data, JOBS)
  take(lines)
  t.equal(signal, null)
  t.equal(ends.size, JOBS)
  t.equal(new Set(ids.values()).size, JOBS, 'one job for each token')
  const paid = linesOf(join(data, 'sent'))
  const wanted = (odd: number) => [...ids].filter(([i]) => Number(i) % 2 === odd).map(([i, id]) => `${id} ${i}`)
  t.same(paid.sort(), wanted(1).sort(), 'each was paid once')
  t.same([...new Set(linesOf(join(data, 'tidied')))].sort(), wanted(0).sort(), 'and all were tidied')
  const outcomes = new Set(ends.values())
  t.same(
    [...outcomes].filter((end) => !/^Complete (found paid|paid|tidied)$/.test(end)),
    [],
  )
  t.comment(`${[...ends.values()].filter((end) => end.includes('found')).length} of ${JOBS / 2} were found to be paid`)
})

function linesOf(file: string): string[] {
  return readFileSync(file, 'utf8').trim().split('\n')
}
