import { isMarked } from './across-copies.js'

const MARK: unique symbol = Symbol.for('dealgate.OutcomeUnknown')

/** Something was sent and the answer got lost: whether it was done, nobody knows. Never to be answered with a 5xx, which clients repeat. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown'

  get [MARK](): true {
    return true
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(value, MARK)
  }
}
