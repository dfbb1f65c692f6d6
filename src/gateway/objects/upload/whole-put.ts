import { withinDeadline } from '../../../common/deadline.js'
import { type Answer, readAnswer } from '../../calls/answer.js'
import { timedOut } from '../../errors.js'
import type { SentRequest } from '../../transport/connection.js'

/** A PUT that the connection has, or is receiving. */
export interface PutOnWire {
  /** True when the connection carried another request before: the gateway may have closed it in the meantime. */
  readonly reused: boolean
  /** Bytes that the system has not taken yet, and that are in memory therefore. */
  readonly unsentBytes: number
  /**
   * Waits for the answer, at most `patienceMs`. After that it closes the connection, unless `keepOpen` asks to keep it
   * for a later answer.
   */
  answered(patienceMs: number, keepOpen?: boolean): Promise<Answer>
  /** Closes the connection if there is no answer yet. */
  destroy(): void
}

/** A PUT that was sent in one piece. */
export class WholePut implements PutOnWire {
  readonly #sent: SentRequest
  readonly #answer: Promise<Answer>

  constructor(sent: SentRequest, idleMs: number) {
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

  answered(patienceMs: number, keepOpen = false): Promise<Answer> {
    return answeredInTime(this.#answer, patienceMs, keepOpen ? undefined : (error) => this.#sent.destroy(error))
  }

  destroy(): void {
    this.#sent.destroy()
  }
}

/** @param cut closes the connection; absent: it stays open for a later answer */
export async function answeredInTime(
  answer: Promise<Answer>,
  patienceMs: number,
  cut: ((error: Error) => void) | undefined,
): Promise<Answer> {
  if (!cut) return withinDeadline(answer, patienceMs, () => timedOut('the answer to an upload'))
  const timer = setTimeout(() => cut(timedOut('the answer to an upload')), patienceMs)
  try {
    return await answer
  } finally {
    clearTimeout(timer)
  }
}
