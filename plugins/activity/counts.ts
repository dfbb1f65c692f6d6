import type { StorageSample } from 'dealgate/plugin'

export interface Counts extends StorageSample {
  requests: number
  clientErrors: number
  serverErrors: number
  bytesIn: number
  bytesOut: number
  /** Requests by their time: see `timeClass`. Absent in records of earlier versions. */
  times?: Record<number, number>
}

export const none = (): Counts => ({
  requests: 0,
  clientErrors: 0,
  serverErrors: 0,
  bytesIn: 0,
  bytesOut: 0,
  times: {},
})

/** Four classes of times for each doubling, from 1/4 ms to 65 s: a quantile is at most 19 % too high. */
const CLASSES = 4
const BELOW_ONE_MS = 2 * CLASSES
const LAST_CLASS = BELOW_ONE_MS + 16 * CLASSES

/** The class of a time, ms. */
export function timeClass(ms: number): number {
  return Math.min(LAST_CLASS, Math.max(0, BELOW_ONE_MS + Math.ceil(CLASSES * Math.log2(ms))))
}

/** The time, ms, within which this share of the requests was answered; undefined without any. */
export function quantile(times: Counts['times'] = {}, share: number): number | undefined {
  const counts = Object.entries(times).map(([name, count]) => [Number(name), count] as const)
  let left = share * counts.reduce((sum, [, count]) => sum + count, 0)
  for (const [number, count] of counts.sort(([one], [other]) => one - other)) {
    left -= count
    if (left <= 0) return Number((2 ** ((number - BELOW_ONE_MS) / CLASSES)).toPrecision(3))
  }
  return undefined
}

/** Adds to `counts`, which has the sample of the other then, and returns them. */
export function addTo(counts: Counts, { times = {}, ...more }: Readonly<Counts>): Counts {
  const { requests, clientErrors, serverErrors, bytesIn, bytesOut, ...sample } = more
  counts.requests += requests
  counts.clientErrors += clientErrors
  counts.serverErrors += serverErrors
  counts.bytesIn += bytesIn
  counts.bytesOut += bytesOut
  const all = { ...counts.times }
  for (const [name, count] of Object.entries(times)) all[Number(name)] = (all[Number(name)] ?? 0) + count
  return Object.assign(counts, sample, { times: all })
}
