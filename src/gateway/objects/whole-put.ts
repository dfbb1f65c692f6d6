import { readAnswer, type SmallAnswer } from '../calls/rest-call.js'
import type { SentResponse } from '../transport/wire.js'
import { answeredInTime, type PutOnWire } from './put-request.js'

/** A PUT that was sent in one piece. */
export class WholePut implements PutOnWire {
  readonly #sent: SentResponse
  readonly #answer: Promise<SmallAnswer>

  constructor(sent: SentResponse, idleMs: number) {
    this.#sent = sent
    this.#answer = sent.answered.then(async (response) => {
      const early = sent.answeredEarly
      const answer = await readAnswer(response, idleMs)
      return early ? { ...answer, early } : answer
    })
    // An aborted upload does not wait for it.
    this.#answer.catch(() => {})
  }

  get reused(): boolean {
    return this.#sent.reused
  }

  get unsentBytes(): number {
    return this.#sent.unsentBytes
  }

  answered(maxWaitMs: number, keepOpen = false): Promise<SmallAnswer> {
    return answeredInTime(this.#answer, maxWaitMs, keepOpen ? undefined : (error) => this.#sent.giveUp(error))
  }

  destroy(): void {
    this.#sent.giveUp()
  }
}
