import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Job, Outcome, Report } from './job.js'

/** The process that sends requests, apart from the servers and from the process that reads the clocks. */
export class Load {
  readonly #child: ChildProcess

  constructor() {
    this.#child = fork(fileURLToPath(new URL('./process.js', import.meta.url)))
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Resolves when all requests were answered as expected; rejects at the first that was not. */
  async run(job: Job): Promise<Outcome> {
    this.#child.send(job)
    const [report] = (await once(this.#child, 'message')) as [Report]
    if ('failure' in report) throw new Error(report.failure)
    return report.outcome
  }

  stop(): void {
    this.#child.kill()
  }
}
