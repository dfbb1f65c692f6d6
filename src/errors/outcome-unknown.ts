/** Something was sent and the answer got lost: whether it was done, nobody knows. Never to be answered with a 5xx, which clients repeat. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown'
}
