import { isMarked } from './across-copies.js'

const MARK: unique symbol = Symbol.for('dealgate.OutcomeUnknown')

/**
 * A request was sent, and no answer tells whether it was carried out: the answer was lost, or does not come from the
 * service itself, such as the 408, 429 or HTML page of an intermediate proxy. Must never be answered with a 5xx status,
 * because clients repeat such requests.
 */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown'

  get [MARK](): true {
    return true
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(value, MARK)
  }
}
