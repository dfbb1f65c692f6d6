import type { CreationTimes } from '../../../src/api/gateway.js'

/** What a gateway says about buckets that are these; none of them by default. */
export function creationTimesOf(creationTimes: ReadonlyMap<string, string> = new Map()): CreationTimes {
  const tell = async (bucket: string) => creationTimes.get(bucket)
  return { now: tell, cached: tell }
}
