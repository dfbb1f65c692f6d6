import type { Prepared } from '../../../server/proxy-options.js'

/** A change that needs nothing but this function, which must not throw. */
export function ready(apply: () => void): Prepared {
  return { apply: async () => apply(), discard: async () => {} }
}

/** Prepares all of these changes. If one cannot be prepared, the others are discarded, and this rejects. */
export async function prepareAll(changes: readonly (() => Promise<Prepared>)[]): Promise<Prepared> {
  const outcomes = await Promise.allSettled(changes.map((prepare) => prepare()))
  const prepared = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  const discard = async () => {
    await Promise.all(prepared.map((each) => each.discard()))
  }
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed) {
    await discard()
    throw failed.reason
  }
  return {
    async apply() {
      for (const each of prepared) await each.apply()
    },
    discard,
  }
}
