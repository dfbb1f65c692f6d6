import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context, JobKind } from '../../../src/api/context.js'
import { createLogger } from '../../../src/common/log.js'
import { openJobs } from '../../../src/plugins/jobs/open-jobs.js'
import { openState } from '../../../src/state/open-state.js'

/**
 * Asks for `count` jobs by token, prints a line for each that was acknowledged and one for each that has ended, and
 * ends when all have, unless it is to `stay`. Made to be killed. What the jobs send goes to a file that outlives the
 * process, as what is sent over a network does.
 */
const [data = '', count = '0', stay] = process.argv.slice(2)
const sent = join(data, 'sent')
const tidied = join(data, 'tidied')
const log = createLogger({ level: 'silent' })
const state = await openState({ data, log })
const jobs = await openJobs({ state, log, contextOf: async () => ({}) as Context })

/** What can be told about: it is written as soon as it is sent. */
const paying: JobKind<number, string> = {
  name: 'test:Pay',
  concurrency: 3,
  async run(job) {
    job.report({ phase: 'Paying' })
    await sleep(Math.random() * 4)
    await job.commit()
    await sleep(Math.random() * 4)
    appendFileSync(sent, `${job.job.id} ${job.input}\n`)
    await sleep(Math.random() * 4)
    return 'paid'
  },
  async reconcile({ job }) {
    const found = existsSync(sent) && readFileSync(sent, 'utf8').includes(job.id)
    return found ? { done: 'found paid' } : 'not-done'
  },
}

/** What may be done again. */
const tidying: JobKind<number, string> = {
  name: 'test:Tidy',
  concurrency: 3,
  async run(job) {
    job.note('tidying')
    await sleep(Math.random() * 8)
    appendFileSync(tidied, `${job.job.id} ${job.input}\n`)
    return 'tidied'
  },
}

jobs.register(paying)
jobs.register(tidying)
jobs.start()

async function ask(i: number): Promise<void> {
  const kind = i % 2 ? 'test:Pay' : 'test:Tidy'
  const asked = { kind, resource: '/b/k', input: i, accessKeyId: 'me', token: `token-${i}`, requestHash: `${i}` }
  const { id } = await jobs.create(asked)
  process.stdout.write(`made ${i} ${id}\n`)
  const { status, result } = await jobs.wait(id, 60_000)
  process.stdout.write(`ended ${i} ${id} ${status} ${result}\n`)
}

// A few at a time, so that a kill comes between the beginning of one and the end of another.
const numbers = Array.from({ length: Number(count) }, (_, i) => i)
const lane = async () => {
  for (let i = numbers.shift(); i !== undefined; i = numbers.shift()) await ask(i)
}
await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(lane))
if (stay === undefined) {
  await jobs.stop()
  await state.close()
} else setInterval(() => {}, 60_000)
