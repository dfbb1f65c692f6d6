import type { FamilySnapshot } from '../../../common/metrics/family.js'
import { aggregate } from '../../../common/metrics/render.js'

/** Longest wait for the metrics of a worker, ms; then its former ones are used. */
const PATIENCE_MS = 2000

interface Asked {
  readonly worker: number
  resolve(): void
}

/**
 * Adds the metrics of all workers up. Counters of workers that have ended stay in the sum: Prometheus would take a
 * smaller sum for a restart, and count everything again.
 */
export class WorkerMetrics {
  readonly #asked = new Map<number, Asked>()
  readonly #last = new Map<number, readonly FamilySnapshot[]>()
  #ended: readonly FamilySnapshot[] = []
  #adding: Promise<void> = Promise.resolve()
  #questions = 0

  /**
   * @param workers whom to ask, by number
   * @param ask sends the question with this id to a worker
   */
  async collect(workers: readonly number[], ask: (worker: number, id: number) => void): Promise<FamilySnapshot[]> {
    await Promise.all(workers.map((worker) => this.#answerOf(worker, ask)))
    return aggregate([...this.#last.values(), this.#ended])
  }

  /** Takes an answer. One that comes late is used at the next scrape. */
  received(worker: number, id: number, families: readonly FamilySnapshot[]): void {
    this.#last.set(worker, families)
    this.#asked.get(id)?.resolve()
  }

  async ended(worker: number): Promise<void> {
    for (const asked of this.#asked.values()) if (asked.worker === worker) asked.resolve()
    // One at a time: two workers that end together must both stay in the sum.
    this.#adding = this.#adding.then(() => this.#add(worker))
    await this.#adding
  }

  async #add(worker: number): Promise<void> {
    const counted = this.#last.get(worker)?.filter(({ type }) => type !== 'gauge')
    if (counted === undefined) return
    const ended = await aggregate([this.#ended, counted])
    this.#last.delete(worker)
    this.#ended = ended
  }

  #answerOf(worker: number, ask: (worker: number, id: number) => void): Promise<void> {
    const id = ++this.#questions
    return new Promise((resolve) => {
      const settle = () => {
        clearTimeout(timer)
        this.#asked.delete(id)
        resolve()
      }
      const timer = setTimeout(settle, PATIENCE_MS)
      this.#asked.set(id, { worker, resolve: settle })
      ask(worker, id)
    })
  }
}
