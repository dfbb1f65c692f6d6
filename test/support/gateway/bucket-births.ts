import type { BucketBirths } from '../../../src/api/gateway.js'

/** What a gateway says about buckets that are these; none of them by default. */
export function birthsOf(births: ReadonlyMap<string, string> = new Map()): BucketBirths {
  const tell = async (bucket: string) => births.get(bucket)
  return { now: tell, lately: tell }
}
