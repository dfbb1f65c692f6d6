import { z } from 'zod'

/** Most failures that a result names. */
const MAX_FAILURES = 100

/** Why a job about many objects left one out. */
export const failure = z.object({ Key: z.string(), Code: z.string(), Message: z.string() })
export type Failure = z.output<typeof failure>

/** The failures with one more, the first hundred. */
export function keepSome(failures: readonly Failure[], added: Failure): Failure[] {
  return [...failures, added].slice(0, MAX_FAILURES)
}
